// The rules against published outputs: real GPUs (Leeds) and the MMA-Sim model.
#include "tests/oracle/cuda/replay/golden.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/report.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// "": there are no golden files.
std::string golden_folder() {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string folder =
      std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/golden/mma";
  return std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<RecordFile> golden_files(const std::string& folder) {
  std::vector<RecordFile> files = read_records(folder, folder + "/index_mmasim.tsv").files;
  for (const RecordFile& file : read_hardware_records(folder).files) files.push_back(file);
  return files;
}

constexpr const char* kAbsent = "skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma";

}  // namespace

TEST_CASE("the specification's rules answer as every published record", "[fast][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN(kAbsent);
    return;
  }
  const Choice only_specified{"", "no rival has this name", 0};
  std::map<std::string, std::size_t> records;
  for (const RecordFile& file : golden_files(folder)) {
    const Judgement j = judge(file, only_specified);
    INFO(file.file);
    REQUIRE(j.verdicts.size() == 1);
    CHECK(j.verdicts[0].mismatches == 0);
    records[file.source] += j.records;
  }
  CHECK(records["MMA-Sim model"] == 18894);
  CHECK(records["published outputs"] == 60000);
}

TEST_CASE("where MMA-Sim and Leeds dispute, both agree with the real GPUs", "[fast][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN(kAbsent);
    return;
  }
  std::size_t checked = 0;
  for (const RecordFile& file : read_hardware_records(folder).files) {
    for (const Verdict& v : judge(file, {"", "zero products dropped", 0}).verdicts) {
      INFO(file.file << " " << v.rule.name);
      CHECK(v.mismatches == 0);
      checked += v.rule.question.empty() ? 0 : 1;
    }
  }
  CHECK(checked >= 48 * 2);
}

TEST_CASE("every rival is refuted somewhere, but for those named here", "[slow][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN(kAbsent);
    return;
  }
  const std::vector<RecordFile> files = golden_files(folder);
  std::vector<Judgement> judgements;
  for (const RecordFile& file : files) judgements.push_back(judge(file, {"", "", 0}));
  std::map<std::string, std::size_t> refuted;
  for (const Standing& s : standings(judgements)) {
    CHECK(s.specified == 0);
    refuted[s.question + ": " + s.rival] += s.refuted_by;
  }
  std::set<std::string> standing;
  for (const auto& [rival, by] : refuted)
    if (by == 0) standing.insert(rival);
  // What no published record decides: the floors of half results, the sign of a negative value that
  // is cut to zero, NaN scales of zeros, the sign bit of a scale, the groups of FP4.
  const std::set<std::string> open = {"exponent-floor: zero products counted, floor -19",
                                      "exponent-floor: zero products counted, floor -20",
                                      "exponent-floor: zero products counted, floor -21",
                                      "exponent-floor: zero products dropped, floor -19",
                                      "exponent-floor: zero products dropped, floor -20",
                                      "exponent-floor: zero products dropped, floor -21",
                                      "scale-nan: NaN scale of zeros does nothing",
                                      "scale-significand: the sign of a scale counts",
                                      "step-width: groups of 1",
                                      "step-width: groups of 32",
                                      "step-width: groups of 8",
                                      "zero-sign: -0 of a negative sum cut to zero"};
  CHECK(standing == open);
  CHECK(refuted.size() > 50);
}

}  // namespace numemu::oracle::recording::replay

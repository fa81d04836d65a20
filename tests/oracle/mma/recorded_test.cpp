// Published and recorded answers of GPUs replayed by the product: the rules of the units hold, and
// of their rivals only those named here are never told apart.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_judge.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "emu/unit/catalogue/models.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_files.hpp"

namespace numemu::oracle::mma::recorded_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbsent = "skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma";

TEST_CASE("every answer of a GPU that is kept is what the unit computes", "[fast]") {
  int folders = 0;
  for (const fs::directory_entry& folder : fs::directory_iterator(NUMEMU_SOURCE "/data/vectors")) {
    if (!fs::exists(folder.path() / "gpu.tsv")) continue;
    ++folders;
    const RecordFolder records = read_record_folder(folder.path());
    for (const Judgement& j : judge(records)) {
      INFO(folder.path() << " " << j.file->file);
      CHECK(j.holds());
    }
  }
  if (folders == 0) WARN("skipped: data/vectors holds no answers of a GPU yet");
}

TEST_CASE("published answers contradict every rival but those named here", "[slow][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN(kAbsent);
    return;
  }
  const RecordFolder records = read_record_folder(folder);
  const std::vector<Judgement> judgements = judge(records);
  std::map<std::string, std::int64_t> of_source;
  for (const Judgement& j : judgements) {
    INFO(j.file->file);
    REQUIRE_FALSE(j.rules.empty());
    CHECK(j.holds());
    of_source[j.file->source] += j.rules.front().tally.records;
  }
  CHECK(of_source["MMA-Sim model"] == 18894);
  CHECK(of_source["published outputs"] == 60000);
  std::map<std::string, std::int64_t> contradicted;
  for (const Standing& s : standings(judgements))
    contradicted[s.family + ": " + s.rival] += s.mismatches;
  std::set<std::string> never;
  for (const auto& [rival, mismatches] : contradicted)
    if (mismatches == 0) never.insert(rival);
  // The published outputs have no sums tiny enough for another floor; MMA-Sim's are of its own.
  std::set<std::string> open = {
      "exponent-floor: the largest exponent has no lower bound",
      "exponent-floor: the largest exponent is at least -132",
      "exponent-floor: the largest exponent is at least -133",
      "infinities: NaN is written as 0x7fffffffffffffff",
      "infinities: NaN is written as 0xfff8000000000000",
      "infinities: NaN is written as 0xffffffffffffffff",
      "scale-nan: a NaN scale of zeros does nothing",
      "scale-significand: the sign of a scale counts",
      "zero-exponent: products with a zero operand take no part in the alignment",
      "zero-sign: a sum cut to zero is +0"};
  for (const char* floor : {"-126", "-19", "-20", "-21"}) {
    for (const char* zeros : {"", "zero operands take no part and ", "a zero C takes no part and "})
      open.insert(
          fmt::format("exponent-floor: {}the largest exponent is at least {}", zeros, floor));
  }
  CHECK(never == open);
  CHECK(contradicted.size() > 60);
}

std::uint64_t hexadecimal(const std::string& digits) { return std::stoull(digits, nullptr, 16); }

/// A row of the probe file as one dot; its instruction is "mma.sync m16n8k16 f32.bf16.bf16.f32".
struct ProbedDot {
  const recording::Instruction* instruction;
  std::unique_ptr<recording::Instruction> single;
  std::unique_ptr<recording::Batch> batch;
};

ProbedDot probed_dot(const TableRow& row) {
  std::istringstream words(row.text("instruction"));
  std::string kind, shape, types;
  words >> kind >> shape >> types;
  const int found = recording::find_instruction("mma", shape + "." + types);
  REQUIRE(found >= 0);
  ProbedDot dot{&recording::instructions()[static_cast<std::size_t>(found)], nullptr, nullptr};
  dot.single = std::make_unique<recording::Instruction>(*dot.instruction);
  dot.single->m = dot.single->n = 1;
  dot.batch = std::make_unique<recording::Batch>(*dot.single, 1);
  const auto put = [](std::vector<std::uint8_t>& to, const std::string& list, int bytes) {
    std::istringstream codes(list);
    int k = 0;
    for (std::string code; std::getline(codes, code, ','); ++k)
      recording::store_code(&to.at(static_cast<std::size_t>(k * bytes)), bytes, hexadecimal(code));
  };
  put(dot.batch->a, row.text("a_hex"), info(dot.single->a).bytes);
  put(dot.batch->b, row.text("b_hex"), info(dot.single->b).bytes);
  put(dot.batch->c, row.text("c_hex"), info(dot.single->c).bytes);
  return dot;
}

TEST_CASE("three rules give the three predictions of the probe file", "[fast][shared]") {
  const std::string path = golden_folder() + "/probes_hopper.tsv";
  if (!fs::exists(path)) {
    WARN(kAbsent);
    return;
  }
  std::size_t apart[2] = {0, 0};
  const std::vector<TableRow> rows = read_table_rows(path);
  for (const TableRow& row : rows) {
    const ProbedDot dot = probed_dot(row);
    const recording::Element d = dot.single->d;
    unit::UnitDescription least = *unit_of("H100", *dot.instruction);
    unit::take_mmasim_floor(least);
    unit::UnitDescription none = least;
    none.alignment.zero_exponent.reset();
    none.alignment.floor.reset();
    unit::UnitDescription leeds = none;
    leeds.alignment.floor = d == recording::Element::f32 ? -133 : -21;
    INFO(row.text("id"));
    // But for the sign of a zero.
    const std::uint64_t sign = std::uint64_t{1} << (info(d).bits - 1);
    const auto answers_as = [&](const unit::UnitDescription& u, const char* column) {
      const std::vector<std::uint8_t> result = results_of(rule_of(u, *dot.single), *dot.batch);
      const std::uint64_t code = recording::load_code(result.data(), info(d).bytes);
      const std::uint64_t expected = hexadecimal(row.text(column));
      return code == expected || ((code | expected) & ~sign) == 0;
    };
    CHECK(answers_as(least, "pred_mmasim_zero_exp"));
    CHECK(answers_as(leeds, "pred_leeds_floor"));
    CHECK(answers_as(none, "pred_no_floor"));
    apart[0] += answers_as(least, "pred_leeds_floor") ? 0 : 1;
    apart[1] += answers_as(leeds, "pred_no_floor") ? 0 : 1;
  }
  CHECK(rows.size() == 43);
  CHECK(apart[0] == 12);
  CHECK(apart[1] == 12);
}

}  // namespace
}  // namespace numemu::oracle::mma::recorded_test

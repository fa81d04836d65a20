// Published outputs of GPUs, identified from the records alone: each names the unit of its chip.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "emu/oracle/identify/identify.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_files.hpp"

namespace numemu::oracle::mma::identify_golden_test {
namespace {

std::uint64_t code_at(const std::string& bytes, const Format& format, std::size_t index) {
  const auto size = static_cast<std::size_t>((format.bits + format.container_shift + 7) / 8);
  std::uint64_t code = 0;
  std::memcpy(&code, bytes.data() + index * size, size);
  return code >> format.container_shift;
}

std::vector<Answered> records_of(const Batch& batch) {
  std::vector<Answered> records;
  const auto k = static_cast<std::size_t>(batch.k);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.count); ++i) {
    Answered& one = records.emplace_back();
    for (std::size_t p = 0; p < k; ++p) {
      one.question.dot.a.push_back(code_at(batch.a, *batch.a_format, i * k + p));
      one.question.dot.b.push_back(code_at(batch.b, *batch.b_format, i * k + p));
    }
    one.question.dot.c = code_at(batch.c, *batch.result, i);
    one.code = code_at(batch.d, *batch.result, i);
  }
  return records;
}

TEST_CASE("identify: published outputs of GPUs", "[slow][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  int sets = 0, named = 0;
  for (const IndexRow& row : read_index(folder + "/index_hw_leeds.tsv")) {
    const GoldenUnit* golden = find_golden_unit(hardware_units(), row.at("file"));
    if (golden == nullptr || !std::filesystem::exists(folder + "/" + row.at("file"))) continue;
    const Batch batch = read_hardware(folder, row, *golden);
    const Ports ports =
        ports_of(*unit::find_unit(batch.unit).description(), static_cast<int>(batch.k));
    const FoundRule finding = identify(ports, records_of(batch));
    INFO(row.at("file") << " " << batch.unit);
    const bool found =
        finding.fits && std::count(finding.presets.begin(), finding.presets.end(), batch.unit) == 1;
    CHECK(found);
    ++sets;
    named += found ? 1 : 0;
  }
  WARN(named << " of " << sets << " sets name the unit of their chip");
}

}  // namespace
}  // namespace numemu::oracle::mma::identify_golden_test

// Every golden vector of the shared folder through the reference and the fast path, bit for bit.
#include <algorithm>
#include <filesystem>
#include <set>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/mma/golden_files.hpp"
#include "tests/oracle/mma/silicon_files.hpp"
#include "tests/oracle/mma/table.hpp"

namespace numemu::oracle::mma::golden_test {
namespace {

using Reader = Batch (*)(const std::string&, const IndexRow&, const GoldenUnit&);

/// What the index names and the folder lacks.
using Missing = std::vector<std::string>;

void note_dispute(std::string_view file, Table& table) {
  for (const Disputed& d : disputed_files())
    if (d.file == file) table.note("    disputed: " + std::string(d.reason));
}

void add_file(const std::string& folder, const IndexRow& row, const GoldenUnit& golden, Reader read,
              std::initializer_list<Way> ways, Table& table) {
  try {
    const Batch batch = read(folder, row, golden);
    for (const Way way : ways)
      table.add(row.at("file"), batch.unit, way, compare(batch, way, golden.nan()));
  } catch (const Error& error) {
    table.fail(row.at("file"), error.what());
  }
  note_dispute(golden.file, table);
}

/// Every file of the index, and every row of the table of units.
Missing compare_all(const std::string& folder, const char* index, std::span<const GoldenUnit> units,
                    Reader read, std::initializer_list<Way> ways, Table& table) {
  Missing missing;
  std::set<std::string> named;
  for (const IndexRow& row : read_index(folder + "/" + index)) {
    const std::string& file = row.at("file");
    named.insert(file);
    const GoldenUnit* golden = find_golden_unit(units, file);
    if (golden == nullptr) {
      table.fail(file, "stands in the index, but no unit is named for it in golden_units.cpp");
    } else if (!std::filesystem::exists(folder + "/" + file)) {
      missing.push_back(file);
    } else {
      add_file(folder, row, *golden, read, ways, table);
    }
  }
  for (const GoldenUnit& golden : units) {
    if (named.count(std::string(golden.file)) == 0)
      table.fail(std::string(golden.file),
                 "has a unit in golden_units.cpp, but no line in the index");
  }
  return missing;
}

/// Differences fail; otherwise a missing file makes ctest show the test as skipped.
void conclude(const Table& table, const Missing& missing) {
  table.print();
  WARN(table.totals());
  CHECK(table.records() > 0);
  CHECK(table.mismatches() == 0);
  CHECK(table.failures() == 0);
  const bool clean = table.mismatches() == 0 && table.failures() == 0;
  for (const std::string& file : missing) WARN((clean ? "skipped: " : "missing: ") << file);
}

void prove(const char* index, std::span<const GoldenUnit> units, Reader read,
           std::initializer_list<Way> ways) {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  Table table;
  const Missing missing = compare_all(folder, index, units, read, ways, table);
  conclude(table, missing);
}

TEST_CASE("golden mma: outputs of GPUs", "[fast][shared]") {
  prove("index_hw_leeds.tsv", hardware_units(), read_hardware, {Way::reference, Way::fast});
}

TEST_CASE("golden mma: outputs of GPUs in blocks", "[slow][shared]") {
  prove("index_hw_leeds.tsv", hardware_units(), read_hardware, {Way::fast_blocks});
}

TEST_CASE("golden mma: outputs of the MMA-Sim model", "[fast][shared]") {
  prove("index_mmasim.tsv", model_units(), read_model, {Way::reference, Way::fast});
}

TEST_CASE("golden mma: outputs of the MMA-Sim model in blocks", "[slow][shared]") {
  prove("index_mmasim.tsv", model_units(), read_model, {Way::fast_blocks});
}

// Not a proof of anything: how far apart the rivals are where no hardware has decided.
TEST_CASE("golden mma: disputed files under the default preset", "[fast][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  Table table;
  for (const IndexRow& row : read_index(folder + "/index_mmasim.tsv")) {
    const GoldenUnit* golden = find_golden_unit(model_units(), row.at("file"));
    if (golden == nullptr) continue;
    for (const std::string_view modifier : {".pairwise", ".mmasim"}) {
      if (!golden->unit.ends_with(modifier)) continue;
      GoldenUnit rival = *golden;
      rival.unit.remove_suffix(modifier.size());
      add_file(folder, row, rival, read_model, {Way::reference}, table);
    }
  }
  table.print();
  WARN(table.totals());
  CHECK(table.failures() == 0);
  CHECK(table.records() > 0);
  CHECK(table.mismatches() > 0);
}

TEST_CASE("golden mma: data/vectors/emr holds the shared silicon vectors", "[fast][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  std::set<std::string> named;
  for (const IndexRow& row : read_index(folder + "/index_silicon.tsv")) {
    const std::string name = std::filesystem::path(row.at("file")).filename();
    CAPTURE(name);
    named.insert(name);
    CHECK(test::read_file(folder + "/" + row.at("file")) ==
          test::read_file(silicon_folder() + "/" + name));
  }
  std::set<std::string> tested = {"vcvtneps2bf16.bin"};
  for (const SiliconFile& file : silicon_files()) tested.insert(std::string(file.file));
  // Files of this project alone stand beside them.
  CHECK(std::ranges::includes(tested, named));
}

}  // namespace
}  // namespace numemu::oracle::mma::golden_test

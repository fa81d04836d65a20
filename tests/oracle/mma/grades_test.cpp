// The grade in the catalogue is what the comparisons of this folder show.
#include <algorithm>
#include <string>

#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_units.hpp"
#include "tests/oracle/mma/silicon_files.hpp"

namespace grades_test {

using namespace numemu::unit;
using namespace numemu::oracle::mma;

namespace {

template <class Table>
bool compared(const Table& table, const std::string& name) {
  return std::any_of(table.begin(), table.end(),
                     [&](const auto& entry) { return entry.unit == name; });
}

}  // namespace

TEST_CASE("grades: every unit with evidence is compared with it", "[fast]") {
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    INFO(row.name);
    if (row.grade == Grade::silicon) CHECK(compared(silicon_files(), row.name));
    if (row.grade == Grade::emulator) CHECK(compared(emulated_files(), row.name));
    if (row.grade == Grade::hardware) CHECK(compared(hardware_units(), row.name));
    if (row.grade == Grade::model)
      // Of NVIDIA's units all but the alignment's floor is MMA-Sim's.
      CHECK((compared(model_units(), row.name) || compared(model_units(), row.name + ".mmasim") ||
             compared(hardware_units(), row.name)));
  }
}

TEST_CASE("grades: what is compared is graded so", "[fast]") {
  for (const GoldenUnit& golden : hardware_units()) {
    INFO(golden.unit);
    // tf32 with four of eight terms proves less than the unit.
    const Grade grade = find_unit(golden.unit).row().grade;
    CHECK((grade == Grade::hardware || grade == Grade::model));
  }
  for (const GoldenUnit& golden : model_units()) {
    INFO(golden.unit);
    const Grade grade = find_unit(golden.unit).row().grade;
    CHECK((grade == Grade::hardware || grade == Grade::model));
  }
  for (const SiliconFile& file : silicon_files())
    CHECK(find_unit(file.unit).row().grade == Grade::silicon);
  for (const SiliconFile& file : emulated_files())
    CHECK(find_unit(file.unit).row().grade == Grade::emulator);
}

}  // namespace grades_test

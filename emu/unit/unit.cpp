// The table of matrix units: builds every row of units.def once and finds units by name.
#include "emu/unit/unit.hpp"

#include <array>
#include <utility>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {

#define NUMEMU_UNIT(name, alias, operand, result, grade, core, accumulation, source) \
  std::unique_ptr<Unit> make_##core(UnitRow);
#include "emu/unit/units.def"
#undef NUMEMU_UNIT

namespace {

std::vector<std::unique_ptr<Unit>> build_table() {
  std::vector<std::unique_ptr<Unit>> table;
#define NUMEMU_UNIT(name, alias, operand, result, grade, core, accumulation, source) \
  table.push_back(make_##core({name, alias, operand, result, accumulation, Grade::grade, source}));
#include "emu/unit/units.def"
#undef NUMEMU_UNIT
  return table;
}

/// A short form leaves out leading components but keeps two: "mma.f16.f32" for
/// "nvidia.a100.mma.f16.f32".
bool is_short_form(const std::string& name, std::string_view text) {
  return text.find('.') != text.npos && name.size() > text.size() && name.ends_with(text) &&
         name[name.size() - text.size() - 1] == '.';
}

}  // namespace

const std::vector<const Unit*>& all_units() {
  static const std::vector<std::unique_ptr<Unit>> table = build_table();
  static const std::vector<const Unit*> units = [] {
    std::vector<const Unit*> pointers;
    for (const auto& unit : table) pointers.push_back(unit.get());
    return pointers;
  }();
  return units;
}

const Unit& find_unit(std::string_view name) {
  std::vector<std::string> known;
  std::vector<const Unit*> short_forms;
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    if (name == row.name || (!row.alias.empty() && name == row.alias)) return *unit;
    if (is_short_form(row.name, name)) short_forms.push_back(unit);
    known.push_back(row.name);
    if (!row.alias.empty()) known.push_back(row.alias);
  }
  if (short_forms.size() == 1) return *short_forms.front();
  throw Error(unknown_name("unit", name, known));
}

void Unit::require_operand(const Format& format) const {
  if (accepts(format)) return;
  throw Error("unit " + row().name + " does not take operands of format " + format.name +
              " (it takes " + operand_rule() + ")");
}

std::string_view to_string(Grade grade) {
  static constexpr std::array<std::pair<Grade, std::string_view>, 8> kNames = {{
      {Grade::definition, "definition"},
      {Grade::silicon, "silicon"},
      {Grade::hardware, "hardware"},
      {Grade::model, "model"},
      {Grade::leeds, "leeds"},
      {Grade::vendor, "vendor"},
      {Grade::anecdotal, "anecdotal"},
      {Grade::not_reproducible, "not reproducible"},
  }};
  for (const auto& [value, name] : kNames) {
    if (value == grade) return name;
  }
  return "unknown";
}

}  // namespace numemu::unit

// The table of units: multiplies the types of every row of units.def out, once.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/catalogue/models.hpp"
#include "emu/unit/described_unit.hpp"
#include "emu/unit/host_eigen.hpp"
#include "emu/unit/unit.hpp"
#include "formats/interned.hpp"

namespace numemu::unit {
namespace {

std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// The B types that go with one A type: "=" the same, "any" all, "mixed" all others; "with fp6 or
/// fp4" all that are not pure FP8 pairs ("..., not fp4 alone": nor pure FP4 ones).
std::vector<std::string> partners(const std::string& a, const std::vector<std::string>& types,
                                  std::string_view rule) {
  if (rule == "=") return {a};
  const auto fp8 = [](const std::string& type) { return type == "e4m3" || type == "e5m2"; };
  const bool narrow = rule.starts_with("with fp6 or fp4");
  std::vector<std::string> with;
  for (const std::string& b : types) {
    if (rule == "mixed" && b == a) continue;
    if (narrow && fp8(a) && fp8(b)) continue;
    if (rule == "with fp6 or fp4, not fp4 alone" && a == "e2m1" && b == "e2m1") continue;
    with.push_back(b);
  }
  if (rule != "any" && rule != "mixed" && !narrow) return words_of(rule, ' ');
  return with;
}

/// One row of units.def before its types are multiplied out.
struct TableRow {
  std::string_view prefix, a_types, b_types, d_types;
  UnitDescription (*model)();
  Grade grade;
  std::string_view modifiers, source;
};

using Table = std::vector<std::unique_ptr<Unit>>;

bool unproven(const std::string& name) {
  static const std::vector<std::string> names = {
#define NUMEMU_UNPROVEN(name) name,
#include "emu/unit/catalogue/units.def"
  };
  return std::find(names.begin(), names.end(), name) != names.end();
}

void expand(const TableRow& row, Table& table) {
  const std::vector<std::string> types = words_of(row.a_types, ' ');
  for (const std::string& a : types) {
    for (const std::string& b : partners(a, types, row.b_types)) {
      const auto results =
          row.d_types == "=" ? std::vector<std::string>{a} : words_of(row.d_types, ' ');
      for (const std::string& d : results) {
        UnitDescription u = row.model();
        set_types(u, a, b, d);
        u.name = std::string(row.prefix) + "." + a + (b == a ? "" : "x" + b) + "." + d;
        UnitRow about;
        about.grade = row.grade;
        about.source = row.source;
        if (unproven(u.name)) {
          about.grade = Grade::modelled;
          about.source = "no outputs of it to compare with; by analogy: ";
          about.source += row.source;
        }
        about.modifiers = words_of(row.modifiers, ' ');
        table.push_back(described_unit(std::move(u), std::move(about)));
      }
    }
  }
}

Table build_table() {
  Table table;
#define NUMEMU_NEUTRAL(name_, alias_, model_, grade_, source_) \
  {                                                            \
    UnitDescription u = model_;                                \
    u.name = name_;                                            \
    UnitRow about;                                             \
    about.alias = alias_;                                      \
    about.grade = Grade::grade_;                               \
    about.source = source_;                                    \
    table.push_back(described_unit(std::move(u), about));      \
  }
#include "emu/unit/catalogue/units.def"
  table.push_back(make_host_eigen_f32());
  static constexpr TableRow kRows[] = {
#define NUMEMU_UNIT(prefix, a, b, d, model, grade, modifiers, source) \
  {prefix, a, b, d, [] { return model; }, Grade::grade, modifiers, source},
#include "emu/unit/catalogue/units.def"
  };
  for (const TableRow& row : kRows) expand(row, table);
  return table;
}

}  // namespace

const std::vector<const Unit*>& all_units() {
  static const Table table = InternScope::for_program(build_table);
  static const std::vector<const Unit*> units = [] {
    std::vector<const Unit*> pointers;
    for (const auto& unit : table) pointers.push_back(unit.get());
    return pointers;
  }();
  return units;
}

}  // namespace numemu::unit

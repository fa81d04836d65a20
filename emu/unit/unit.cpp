// The tables of matrix units: expands the rows once and finds units by name.
#include "emu/unit/unit.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "emu/unit/described.hpp"
#include "emu/unit/described_unit.hpp"
#include "emu/unit/host_eigen.hpp"
#include "emu/unit/models.hpp"
#include "emu/unit/modifiers.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

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
  std::string prefix, a_types, b_types, d_types;
  UnitDescription model;
  Grade grade;
  std::string modifiers, source;
};

using Table = std::vector<std::unique_ptr<Unit>>;

void expand(const TableRow& row, Table& table) {
  const std::vector<std::string> types = words_of(row.a_types, ' ');
  for (const std::string& a : types) {
    for (const std::string& b : partners(a, types, row.b_types)) {
      const auto results =
          row.d_types == "=" ? std::vector<std::string>{a} : words_of(row.d_types, ' ');
      for (const std::string& d : results) {
        UnitDescription u = row.model;
        set_types(u, a, b, d);
        u.name = row.prefix + "." + a + (b == a ? "" : "x" + b) + "." + d;
        UnitRow about;
        about.grade = row.grade;
        about.source = row.source;
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
#include "emu/unit/neutral.def"
#undef NUMEMU_NEUTRAL
  table.push_back(make_host_eigen_f32());
#define NUMEMU_UNIT(prefix, a, b, d, model, grade, modifiers, source) \
  expand({prefix, a, b, d, model, Grade::grade, modifiers, source}, table);
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

/// The unit of the tables with that name, alias or short form.
const Unit* in_tables(std::string_view name) {
  std::vector<const Unit*> short_forms;
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    if (name == row.name || (!row.alias.empty() && name == row.alias)) return unit;
    if (is_short_form(row.name, name)) short_forms.push_back(unit);
  }
  if (short_forms.size() > 1) {
    std::string text;
    for (const Unit* unit : short_forms) text += (text.empty() ? "" : ", ") + unit->row().name;
    throw Error("unit '" + std::string(name) + "' is short for several: " + text);
  }
  return short_forms.empty() ? nullptr : short_forms.front();
}

bool takes(const Unit& unit, const std::string& modifier) {
  for (const std::string& one : unit.row().modifiers) {
    if (one == modifier) return true;
  }
  return false;
}

/// Grades stand in the order of their strength; a definition has no evidence to weaken.
Grade weaker(Grade a, Grade b) { return std::max(a, b); }

std::unique_ptr<Unit> modified(const Unit& base, const std::vector<const Modifier*>& modifiers) {
  UnitDescription u = *base.description();
  UnitRow about = base.row();
  for (const Modifier* modifier : modifiers) {
    modifier->apply(u);
    u.name += "." + modifier->name;
    about.grade =
        modifier == modifiers.front() ? modifier->grade : weaker(about.grade, modifier->grade);
    about.source = modifier->what + "; otherwise: " + about.source;
  }
  about.modifiers.clear();
  about.alias.clear();
  return described_unit(std::move(u), std::move(about));
}

/// A unit whose name ends with modifiers; nullptr where it does not.
std::unique_ptr<Unit> with_modifiers_of(std::string_view name) {
  std::vector<const Modifier*> modifiers;
  std::string_view rest = name;
  for (;;) {
    const std::size_t dot = rest.rfind('.');
    if (dot == rest.npos) break;
    const Modifier* modifier = find_modifier(rest.substr(dot + 1));
    if (modifier == nullptr) break;
    modifiers.push_back(modifier);
    rest = rest.substr(0, dot);
  }
  if (modifiers.empty()) return nullptr;
  // One unit, one name: in the order of the table.
  std::sort(modifiers.begin(), modifiers.end());
  if (std::adjacent_find(modifiers.begin(), modifiers.end()) != modifiers.end())
    throw Error("unit '" + std::string(name) + "': expected each modifier once");
  const Unit* base = in_tables(rest);
  if (base == nullptr) return nullptr;
  for (const Modifier* modifier : modifiers) {
    if (takes(*base, modifier->name)) continue;
    std::string known;
    for (const std::string& one : base->row().modifiers) known += (known.empty() ? "" : ", ") + one;
    throw Error("unit " + base->row().name + " has no modifier '" + modifier->name + "' (it has " +
                (known.empty() ? "none" : known) + ")");
  }
  return modified(*base, modifiers);
}

/// Units made on demand, by canonical name; they live as long as the program.
const Unit& keep(std::unique_ptr<Unit> unit) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Unit>> kept;
  const std::scoped_lock lock(mutex);
  auto& place = kept[unit->row().name];
  if (!place) place = std::move(unit);
  return *place;
}

std::unique_ptr<Unit> from_name(std::string_view name) {
  auto described = parse_described(name);
  if (!described) return nullptr;
  check_description(*described);
  UnitRow about;
  about.grade = Grade::definition;
  about.source = "described by its name";
  return described_unit(std::move(*described), std::move(about));
}

}  // namespace

const std::vector<const Unit*>& all_units() {
  static const Table table = build_table();
  static const std::vector<const Unit*> units = [] {
    std::vector<const Unit*> pointers;
    for (const auto& unit : table) pointers.push_back(unit.get());
    return pointers;
  }();
  return units;
}

const Unit& find_unit(std::string_view name) {
  if (const Unit* unit = in_tables(name)) return *unit;
  if (auto unit = with_modifiers_of(name)) return keep(std::move(unit));
  if (auto unit = from_name(name)) return keep(std::move(unit));
  std::vector<std::string> known;
  for (const Unit* unit : all_units()) {
    known.push_back(unit->row().name);
    if (!unit->row().alias.empty()) known.push_back(unit->row().alias);
  }
  throw Error(unknown_name("unit", name, known));
}

std::vector<const Unit*> with_modifiers(const Unit& unit) {
  std::vector<const Unit*> units{&unit};
  for (const std::string& modifier : unit.row().modifiers)
    units.push_back(&find_unit(unit.row().name + "." + modifier));
  return units;
}

std::unique_ptr<Unit> make_unit(UnitDescription description) {
  check_description(description);
  for (const Unit* known : all_units()) {
    if (known->row().name == description.name)
      throw Error("unit " + description.name +
                  ": name: expected one that no unit of the catalogue has");
  }
  UnitRow about;
  about.source = "described by the user";
  return described_unit(std::move(description), std::move(about));
}

void Unit::require_operands(const Format& a, const Format& b) const {
  const bool a_fits = accepts_a(a);
  if (a_fits && accepts_b(b)) return;
  throw Error("unit " + row().name + " does not take operands of format " + (a_fits ? b : a).name +
              " (it takes " + operand_rule() + ")");
}

const Format* Unit::c_format() const {
  const UnitDescription* u = description();
  if (u == nullptr) return &find_format("float32");
  return u->c != nullptr ? u->c : u->accumulator.format;
}

const Format* Unit::d_format() const {
  const UnitDescription* u = description();
  if (u == nullptr) return &find_format("float32");
  return u->d != nullptr ? u->d : u->accumulator.format;
}

namespace {

struct GradeName {
  Grade grade;
  std::string_view name;
  char letter;
};
constexpr std::array<GradeName, 9> kGrades = {{
    {Grade::definition, "definition", 'D'},
    {Grade::silicon, "silicon", 'S'},
    {Grade::hardware, "hardware", 'H'},
    {Grade::model, "model", 'M'},
    {Grade::leeds, "leeds", 'L'},
    {Grade::vendor, "vendor", 'V'},
    {Grade::anecdotal, "anecdotal", 'W'},
    {Grade::modelled, "modelled", '-'},
    {Grade::not_reproducible, "not reproducible", '-'},
}};

}  // namespace

std::string_view to_string(Grade grade) {
  for (const GradeName& one : kGrades) {
    if (one.grade == grade) return one.name;
  }
  return "unknown";
}

char letter_of(Grade grade) {
  for (const GradeName& one : kGrades) {
    if (one.grade == grade) return one.letter;
  }
  return '?';
}

}  // namespace numemu::unit

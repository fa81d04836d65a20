// Rules of units: descriptions that differ in one parameter, run by the same reference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/oracle/rival.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/description/fields.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using unit::UnitDescription;

/// The kind of fault that a difference of two descriptions is: of the first in this list that has a
/// key which differs.
std::string family_of(const UnitDescription& own, const UnitDescription& rival) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kFamilies{{
      {"core", "order"},
      {"k", "order"},
      {"group", "order"},
      {"order", "order"},
      {"chain.", "order"},
      {"tree.", "order"},
      {"outer.every", "order"},
      {"c_", "C"},
      {"alignment.", "alignment"},
      {"second.", "alignment"},
      {"accumulator.overflow", "saturation"},
      {"accumulator.integer_overflow", "saturation"},
      {"outer.overflow", "saturation"},
      {"accumulator.", "rounding"},
      {"outer.", "rounding"},
      {"subnormals.", "flush"},
      {"nan", "NaN"},
      {"nan_code", "NaN"},
  }};
  std::vector<std::string> values, changed;
  unit::for_each_field(
      own, [&](const char*, const auto& field) { values.push_back(unit::text_of(field)); });
  std::size_t at = 0;
  unit::for_each_field(rival, [&](const char* key, const auto& field) {
    if (values[at++] != unit::text_of(field)) changed.emplace_back(key);
  });
  for (const auto& [begin, family] : kFamilies) {
    const bool whole = !begin.ends_with('.') && !begin.ends_with('_');
    for (const std::string& key : changed) {
      if (whole ? key == begin : key.starts_with(begin)) return std::string(family);
    }
  }
  return changed.size() > 1 ? changed[1].substr(0, changed[1].find('.')) : "";
}

/// The subject computed by another unit.
Rule by_unit(const Subject& s, std::string family, std::string name,
             std::shared_ptr<const unit::Unit> other) {
  Subject theirs = s;
  theirs.unit = other.get();
  theirs.rounding = unit::result_register(*other->description()).rounding;
  theirs.overflow = unit::result_register(*other->description()).overflow;
  return {.family = std::move(family),
          .name = std::move(name),
          .compute = [theirs, other](Records& records) { evaluate(theirs, records); },
          .unit = other};
}

/// Whether the other unit takes the records of the subject, and gives such results.
bool same_records(const Subject& s, const Layout& layout, const unit::Unit& other) {
  try {
    return layout_of(unit_subject(other, s.k, s.a, s.b)) == layout;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<Rule> unit_rules(const Subject& s) {
  std::vector<Rule> rules;
  const Layout layout = layout_of(s);
  for (const Rival& rival : patches_of(*s.unit->description())) {
    std::shared_ptr<const unit::Unit> own = unit::make_unit(rival.description);
    if (same_records(s, layout, *own))
      rules.push_back(by_unit(s, family_of(*s.unit->description(), rival.description), rival.name,
                              std::move(own)));
  }
  for (const unit::Unit* first : unit::all_units()) {
    for (const unit::Unit* other : unit::with_modifiers(*first)) {
      if (other->row().name == s.unit->row().name || !same_records(s, layout, *other)) continue;
      rules.push_back(by_unit(s, "unit", "as " + other->row().name,
                              {std::shared_ptr<const unit::Unit>(), other}));
    }
  }
  return rules;
}

}  // namespace numemu::oracle

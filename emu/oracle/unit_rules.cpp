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
  return {std::move(family), std::move(name),
          [theirs, other](Records& records) { numemu::oracle::evaluate(theirs, records); }, other};
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

std::vector<Rule> operand_rules(const Subject& s) {
  std::vector<Rule> rules;
  const Layout layout = layout_of(s);
  const auto add = [&](std::string family, std::string name, std::function<void(Records&)> change) {
    rules.push_back(
        {std::move(family), std::move(name), [s, change = std::move(change)](Records& records) {
           Records changed = records;
           change(changed);
           numemu::oracle::evaluate(s, changed);
           records = std::move(changed);
         }});
  };
  const auto reversed = [&](std::string family, std::vector<const char*> names, std::string name) {
    std::vector<std::pair<std::size_t, std::ptrdiff_t>> columns;
    for (const char* one : names) {
      const int field = find_field(layout, one);
      if (field < 0) continue;
      const auto at = static_cast<std::size_t>(field);
      if (layout[at].count > 1) columns.emplace_back(at, layout[at].count);
    }
    if (columns.empty()) return;
    add(std::move(family), std::move(name), [columns](Records& records) {
      for (const auto& [at, count] : columns) {
        auto& codes = records.columns[at];
        for (auto i = codes.begin(); i != codes.end(); i += count) std::reverse(i, i + count);
      }
    });
  };
  reversed("operands", {"a"}, "elements of A in reverse order");
  reversed("operands", {"b"}, "elements of B in reverse order");
  reversed("order", {"a", "b"}, "products in descending k");
  reversed("operands", {"sa", "sb"}, "scales in reverse order");
  const int c = find_field(layout, "c");
  if (c >= 0 && s.operation != Operation::fma)
    add("C", "C is not added", [c](Records& records) {
      auto& codes = records.columns[static_cast<std::size_t>(c)];
      std::fill(codes.begin(), codes.end(), 0);
    });
  return rules;
}

std::vector<Rule> rules_of(const Subject& s) {
  std::vector<Rule> rules = s.unit != nullptr ? unit_rules(s) : operation_rules(s);
  std::vector<Rule> more = operand_rules(s);
  std::move(more.begin(), more.end(), std::back_inserter(rules));
  return rules;
}

}  // namespace numemu::oracle

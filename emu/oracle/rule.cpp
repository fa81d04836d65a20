#include "emu/oracle/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/patches.hpp"
#include "emu/oracle/record.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {

namespace {

std::uint64_t sign_of(const Field& f) {
  return f.format != nullptr ? f.format->sign_bit() : std::uint64_t{1} << (f.bits - 1);
}

bool twos_complement(const Field& f) {
  return f.format == nullptr || f.format->kind == Kind::integer;
}

std::uint64_t with_nibbles_swapped(std::uint64_t code, int) {
  return (code & 0x0f) << 4 | (code >> 4 & 0x0f);
}

std::uint64_t with_bytes_reversed(std::uint64_t code, int bits) {
  return __builtin_bswap64(code) >> (64 - bits);
}

}  // namespace

std::uint64_t negated(const Field& f, std::uint64_t code) {
  const std::uint64_t sign = sign_of(f);
  if (sign == 0) return code;
  if (twos_complement(f)) return (~code + 1) & (2 * sign - 1);
  const bool no_sign = !f.format->has_negative_zero() && (code & ~sign) == 0;
  return no_sign ? code : code ^ sign;
}

std::uint64_t without_sign(const Field& f, std::uint64_t code) {
  if (twos_complement(f)) return (code & sign_of(f)) != 0 ? negated(f, code) : code;
  const bool no_sign = !f.format->has_negative_zero() && (code & ~sign_of(f)) == 0;
  return no_sign ? code : code & ~sign_of(f);
}

std::uint64_t plus_zero(const Field& f, std::uint64_t code) {
  const bool has = f.format != nullptr && f.format->has_negative_zero();
  return has && code == f.format->sign_bit() ? 0 : code;
}

std::vector<BitOrder> bit_orders(int bits) {
  if (bits == 8) return {{"nibbles of the codes of {} swapped", with_nibbles_swapped}};
  if (bits == 16 || bits == 32 || bits == 64)
    return {{"bytes of the codes of {} in reverse order", with_bytes_reversed}};
  return {};
}

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
  const std::vector<std::string> changed = changed_keys(own, rival);
  for (const auto& [begin, family] : kFamilies) {
    const bool whole = !begin.ends_with('.') && !begin.ends_with('_');
    for (const std::string& key : changed) {
      if (whole ? key == begin : key.starts_with(begin)) return std::string(family);
    }
  }
  return changed.empty() ? "" : changed[0].substr(0, changed[0].find('.'));
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
    return layout_of(with_results_of(s, unit_subject(other, s.k, s.a, s.b))) == layout;
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

Records predict(const Subject& s, const Rule& rule, Records records, const Sample& sample,
                const Rule& then) {
  for (const Rule* one : {&rule, &then}) {
    if (one->inputs) one->inputs(records, sample);
  }
  if (rule.compute) {
    rule.compute(records);
  } else {
    evaluate(s, records);
  }
  for (const Rule* one : {&rule, &then}) {
    if (one->results) one->results(records, sample);
  }
  return records;
}

std::vector<Rule> rules_of(const Subject& s) {
  std::vector<Rule> all = s.unit != nullptr ? unit_rules(s) : operation_rules(s);
  for (auto part : {epilogue_rules, operand_rules, format_rules, stream_rules, result_rules}) {
    std::vector<Rule> more = part(s);
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace numemu::oracle

#include "emu/oracle/parting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/oracle/unit_dot.hpp"
#include "emu/unit/reference/divergence.hpp"
#include "formats/codec.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::oracle {
namespace {

std::string number(Value v) {
  const bool sticky = v.sticky;
  v.sticky = false;
  return hex_text(v) + (sticky ? "+" : "");
}

/// The first addend of the two steps that parts them, where they are steps of the same products.
std::string first_addend(const unit::Divergence& d) {
  if (!d.in_sum) return "";
  const unit::TraceStep &mine = d.first.trace.steps[d.first.end - 1],
                        &its = d.second.trace.steps[d.second.end - 1];
  if (mine.what != its.what) return "";
  for (std::size_t t = 0; t < std::min(mine.terms.size(), its.terms.size()); ++t) {
    const unit::TraceTerm &x = mine.terms[t], &y = its.terms[t];
    if (x.k == y.k && unit::same_number(x.kept, y.kept)) continue;
    return fmt::format("{}{}: {} added, by the rule {}", x.what,
                       x.k < 0 ? "" : fmt::format(" of k {}", x.k), number(x.kept), number(y.kept));
  }
  return "";
}

std::vector<std::string> of_unit(const Subject& s, const Records& one, const Rule* rule) {
  if (rule == nullptr) return {};
  if (rule->unit == nullptr || s.rounding.stochastic()) return {"by the rule: " + rule->name};
  UnitDot dot(s, layout_of(s));
  const unit::Divergence d = unit::find_divergence(
      *s.unit->description(), *rule->unit->description(), dot.gemm(one, 0), 0, 0);
  std::vector<std::string> lines = {unit::divergence_line(d)};
  const std::string addend = first_addend(d);
  if (!addend.empty()) lines.push_back(addend);
  return lines;
}

/// "in 3f9a0000, "
std::string operands_text(const Layout& layout, const Records& one) {
  std::string text;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (!layout[f].result && layout[f].count == 1)
      text +=
          fmt::format("{} {:0{}x}, ", layout[f].name, one.columns[f][0], (layout[f].bits + 3) / 4);
  }
  return text;
}

/// Where the exact result lies between two neighbouring codes.
std::vector<std::string> of_operation(const Subject& s, const Records& one) {
  const Format& to = *s.to;
  const Value exact = exact_result(s, one, 0);
  std::string line = operands_text(layout_of(s), one) + "exact result " + number(exact);
  if (exact.kind != Class::finite) return {line};
  const auto code = [&](const Value& v, RoundingMode mode) {
    return encode(to, v, {.mode = mode}, Overflow::propagate);
  };
  const Encoded down = code(exact, RoundingMode::rtz);
  const RoundingMode outwards = exact.negative ? RoundingMode::rdn : RoundingMode::rup;
  const std::uint64_t away = code(exact, outwards).code;
  if (down.code == away || (down.flags & kInexact) == 0) return {line};
  // Slightly less and slightly more than the exact result.
  const int room = exact.sticky ? 0 : std::countl_zero(exact.significand);
  Value less = exact;
  less.significand <<= room;
  less.exponent -= room;
  less.sticky = true;
  Value more = less;
  if (!exact.sticky) --less.significand;
  const bool low = code(less, RoundingMode::rne).code == down.code;
  const bool high = code(more, RoundingMode::rne).code == away;
  const char* where = low && high ? "halfway between"
                      : low       ? "nearer to the first of"
                                  : "nearer to the second of";
  const int digits = (to.bits + 3) / 4;
  return {line + fmt::format(", {} {:0{}x} and {:0{}x}", where, down.code, digits, away, digits)};
}

}  // namespace

std::vector<std::string> parting(const Subject& s, const Records& one, const Rule* rule) {
  return s.unit != nullptr ? of_unit(s, one, rule) : of_operation(s, one);
}

}  // namespace numemu::oracle

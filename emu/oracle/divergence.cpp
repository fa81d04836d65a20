#include "emu/oracle/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/oracle/unit_dot.hpp"
#include "emu/unit/description/fields.hpp"
#include "formats/codec.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::oracle {
namespace {

std::string number(Value v) {
  const bool sticky = v.sticky;
  v.sticky = false;
  return hex_text(v) + (sticky ? "+" : "");
}

/// "register 40490fdb = 0x1.921fb6p+1", or of two's complement without the number.
std::string register_text(const unit::UnitDescription& u, const unit::TraceStep& step) {
  if (!step.result) return "nan";
  const Format* format = u.accumulator.format;
  const int bits = format != nullptr ? format->bits : u.accumulator.bits;
  std::string text = fmt::format("{:0{}x}", *step.result, (bits + 3) / 4);
  if (format != nullptr) text += " = " + number(decode(*format, *step.result));
  return text;
}

std::vector<std::string> of_unit(const Subject& s, const Records& one, const Rule* rule) {
  const unit::UnitDescription& own = *s.unit->description();
  if (rule == nullptr || rule->unit == nullptr)
    return rule == nullptr ? std::vector<std::string>{}
                           : std::vector<std::string>{"by the rule: " + rule->name};
  const unit::UnitDescription& other = *rule->unit->description();
  Subject theirs = s;
  theirs.unit = rule->unit.get();
  unit::Trace mine, its;
  UnitDot(s, layout_of(s)).of(one, 0, &mine);
  UnitDot(theirs, layout_of(theirs)).of(one, 0, &its);
  for (std::size_t i = 0; i < mine.steps.size(); ++i) {
    const unit::TraceStep& a = mine.steps[i];
    if (i == its.steps.size()) return {fmt::format("{}: the rule has ended", a.what)};
    const unit::TraceStep& b = its.steps[i];
    if (a.result == b.result && a.what == b.what) continue;
    std::string term;
    for (std::size_t t = 0; a.what == b.what && t < std::min(a.terms.size(), b.terms.size()); ++t) {
      const unit::TraceTerm &x = a.terms[t], &y = b.terms[t];
      if (number(x.kept) == number(y.kept) && x.k == y.k) continue;
      term =
          fmt::format("{}{}: {} added, by the rule {}", x.what,
                      x.k < 0 ? "" : fmt::format(" of k {}", x.k), number(x.kept), number(y.kept));
      break;
    }
    std::vector<std::string> lines = {
        fmt::format("{}: register {}", a.what, register_text(own, a)),
        fmt::format("by the rule, {}: register {}", b.what, register_text(other, b))};
    if (a.sum && b.sum && a.what == b.what) {
      lines[0] += ", sum " + number(*a.sum);
      lines[1] += ", sum " + number(*b.sum);
    }
    if (!term.empty()) lines.push_back(std::move(term));
    return lines;
  }
  return {"every step as expected; the results differ in how they are written"};
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
  Value less = exact, more = exact;
  more.sticky = true;
  if (!exact.sticky) {
    less = {Class::finite, exact.negative, true, exact.exponent - 1, 2 * exact.significand - 1};
  }
  const bool low = code(less, RoundingMode::rne).code == down.code;
  const bool high = code(more, RoundingMode::rne).code == away;
  const char* where = low && high ? "halfway between"
                      : low       ? "nearer to the first of"
                                  : "nearer to the second of";
  const int digits = (to.bits + 3) / 4;
  return {line + fmt::format(", {} {:0{}x} and {:0{}x}", where, down.code, digits, away, digits)};
}

}  // namespace

std::vector<std::string> divergence(const Subject& s, const Records& one, const Rule* rule) {
  return s.unit != nullptr ? of_unit(s, one, rule) : of_operation(s, one);
}

}  // namespace numemu::oracle

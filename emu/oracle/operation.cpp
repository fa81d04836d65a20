#include "emu/oracle/operation.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <compare>
#include <vector>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {
namespace {

using A = Arithmetic;

constexpr auto kRows = std::to_array<OperationRow>({
    {"convert", "", A::number, "one rounding"},
    {"mul", "", A::products, "a * b"},
    {"add", "", A::sum, "a + b"},
    {"fma", "fmadd", A::products, "a * b + c", true},
    {"dot", "", A::products, "the exact sum of K products and c", true},
    {"sub", "", A::sum, "a - b", false, false, true},
    {"div", "", A::quotient, "a / b"},
    {"sqrt", "", A::root, "the square root"},
    {"fmsub", "", A::products, "a * b - c", true, false, true},
    {"fnmsub", "", A::products, "-(a * b) + c", true, true, false},
    {"fnmadd", "", A::products, "-(a * b) - c", true, true, true},
    {.name = "minimum",
     .alias = "fminm",
     .arithmetic = A::choice,
     .what = "the smaller; NaN if either is"},
    {.name = "maximum",
     .alias = "fmaxm",
     .arithmetic = A::choice,
     .what = "the larger; NaN if either is",
     .largest = true},
    {.name = "minimum_number",
     .alias = "min",
     .arithmetic = A::choice,
     .what = "the smaller; the other if one is NaN",
     .nan = NanOperand::loses},
    {.name = "maximum_number",
     .alias = "max",
     .arithmetic = A::choice,
     .what = "the larger; the other if one is NaN",
     .largest = true,
     .nan = NanOperand::loses},
    {.name = "min_num",
     .alias = "",
     .arithmetic = A::choice,
     .what = "the smaller; the other if one is a quiet NaN",
     .nan = NanOperand::loses_if_quiet},
    {.name = "max_num",
     .alias = "",
     .arithmetic = A::choice,
     .what = "the larger; the other if one is a quiet NaN",
     .largest = true,
     .nan = NanOperand::loses_if_quiet},
    {.name = "eq", .alias = "feq", .arithmetic = A::comparison, .what = "a == b", .equal = true},
    {.name = "lt",
     .alias = "flt",
     .arithmetic = A::comparison,
     .what = "a < b; NV for any NaN",
     .less = true,
     .any_nan_invalid = true},
    {.name = "le",
     .alias = "fle",
     .arithmetic = A::comparison,
     .what = "a <= b; NV for any NaN",
     .equal = true,
     .less = true,
     .any_nan_invalid = true},
    {.name = "eq_signaling",
     .alias = "",
     .arithmetic = A::comparison,
     .what = "a == b; NV for any NaN",
     .equal = true,
     .any_nan_invalid = true},
    {.name = "lt_quiet",
     .alias = "fltq",
     .arithmetic = A::comparison,
     .what = "a < b",
     .less = true},
    {.name = "le_quiet",
     .alias = "fleq",
     .arithmetic = A::comparison,
     .what = "a <= b",
     .equal = true,
     .less = true},
    {.name = "to_integer",
     .alias = "",
     .arithmetic = A::number,
     .what = "one rounding to an integer, without NX",
     .hides_inexact = true},
    {.name = "unit", .alias = "", .arithmetic = A::products, .what = "a unit", .has_c = true},
});
static_assert(kRows.size() == static_cast<std::size_t>(Operation::unit) + 1);

constexpr auto kNames = [] {
  std::array<std::string_view, kRows.size() - 1> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kRows[i].name;
  return names;
}();

}  // namespace

const OperationRow& row_of(Operation operation) {
  return kRows[static_cast<std::size_t>(operation)];
}

std::string_view to_string(Operation operation) { return row_of(operation).name; }

std::span<const std::string_view> operation_names() { return kNames; }

std::string joined_operation_names() {
  return joined(std::vector<std::string_view>(kNames.begin(), kNames.end()), " or ");
}

Operation parse_operation(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kRows[i].name == text || (!text.empty() && kRows[i].alias == text))
      return static_cast<Operation>(i);
  }
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  if (suggested_name(text, known)) throw Error(unknown_name("operation", text, known));
  throw Error(fmt::format("unknown operation '{}'; known: {}", text, joined(known, ", ")));
}

ExactResult exact_quotient_of(const Value& a, const Value& b) {
  const bool negative = a.negative != b.negative;
  const auto is = [](const Value& v, Class kind) { return v.kind == kind; };
  if (is(a, Class::nan) || is(b, Class::nan))
    return {{.kind = Class::nan}, is_signalling(a) || is_signalling(b)};
  if ((is(a, Class::zero) && is(b, Class::zero)) ||
      (is(a, Class::infinite) && is(b, Class::infinite)))
    return {{.kind = Class::nan}, true};
  if (is(b, Class::zero))
    return {{.kind = Class::infinite, .negative = negative}, false, is(a, Class::finite)};
  if (is(b, Class::infinite)) return {{.kind = Class::zero, .negative = negative}};
  Value q = exact_quotient(a, b);
  q.negative = negative;
  return {q};
}

ExactResult exact_choice(const OperationRow& row, const Value& a, const Value& b,
                         std::strong_ordering order) {
  const bool nan_a = a.kind == Class::nan, nan_b = b.kind == Class::nan;
  const bool signalling = is_signalling(a) || is_signalling(b);
  if (nan_a || nan_b) {
    const bool loses =
        row.nan == NanOperand::loses || (row.nan == NanOperand::loses_if_quiet && !signalling);
    if ((nan_a && nan_b) || !loses) return {{.kind = Class::nan}, signalling};
    return {nan_a ? b : a, signalling};
  }
  if (order == 0) order = !a.negative <=> !b.negative;
  return {(order < 0) != row.largest ? a : b};
}

ExactResult exact_comparison(const OperationRow& row, const Value& a, const Value& b,
                             std::strong_ordering order) {
  const bool any_nan = a.kind == Class::nan || b.kind == Class::nan;
  const bool invalid = is_signalling(a) || is_signalling(b) || (any_nan && row.any_nan_invalid);
  if (any_nan) return {{}, invalid};
  const bool holds = order == 0 ? row.equal : order < 0 && row.less;
  return {holds ? Value{Class::finite, false, false, 0, 1} : Value{}};
}

namespace {

/// Of a positive number. The significand becomes an integer of 127 or 128 bits times an even power
/// of two; its root, found bit by bit, has 64.
Value root_of(const Value& x) {
  __extension__ typedef unsigned __int128 Wide;
  const int zeros = std::countl_zero(x.significand);
  std::int64_t exponent = std::int64_t{x.exponent} - zeros - 64;
  Wide rest = Wide{x.significand << zeros} << 64;
  if (exponent % 2 != 0) {
    rest >>= 1;
    ++exponent;
  }
  Wide digits = 0;
  for (Wide bit = Wide{1} << 126; bit != 0; bit >>= 2) {
    const Wide trial = digits + bit;
    digits >>= 1;
    if (rest < trial) continue;
    rest -= trial;
    digits += bit;
  }
  return {Class::finite, false, rest != 0, static_cast<std::int32_t>(exponent / 2),
          static_cast<std::uint64_t>(digits)};
}

}  // namespace

ExactResult exact_root_of(const Value& v) {
  if (v.kind == Class::nan) return {{.kind = Class::nan}, is_signalling(v)};
  if (v.kind == Class::zero) return {v};
  if (v.negative) return {{.kind = Class::nan}, true};
  return {v.kind == Class::finite ? root_of(v) : v};
}

}  // namespace numemu::oracle

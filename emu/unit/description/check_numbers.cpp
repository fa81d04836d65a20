// Refusals that concern numbers: subnormals, NaN, block scales, sparsity, the rounding of operands.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <utility>

#include "emu/unit/description/bounds.hpp"
#include "emu/unit/description/check.hpp"
#include "emu/unit/description/fields.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

constexpr int kLargestPattern = 16;  ///< M of N:M
constexpr int kLargestShift = 127;   ///< of Arm's LSCALE

}  // namespace

void DescriptionCheck::subnormals() {
  const Subnormals& s = u_.subnormals;
  const auto floats = [](const Format* f) { return f == nullptr || f->kind == Kind::floating; };
  if (s.flush_inputs)
    require(floats(u_.a) || floats(u_.b), "subnormals.flush_inputs",
            "together with a floating operand");
  if (!s.flush_results || s.tiny_before_rounding) return;
  constexpr std::string_view kExpected =
      "rne with subnormals.flush_results (or tiny_before_rounding true): tiny is judged as if "
      "rounded to nearest even";
  require(u_.accumulator.rounding.mode == RoundingMode::rne, "accumulator.rounding", kExpected);
  require(u_.c_rounding.mode == RoundingMode::rne, "c_rounding", kExpected);
  require(u_.outer.accumulator.rounding.mode == RoundingMode::rne, "outer.rounding", kExpected);
}

void DescriptionCheck::nan() {
  if (twos_complement(u_)) {
    const bool unused = is_integer_core(u_) && u_.nan_code == UnitDescription{}.nan_code;
    require(u_.nan_code == 0 || unused, "nan_code", "0x0 with a two's complement register");
    return;
  }
  const Format& d = *result_format(u_);
  const bool is_code = u_.nan_code <= d.last_code();
  if (!d.has_nan()) {
    require(is_code, "nan_code", fmt::format("a code of {}, which has no NaN", d.name));
    return;
  }
  require(is_code && decode(d, u_.nan_code).kind == Class::nan, "nan_code",
          fmt::format("a NaN of {}, such as {}", d.name, text_of(d.nan_code())));
  if (u_.nan != NanRule::x86) return;
  for (const auto& [key, format] : {std::pair("a", u_.a), std::pair("b", u_.b),
                                    std::pair("c", c_format(u_)), std::pair("d", result_format(u_)),
                                    std::pair("accumulator.format", u_.accumulator.format)}) {
    const bool can_be_nan =
        format != nullptr && format->kind == Kind::floating && format->has_nan();
    require(!can_be_nan || (format->specials == Specials::ieee && format->mantissa_bits >= 2), key,
            "a format whose NaN has a payload with nan x86");
  }
}

void DescriptionCheck::scaling() {
  const Scaling& s = u_.scaling;
  if (s.point == Scaling::Point::after_sum) {
    require(u_.core == CoreKind::exact, "scaling.point", "core exact with after_sum");
    in_range(s.shift, "scaling.shift", 0, kLargestShift);
  }
  if (!block_scaled(u_)) return;
  const bool groups = s.point == Scaling::Point::groups;
  require(u_.core == CoreKind::fused || (!groups && u_.core == CoreKind::exact), "scaling.point",
          groups ? "core fused with groups" : "core fused or exact with exponents");
  const bool known =
      require(s.format != nullptr && s.format->kind == Kind::floating && s.format->bits <= 8,
              "scaling.format", "a floating format of at most 8 bits, such as float8_e8m0fnu");
  in_range(s.block, "scaling.block", 1, kLargestSize);
  require(u_.sparsity.dense(), "sparsity", "null with block scales");
  if (!known) return;
  if (!groups) {
    require(u_.core == CoreKind::exact || s.format->mantissa_bits == 0, "scaling.format",
            "powers of two, such as float8_e8m0fnu, with scaling.point exponents");
    return;
  }
  require(s.block % kScaledGroup == 0, "scaling.block", "a multiple of 16 with scaling groups");
  require(step_ != 0 && step_ % kScaledGroup == 0, "group", "a multiple of 16 with scaling groups");
  require(u_.order == StepOrder::ascending, "order", "ascending with scaling groups");
  require(u_.a == nullptr || u_.b == nullptr || group_sums_fit(u_), "b",
          "operands whose exact sums of 16 products, times both scales, fit 64 bits");
}

void DescriptionCheck::sparsity() {
  const Sparsity& s = u_.sparsity;
  if (s.dense()) {
    require(s.kept == 0, "sparsity", "0:0 (dense) or N:M");
    return;
  }
  require(s.group > 0 && s.group <= kLargestPattern && s.kept >= 1 && s.kept <= s.group, "sparsity",
          "N:M with 1 <= N <= M <= 16");
}

void DescriptionCheck::input() {
  const Format* format = u_.input.format;
  if (format == nullptr) return;
  require(format->kind == Kind::floating && format->is_signed && format->has_zero(), "input.format",
          "a signed floating format with a zero");
  for (const Format* operand : {u_.a, u_.b}) {
    if (operand == nullptr) continue;
    require(operand->kind == Kind::floating, "input.format", "together with floating operands");
  }
}

}  // namespace numemu::unit

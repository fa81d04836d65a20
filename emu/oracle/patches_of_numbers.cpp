// Patches of what happens to numbers: subnormals, operands, overflow, NaN.
#include <fmt/format.h>

#include <algorithm>

#include "emu/oracle/patches.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "formats/convert.hpp"

namespace numemu::oracle {
namespace {

using unit::CoreKind;
using unit::IntegerOverflow;
using unit::NanRule;
using unit::Scaling;
using unit::UnitDescription;

bool nearest_even(const UnitDescription& u) {
  return u.accumulator.rounding.mode == RoundingMode::rne &&
         u.c_rounding.mode == RoundingMode::rne &&
         u.outer.accumulator.rounding.mode == RoundingMode::rne;
}

}  // namespace

void Patches::subnormals() {
  const auto flag = [&](const char* on, const char* off, bool unit::Subnormals::*field) {
    for (const bool value : {true, false})
      add(value ? on : off, [&](UnitDescription& u) {
        u.subnormals.*field = value;
        // Tiny after rounding means: to nearest even.
        if (field == &unit::Subnormals::flush_results && !nearest_even(u))
          u.subnormals.tiny_before_rounding = value;
        if (!u.subnormals.flush_inputs) u.subnormals.inputs_to_plus_zero = false;
        if (!u.subnormals.flush_results) u.subnormals.tiny_before_rounding = false;
      });
  };
  flag("subnormal inputs read as zero", "subnormal inputs read as they are",
       &unit::Subnormals::flush_inputs);
  flag("flushed inputs and -0 read as +0", "flushed inputs keep their sign",
       &unit::Subnormals::inputs_to_plus_zero);
  flag("subnormal C read as zero", "subnormal C read as it is", &unit::Subnormals::flush_c);
  flag("subnormal results flushed to zero", "subnormal results written",
       &unit::Subnormals::flush_results);
  flag("results judged tiny before rounding", "results judged tiny after rounding",
       &unit::Subnormals::tiny_before_rounding);
}

bool Patches::changes_operands(const Format& format, RoundingMode mode) const {
  const Format* const operands[] = {u_.a, u_.b};
  const auto held = [&](const Format* f) { return f != nullptr && exact_in(*f, format); };
  const auto normal = [&](const Format* f) {
    return f->kind == Kind::floating &&
           unit::smallest_normal_exponent(*f) != unit::smallest_normal_exponent(format);
  };
  if (!std::all_of(std::begin(operands), std::end(operands), held)) return true;
  return mode == RoundingMode::rne && u_.core == CoreKind::fused &&
         std::any_of(std::begin(operands), std::end(operands), normal);
}

void Patches::input() {
  const auto drop = [&](const char* name, const Format* format, RoundingMode mode) {
    const std::string how = format == nullptr
                                ? "operands enter as they are"
                                : fmt::format("operands rounded {} to {}", words(mode), name);
    add(how, [&](UnitDescription& u) { u.input = {format, {.mode = mode}}; });
  };
  drop("", nullptr, RoundingMode::rne);
  for (const char* name : {"tfloat32", "bfloat16", "float16"}) {
    for (const RoundingMode mode : {RoundingMode::rtz, RoundingMode::rne, RoundingMode::rna}) {
      const Format& format = find_format(name);
      if (changes_operands(format, mode)) drop(name, &format, mode);
    }
  }
  for (const int shift : {0, 1, 2, 4, 8}) {
    if (u_.scaling.point == Scaling::Point::exponents || u_.scaling.point == Scaling::Point::groups)
      break;
    add(fmt::format("the sum scaled by 2^-{}", shift), [shift](UnitDescription& u) {
      u.scaling = {};
      if (shift != 0) u.scaling.point = Scaling::Point::after_sum;
      u.scaling.shift = shift;
    });
  }
}

void Patches::overflow() {
  for (const auto& [name, rule] :
       {std::pair("wraps", IntegerOverflow::wrap),
        std::pair("saturates once per step", IntegerOverflow::saturate_once),
        std::pair("saturates after every addition", IntegerOverflow::saturate_each)}) {
    add(name, [&, value = rule](UnitDescription& u) { u.accumulator.integer = value; });
  }
  for (const auto& [name, rule] :
       {std::pair("overflow as IEEE 754 rounds it", Overflow::ieee),
        std::pair("overflow gives the largest number", Overflow::saturate),
        std::pair("overflow gives infinity or NaN", Overflow::propagate)}) {
    add(name, [&, value = rule](UnitDescription& u) {
      u.accumulator.overflow = value;
      u.accumulator.overflow_to_infinity = false;
    });
  }
  // To nearest it does so in any case.
  if (u_.accumulator.rounding.mode == RoundingMode::rne) return;
  add("overflow gives infinity for any rounding", [](UnitDescription& u) {
    u.accumulator.overflow = Overflow::ieee;
    u.accumulator.overflow_to_infinity = true;
  });
}

void Patches::nan() {
  const Format* d = unit::result_format(u_);
  if (d == nullptr || !d->has_nan()) return;
  add("the first NaN operand, quieted", [](UnitDescription& u) { u.nan = NanRule::x86; });
  add("one canonical NaN", [](UnitDescription& u) { u.nan = NanRule::canonical; });
  for (const std::uint64_t code : {d->nan_code(), d->nan_code() | d->sign_bit(),
                                   d->code_mask() & ~d->sign_bit(), d->code_mask()})
    add(fmt::format("NaN is written as {}", unit::text_of(code)),
        [code](UnitDescription& u) { u.nan_code = code; });
}

}  // namespace numemu::oracle

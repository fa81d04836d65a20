// Patches of what sums are rounded to and held in, at one level of accumulation or two.
#include <fmt/format.h>

#include <utility>

#include "emu/oracle/patches.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::oracle {
namespace {

using unit::Register;
using unit::UnitDescription;

constexpr int kMostDescribed = 23;  ///< mantissa bits of a format that has no name

}  // namespace

void Patches::widths(const char* what, const Format& held, const Format& whole,
                     Register& (*put)(UnitDescription&)) {
  if (whole.specials != Specials::ieee || whole.field_zero != FieldZero::subnormal) return;
  for (int bits = 1; bits <= whole.mantissa_bits; ++bits) {
    if (bits > kMostDescribed && bits != whole.mantissa_bits) continue;
    add(fmt::format("{} keeps {} fraction bits instead of {}", what, bits, held.mantissa_bits),
        [&](UnitDescription& u) {
          u.c = unit::c_format(u_);
          u.d = unit::result_format(u_);
          put(u).format = bits == whole.mantissa_bits
                              ? &whole
                              : &find_format(fmt::format("e{}m{}", whole.exponent_bits, bits));
        });
  }
}

void Patches::result() {
  for (const RoundingMode mode : kModes) {
    add(fmt::format("rounds {}", words(mode)),
        [mode](UnitDescription& u) { u.accumulator.rounding = {.mode = mode}; });
  }
  const Format* r = u_.accumulator.format;
  if (r == nullptr) return;
  for (const bool plus : {false, true}) {
    add(fmt::format("a sum that cancels is {} where it is rounded down", plus ? "+0" : "-0"),
        [plus](UnitDescription& u) { u.plus_zero_sums = plus; });
  }
  const Format& d = *unit::result_format(u_);
  // The first register of two may have exponents that D does not have.
  const bool alone = u_.outer.every == 0 || r->exponent_bits == d.exponent_bits;
  widths("the register", *r, alone ? d : *r,
         [](UnitDescription& u) -> Register& { return u.accumulator; });
}

void Patches::levels() {
  const int every = u_.outer.every;
  const Format* const d = unit::result_format(u_);
  if (every == 0) {
    if (d == nullptr) return;
    for (const int sum : {4, 8, 16, 32, 64, 128, 256}) {
      add(fmt::format("sums promoted every {} products to {}", sum, d->name),
          [&](UnitDescription& u) {
            u.c = unit::c_format(u_);
            u.d = d;
            u.outer = {sum, {.format = d}};
          });
    }
    return;
  }
  for (const int sum : {every / 2, 2 * every}) {
    add(fmt::format("sums promoted every {} products instead of {}", sum, every),
        [sum](UnitDescription& u) { u.outer.every = sum; });
  }
  for (const auto& [name, held] :
       {std::pair("sums never promoted", &u_.accumulator),
        std::pair("one level, in the outer register", &u_.outer.accumulator)}) {
    add(name, [&, one = held](UnitDescription& u) {
      u.c = unit::c_format(u_);
      u.d = d;
      u.accumulator = *one;
      u.outer = {};
    });
  }
  outer_register();
}

void Patches::outer_register() {
  const Format* const r = u_.outer.accumulator.format;
  if (r == nullptr) return;
  for (const RoundingMode mode : kModes) {
    add(fmt::format("the outer register rounds {}", words(mode)),
        [mode](UnitDescription& u) { u.outer.accumulator.rounding = {.mode = mode}; });
  }
  widths("the outer register", *r, *unit::result_format(u_),
         [](UnitDescription& u) -> Register& { return u.outer.accumulator; });
  for (const auto& [name, rule] : {std::pair("as IEEE 754 rounds it", Overflow::ieee),
                                   std::pair("to the largest number", Overflow::saturate),
                                   std::pair("to infinity or NaN", Overflow::propagate)}) {
    add(fmt::format("the outer register overflows {}", name),
        [&, value = rule](UnitDescription& u) {
          u.outer.accumulator.overflow = value;
          u.outer.accumulator.overflow_to_infinity = false;
        });
  }
  for (const char* name : {"float16", "bfloat16", "float32"}) {
    add(fmt::format("sums held in {} before they are promoted", name),
        [name](UnitDescription& u) { u.accumulator.format = &find_format(name); });
  }
}

}  // namespace numemu::oracle

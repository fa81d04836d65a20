// The zeros of a format, from its parameters.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/sparse/zero_codes.hpp"

#include <fmt/format.h>

#include "formats/codebook.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

/// Index of the entry 0 (entries ascend).
std::uint32_t zero_entry(const Codebook& book) {
  std::uint32_t code = 0;
  while (book.value(code).kind != Class::zero) ++code;
  return code;
}

bool nan_at_negative_zero(const Format& format) {
  switch (format.specials) {
    case Specials::fnuz:
    case Specials::p3109_extended:
    case Specials::p3109_finite:
      return format.kind == Kind::floating && format.is_signed;
    default:
      return false;
  }
}

}  // namespace

ZeroCodes zero_codes(const Format& format) {
  if (format.bits + format.container_shift > 32)
    throw Error(fmt::format("format {}: expected at most 32 bits", format.name));
  const auto sign = static_cast<std::uint32_t>(format.sign_bit());
  ZeroCodes z;
  z.code = z.magnitude = static_cast<std::uint32_t>(format.code_mask());
  switch (format.kind) {
    case Kind::integer:
      z.count = 1;
      break;
    case Kind::sign:
      break;
    case Kind::codebook:
      if (!format.has_zero()) break;
      z.first = zero_entry(*format.codebook);
      z.count = 1;
      break;
    case Kind::floating:
      if (!format.has_zero()) break;
      z.count = format.field_zero == FieldZero::flush ? 1u << format.mantissa_bits : 1u;
      z.magnitude &= ~sign;
      break;
  }
  // Outside the NaN slot: the code after the zeros, which is none. Beyond the container's largest
  // code that is code 0, of a codebook whose last entry is zero.
  z.never = nan_at_negative_zero(format) ? sign : z.first + z.count;
  for (std::uint32_t* bits : {&z.magnitude, &z.first, &z.count, &z.code, &z.never})
    *bits <<= format.container_shift;
  return z;
}

std::optional<std::uint32_t> zero_container(const Format& format) {
  const ZeroCodes z = zero_codes(format);
  if (z.count == 0) return std::nullopt;
  return z.first;
}

}  // namespace numemu::unit

// Cold: a negligible share of any run (docs/build.md).
#include "formats/conversion.hpp"

namespace numemu {

Encoded encode_element(const Conversion& c, const Value& value, std::int64_t i) {
  const Format& f = *c.format;
  Encoded result = encode(f, value, c.rounding, c.overflow, c.random_bits(i));
  const bool leave_out = c.symmetric && f.kind == Kind::integer && f.is_signed;
  if (leave_out && result.code == f.largest_code(true)) {
    result.code += 1;
    result.flags |= kOverflow | kInexact;
  }
  return result;
}

void FlagCounts::add(std::uint8_t flags) {
  inexact += (flags & kInexact) != 0;
  underflow += (flags & kUnderflow) != 0;
  overflow += (flags & kOverflow) != 0;
  invalid += (flags & kInvalid) != 0;
}

FlagCounts& FlagCounts::operator+=(const FlagCounts& other) {
  elements += other.elements;
  inexact += other.inexact;
  underflow += other.underflow;
  overflow += other.overflow;
  invalid += other.invalid;
  return *this;
}

}  // namespace numemu

// The reference conversion, code to value and value to code: the specification of every fast path.
#pragma once
#include <cstdint>

#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace numemu {

/// Exception flags in the order of RISC-V fflags.
enum Flag : std::uint8_t {
  kInexact = 1,
  kUnderflow = 2,
  kOverflow = 4,
  kDivideByZero = 8,
  kInvalid = 16
};

struct Encoded {
  std::uint64_t code = 0;
  std::uint8_t flags = 0;
};

/// The value of a code; bits above `format.bits` must be zero.
Value decode(const Format& format, std::uint64_t code);

/// The code of a value: rounds the exact real at the format's precision at that exponent, then
/// tests overflow. `random` holds the random bits of sr(n) in its low n bits. Semantics:
/// docs/formats.md. A sticky value needs two more significant bits than the format, and n + 2 more
/// for sr(n).
Encoded encode(const Format& format, const Value& value, const Rounding& rounding,
               Overflow overflow, std::uint32_t random = 0);

/// The float32 nearest to a value, ties to even; infinity beyond the largest. NaN keeps its sign.
float nearest_float(const Value& value);

}  // namespace numemu

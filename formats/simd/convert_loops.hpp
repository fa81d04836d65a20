// The vector loops of float32 conversions, dispatched at run time to the best instruction set.
#pragma once
#include <cstdint>

#include "formats/simd/plan.hpp"

namespace numemu::simd {

/// Where a loop reads and writes. Every output may be absent; lengths are n elements.
struct Arrays {
  const float* x = nullptr;
  std::int64_t n = 0;
  float* values = nullptr;           ///< y = decode(encode(x)); may be x itself
  std::uint8_t* codes8 = nullptr;    ///< formats of at most 8 bits
  std::uint16_t* codes16 = nullptr;  ///< formats of 9 to 16 bits
  std::uint32_t* codes32 = nullptr;  ///< formats of 17 to 32 bits, in their containers
  std::uint8_t* flags = nullptr;
  const std::uint32_t* random = nullptr;  ///< one word per element, r in its low bits
  bool stream = false;                    ///< values and codes32 bypass the caches

  void set_output(float* out) { values = out; }
  void set_output(std::uint8_t* out) { codes8 = out; }
  void set_output(std::uint16_t* out) { codes16 = out; }
  void set_output(std::uint32_t* out) { codes32 = out; }
};

/// Exactly one of values, codes8 and codes16 is given (codes32: shared_exponent.hpp). The host's
/// floating-point control must be the IEEE default except for its rounding, which is the plan's
/// (FloatGuard).
void convert_vectors(const Plan&, const Arrays&);

/// How many bytes of `flags` have each Flag bit, into counts[0..5): NX UF OF DZ NV.
void count_flags(const std::uint8_t* flags, std::int64_t n, std::int64_t counts[5]);

}  // namespace numemu::simd

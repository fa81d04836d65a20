// A second fused step, written apart from the units: aligns, cuts, adds and rounds in integers.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace numemu::oracle::mma {

/// An encoding with bias 2^(exponent_bits - 1) - 1.
struct Encoding {
  enum class Top : std::uint8_t {
    ieee,     ///< the top exponent: infinities and NaN
    one_nan,  ///< all ones below the sign is NaN
    finite,   ///< numbers alone
  };
  int exponent_bits = 0, mantissa_bits = 0;
  Top top = Top::ieee;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

/// NVIDIA's step: G products and the register are cut toward zero F bits below the largest
/// exponent, added, and written to float32 toward zero or to float16 to nearest even. Exponents are
/// those of the factors as encoded, a zero factor having -126. C starts the register.
struct FusedSteps {
  Encoding a, b, c, d;
  int group = 0;                    ///< G
  int fraction = 0;                 ///< F
  int kept = 23;                    ///< fraction bits of a float32 result that are written
  std::optional<int> floor = -126;  ///< of the largest exponent
};

/// The code of D; NaN is all ones below the sign.
std::uint64_t fused_dot(const FusedSteps&, std::span<const std::uint64_t> a,
                        std::span<const std::uint64_t> b, std::uint64_t c);

}  // namespace numemu::oracle::mma

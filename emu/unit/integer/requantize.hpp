// The epilogue of integer units: int32 sums become codes of few bits by bias, factor, zero point
// and clamp. Integers only; every variant is its published definition, transcribed.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/format.hpp"

namespace numemu::unit {

// Units whose results are int32 sums, and the integers that become of them.

/// Whether results are sums in two's complement of 32 bits.
bool gives_int32(const Unit&);

/// The least and the largest number of an integer format of at most 16 bits.
struct IntegerEnds {
  std::int32_t low = 0, high = 0;
};
IntegerEnds ends_of_integers(const Format&);

/// How a sum is multiplied by a real factor and rounded to an integer.
enum class Requantization : std::uint8_t {
  /// RNE(RNE_f32(RNE_f32(sum) * factor)), the factor a float32.
  real,
  /// floor((sum M + 2^(30 - shift)) / 2^(31 - shift)) for the factor M 2^(shift - 31): one
  /// rounding,
  /// halves upward. The product has 64 bits.
  fixed_single,
  /// With the sum times 2^max(shift, 0) modulo 2^32: h = floor((that M + 2^30) / 2^31), halves
  /// upward, saturated; then h / 2^max(-shift, 0), halves away from zero. Two roundings.
  fixed_double,
};
inline constexpr std::size_t kRequantizations = 3;

/// What a recipe, a command and a document say of one.
struct RequantizationRow {
  std::string_view name, summary, source;
};
const RequantizationRow& row_of(Requantization);
/// Throws Error with the nearest name.
Requantization parse_requantization(std::string_view name);

/// The factor multiplier 2^(shift - 31).
struct FixedFactor {
  std::int32_t multiplier = 0;  ///< at least 2^30, or 0
  int shift = 0;                ///< kLeastShift to kMostShift
  friend bool operator==(const FixedFactor&, const FixedFactor&) = default;
};
inline constexpr int kLeastShift = -31, kMostShift = 30;

/// The nearest one to a factor, halves away from zero; 0 for one below 2^-32 (TFLite:
/// QuantizeMultiplier). Throws Error unless 0 <= factor < 2^30.
FixedFactor fixed_factor(double factor);

/// The sum times the factor, rounded. What leaves the range of int32 saturates: programs leave that
/// undefined, because the clamp to a code follows.
std::int32_t requantize_fixed(Requantization, std::int32_t sum, FixedFactor);
/// The same by a finite float32 factor that is not negative.
std::int32_t requantize_real(std::int32_t sum, float factor);

/// code = clamp(round((sum + bias) factor) + zero point), sum + bias modulo 2^32.
struct Epilogue {
  Requantization how = Requantization::real;
  std::vector<float> factors = {};              ///< real: one, or one per channel
  std::vector<FixedFactor> fixed_factors = {};  ///< fixed: one, or one per channel
  std::vector<std::int32_t> bias = {};          ///< one per channel, or none
  std::int32_t zero_point = 0;
  std::int32_t low = -128, high = 127;

  /// Of a sum of that channel.
  std::int32_t code(std::int32_t sum, std::int64_t channel) const;
  /// Makes the factors; throws Error as fixed_factor() does, naming the channel.
  void set_factors(std::span<const double>);
};

}  // namespace numemu::unit

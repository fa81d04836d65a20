// Vector loops from float32 to formats that share its exponent field: bfloat16, tfloat32, e8mY.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/conversion.hpp"
#include "formats/simd/convert_loops.hpp"

namespace numemu::simd {

/// The numbers of such a conversion. The codes of float32 without their sign are consecutive
/// integers and every 2^cut_bits-th of them is a value of the format, subnormal numbers and
/// infinity included. So rounding is one integer addition and a cut of the low bits.
struct SharedExponentPlan {
  /// What is added before the cut.
  enum class Step : std::uint8_t {
    constant,    ///< a number that depends on the sign
    even,        ///< a constant and the bit that decides ties
    odd,         ///< nothing, but the last kept bit is set where something was cut
    stochastic,  ///< a constant, the random bits and perhaps the bit that decides ties
  };
  Step step = Step::constant;
  int cut_bits = 0;                                       ///< 23 - M: 1 to 22
  std::uint32_t constant = 0, constant_negative = 0;      ///< for positive and negative numbers
  int tie_shift = 0;                                      ///< position of the tie bit
  std::uint32_t tie_flip = 0;                             ///< all ones: it counts if it is 0
  std::uint32_t tie_mask = 0;                             ///< 1, or 0 if it does not count
  int random_left = 0, random_right = 0;                  ///< shifts of the random bits
  std::uint32_t limit = 0;                                ///< what lies beyond becomes this
  std::uint32_t infinity = 0;                             ///< what infinity becomes
  std::uint32_t tiny_below = 0, tiny_below_negative = 0;  ///< magnitudes, unless stochastic
  int code_shift = 0;  ///< from the bits of the float32 result to the code in its container
};

/// The plan of a conversion from float32, or nothing where these loops do not apply: formats
/// without sign or subnormals, with other exponents or special values than float32's, without
/// mantissa bits, or float32 itself. All rounding modes are served, sr(n) for every n.
std::optional<SharedExponentPlan> make_shared_exponent_plan(const Conversion&);

/// Exactly one of values, codes16 and codes32 is given. Uses no floating-point operation.
void convert_shared_exponent(const SharedExponentPlan&, const Arrays&);

}  // namespace numemu::simd

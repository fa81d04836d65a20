// The fast path of quantize_codes and quantize_values: vectors of doubles, equal in every bit.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/conversion.hpp"

namespace numemu {

/// The parameters of the vector loops, all numbers. A magnitude becomes a position: its
/// code without sign in the upper bits, where it lies between this code and the next in the lower
/// `shift` bits. Rounding is then an addition and a cut of these bits.
struct QuantizePlan {
  /// What is added to a position.
  enum class Step : std::uint8_t {
    constant,    ///< a number that depends on the sign
    nearest,     ///< a number, and one more for an odd code: ties go to the even one
    odd,         ///< nothing; the code becomes odd where something is cut
    stochastic,  ///< a number, the random bits and perhaps one more for ties of the fraction
  };
  /// What lies below the lowest binade with a full significand.
  enum class Low : std::uint8_t {
    subnormal,  ///< an even grid
    flush,      ///< an even grid whose results become zero
    integer,    ///< an even grid that holds every value
    gap,        ///< nothing between zero and the smallest value
  };
  Step step = Step::nearest;
  Low low = Low::subnormal;
  int shift = 52;                                     ///< 52 - M
  std::uint64_t fraction = 0;                         ///< the lower `shift` bits
  std::uint64_t constant = 0, constant_negative = 0;  ///< for positive and negative numbers
  int tie_bit = 0;                                    ///< the bit that decides ties
  std::uint64_t tie_mask = 0, tie_flip = 0;           ///< 1 if it counts; 1 if it counts when 0
  int random_shift = 0;                               ///< position of the last random bit

  double scale = 1;
  double gap_scale = 1;            ///< scale * smallest: x / gap_scale is where x lies in a gap
  double below = 1;                ///< smaller magnitudes lie on the even grid, or in the gap
  double grid = 1;                 ///< leaves the sum with one of them `shift` bits of its fraction
  double smallest = 1;             ///< smallest positive value
  std::uint64_t base = 0;          ///< the bits of a larger one, as a double, less its position
  std::uint64_t first_normal = 1;  ///< code of the smallest normal number
  std::uint64_t largest = 1, largest_negative = 1;  ///< codes without their sign

  std::uint64_t sign_bit = 0, code_mask = 0;
  bool zero_has_sign = false;
  std::uint64_t over_code = 0, over_code_negative = 0;    ///< of what overflows
  std::uint64_t over_value = 0, over_value_negative = 0;  ///< as the bits of doubles,
                                                          ///< if float32 holds the values
};

/// The plan of a conversion, or nothing where the loops do not apply: formats of more than 16 bits,
/// without zero or with a large bias, and kinds other than floats and integers. (The random
/// fraction of a gap requires the host's fused multiply-add.)
std::optional<QuantizePlan> plan_quantize(const Conversion&, float scale);

/// Whether float32 holds every value of a float or integer format of at most 24 bits.
bool exact_in_float32(const Format&);

/// Whether the loops may take these elements: all finite, and none with a sign if the format has
/// none.
bool takes_fast_path(const Conversion&, const float* x, std::int64_t n);

/// The vector loops, dispatched at run time to the best instruction set (quantize_simd.cpp); the
/// host rounds toward zero. `random` holds one word per element, r in its low n bits and zeros
/// above, where the rounding is stochastic. Values are the format's as float32, which must hold
/// them.
FlagCounts quantize_vectors(const QuantizePlan&, const float* x, std::int64_t n,
                            const std::uint32_t* random, std::uint8_t* codes);
FlagCounts quantize_vectors(const QuantizePlan&, const float* x, std::int64_t n,
                            const std::uint32_t* random, std::uint16_t* codes);
FlagCounts quantize_vectors(const QuantizePlan&, const float* x, std::int64_t n,
                            const std::uint32_t* random, float* values);
/// Whether the host multiplies and adds in one rounding.
bool has_fused_multiply_add();

/// The float32 loops (quantize_odd.cpp): the largest of the bits of x[i], each masked.
std::uint32_t largest_masked_bits(const float* x, std::int64_t n, std::uint32_t mask);
/// x[i] *= factor, under the host's rounding.
void multiply_in_place(float* x, std::int64_t n, float factor);
/// q[i] = x[i] / scale rounded to odd (quantize_odd.cpp), x finite. False where a nonzero element
/// is below 2^-102 or a quotient is 2^127 or more. The host rounds toward zero; scales are powers
/// of two where it has no fused multiply-add.
bool odd_quotients(const float* x, std::int64_t n, float scale, float* q);
/// odd_quotients() for divisors of up to 28 bits, by float64, whatever the elements; zeros stay.
/// The truncated quotient lies on the same side of every number g of at most 23 bits as the real
/// does, and equals one only if the real does: x has 24 bits, g times the divisor has 51, and two
/// such numbers that differ do so by at least 2^-51 of the larger. The host rounds toward zero.
void odd_quotients_wide(const float* x, std::int64_t n, double divisor, float* q);

}  // namespace numemu

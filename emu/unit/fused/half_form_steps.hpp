// The steps of the half form: what they need, and the one function that has AVX512-FP16.
#pragma once
#include <cstdint>

namespace numemu::unit {

/// Lanes computed together: as many as there are bytes in a 512-bit vector.
constexpr std::int64_t kHalfFormWidth = 64;

/// What all steps of a tile share. Products enter as a b 2^power.
struct HalfFormConstants {
  int group = 0;                  ///< products of one step, even
  int fraction_bits = 0;          ///< F
  int power = 0;                  ///< 13 - the largest exponent of a product
  std::uint8_t field_offset = 0;  ///< byte sum of exponents -> float32 exponent field
  std::uint8_t fast_from = 0;     ///< byte sums from here on need one scale of at most 2^15
  std::uint32_t kept = 0;         ///< mask of the bits a float32 register keeps
  bool half = false;              ///< the register is float16
};

/// Rows of A for one step, [row][k], and a panel of B: pairs of k [k / 2][lane] and [k][lane].
struct HalfFormOperands {
  const std::uint16_t* values;     ///< float16 of a times a power of two
  const std::uint32_t* exponents;  ///< four times the same byte
  const std::uint32_t* lanes;      ///< float16 of b times a power of two, even k in the low half
  const std::uint8_t* lane_exponents;
};

/// Whether this CPU and its operating system have AVX512-FP16, VNNI and BW.
bool half_form_available();
/// state[row][lane] <- the register after one step, for `rows` rows. Needs rounding to nearest.
void half_form_step(const HalfFormConstants&, const HalfFormOperands&, std::int64_t rows,
                    float* state);

}  // namespace numemu::unit

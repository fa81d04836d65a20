// The parameters of the vector loops of a float32 conversion, all numbers.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/conversion.hpp"
#include "formats/float_guard.hpp"

namespace numemu::simd {

/// How one element is rounded once its binade is known. All rest on the host's addition: adding
/// 2^e * 2^(23 - M) leaves exactly M fraction bits of a number in the binade of 2^e.
enum class Step : std::uint8_t {
  host,        ///< the addition itself rounds, under the host rounding mode of the plan
  away,        ///< ties away: half a step is added before a truncating addition
  odd,         ///< a truncating addition, and the last bit set where something was cut
  stochastic,  ///< the random bits are added before a truncating addition
};

/// A result that does not come from rounding: its float32, its code and its flags.
struct Special {
  float value = 0;
  std::uint32_t code = 0;
  std::uint32_t flags = 0;
};

/// Magnitudes from which something happens, for positive and negative numbers.
struct Sided {
  float positive = 0, negative = 0;
  bool same() const { return positive == negative; }
};

struct Plan {
  Step step = Step::host;
  HostRounding host = HostRounding::nearest;  ///< while a loop runs
  bool sided = false;                         ///< positive and negative numbers round differently
  /// The lean loop is enough: saturating, with a sign, without gap or flush.
  bool plain_values = false, plain_codes = false;
  bool nan_keeps_sign = false;

  int mantissa_bits = 0;
  float first_binade = 1;      ///< 2^e of the lowest binade with a full significand
  float magic = 1;             ///< 2^(23 - M)
  float half_step = 0;         ///< 2^(-M - 1)
  float largest = 0;           ///< largest finite magnitude (of the negative side: see below)
  float largest_negative = 0;  ///< differs for two's complement only; 0 if unsigned
  float beyond = 0;            ///< the value after both of them if exponents continued
  float smallest_normal = 0;   ///< results below become zero where `flush`
  float smallest = 0;          ///< smallest positive value
  bool flush = false;          ///< subnormal results become zero
  bool gap = false;            ///< zero has a distant neighbour, `smallest`, reached from `up_from`
  bool is_signed = true;       ///< negative results exist
  bool twos_complement = false;  ///< codes are two's complement integers
  bool keeps_zero_sign = true;
  Sided up_from;          ///< gap: smallest magnitude that becomes `smallest`
  Sided tiny_below;       ///< magnitudes below are tiny after rounding (deterministic modes)
  Sided over_from;        ///< magnitudes from here on overflow (deterministic modes)
  float tiny_binade = 0;  ///< stochastic: the binade below first_binade decides tininess

  Special nan, nan_negative, infinity, infinity_negative, over, over_negative, refused;

  int code_bits = 8;
  std::uint32_t code_offset =
      0;  ///< added to the rounded sum's bits: see code_of() in round-inl.hpp
  std::uint32_t code_mask = 0, sign_bit = 0;

  int random_bits = 0;  ///< n
  StochasticVariant variant = StochasticVariant::c;
  /// 2^(23 - M - n), or 0: variants a and c where M + n is at most 21. The host then rounds the sum
  /// with it to 2^-n of a step, as the variant does, and random bits are added to the sum's own.
  float fine_magic = 0;
};

/// The plan of a conversion from float32, or nothing where the loops do not apply: formats of more
/// than 16 bits, without mantissa bits or without zero, whose exponents reach to the ends of
/// float32's, more than 24 random bits, and kinds other than floats and integers.
std::optional<Plan> make_plan(const Conversion&);

}  // namespace numemu::simd

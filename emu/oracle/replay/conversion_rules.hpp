// The rules of recorded conversions: the codec, and options where the documents leave a choice.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/conversion.hpp"

namespace numemu::oracle {

/// The code that NaN becomes. PTX ISA: "NaN in the destination format"; FP6 and FP4 have none and
/// take the largest number.
enum class NanCode : std::uint8_t {
  ones,         ///< positive, all ones: 0x7f, 0x7fff, 0x7fffffff (cuda_fp8.hpp of CUDA 13.0)
  signed_ones,  ///< the same, with the sign of the input
  quiet,        ///< positive, top mantissa bit only: e5m2 0x7e, float16 0x7e00
  payload,      ///< sign and upper mantissa bits stay, made quiet
  cut,          ///< sign and upper mantissa bits stay as they are; none left: the code of infinity
};
/// What a negative number becomes in ue8m0, which has no sign.
enum class NegativeScale : std::uint8_t { magnitude, zero, nan };

struct ConversionRule {
  std::string name;      ///< "NaN keeps its sign, all ones"
  std::string question;  ///< what it answers otherwise than the first rule; "": the first
  NanCode nan = NanCode::ones;
  bool infinity_saturates = true;  ///< .satfinite takes infinity to the largest number
  bool relu_keeps_minus_zero = false;
  NegativeScale negative = NegativeScale::magnitude;
  int random_bits = 0;                   ///< of rs, the top n discarded bits meet n random ones
  bool stochastic_stays_finite = false;  ///< rs without .satfinite ends at the largest number
  bool tf32_low_zero = true;             ///< the 13 bits below a tf32 are zero
};

/// The output code in its container.
std::uint32_t converted(const recording::Conversion&, std::uint32_t in, const ConversionRule&);

/// The rule of the documents, then its rivals. The first rests on the PTX ISA, on cuda_fp8.hpp for
/// NaN codes, and on the SASS for what the compiler makes of shifts and additions (tf32 with rna,
/// bf16 to float32).
std::vector<ConversionRule> conversion_rules(const recording::Conversion&);

}  // namespace numemu::oracle

// The rule of each conversion: what NaN, infinity, overflow and negative numbers become.
#include "tests/oracle/cuda/conversions/convert.hpp"

#include "tests/oracle/cuda/conversions/round.hpp"

namespace numemu::oracle::recording {
namespace {

/// The mantissa of a NaN in the target: the upper bits of the source's.
std::uint32_t moved_payload(const Conversion& c, std::uint32_t payload) {
  const int shift = info(c.a).mantissa_bits - info(c.d).mantissa_bits;
  return shift >= 0 ? payload >> shift : payload << -shift;
}

std::uint32_t nan_code(const Conversion& c, const Real& x, const Ends& ends,
                       const ConversionRule& rule) {
  const ElementInfo f = info(c.d);
  if (f.specials == Specials::finite) return ends.top;
  const std::uint32_t ones = (1U << (f.exponent_bits + f.mantissa_bits)) - 1;
  const std::uint32_t sign = x.negative ? ends.sign : 0;
  if (f.specials != Specials::ieee) return rule.nan == NanCode::signed_ones ? sign | ones : ones;
  const std::uint32_t quiet = ends.beyond | 1U << (f.mantissa_bits - 1);
  switch (rule.nan) {
    case NanCode::signed_ones:
      return sign | ones;
    case NanCode::quiet:
      return quiet;
    case NanCode::payload:
      return sign | quiet | moved_payload(c, x.payload);
    case NanCode::cut:
      return sign | ends.beyond | moved_payload(c, x.payload);
    default:
      return ones;
  }
}

std::uint32_t beyond_code(const Conversion& c, const Ends& ends, const ConversionRule& rule) {
  if (c.satfinite) return ends.top;
  // ue8m0 leaves its range to NaN, whichever way it rounds; IEEE formats stay below infinity by rz.
  const bool inward = c.rounding == CvtRounding::rz ||
                      (c.rounding == CvtRounding::rs && rule.stochastic_stays_finite);
  return inward && info(c.d).specials == Specials::ieee ? ends.top : ends.beyond;
}

std::uint32_t magnitude_code(const Conversion& c, const Real& x, std::uint32_t in, const Ends& ends,
                             const ConversionRule& rule) {
  if (x.kind == NumberKind::infinite)
    return c.satfinite && rule.infinity_saturates ? ends.top : ends.beyond;
  const RoundTo to = {c.rounding, random_bits(c, in), rule.random_bits};
  const std::uint32_t code = rounded_magnitude(c.d, x, to);
  return code > ends.top ? beyond_code(c, ends, rule) : code;
}

/// rna to tf32 is an addition and a mask in the SASS of CUDA 13.0 (sm_80 to sm_90): the mask cuts a
/// NaN's payload, and .satfinite takes one off whatever is infinite or NaN after it.
std::uint32_t cut_and_clamped(std::uint32_t code, const Ends& ends) {
  const std::uint32_t magnitude = code & (ends.sign - 1);
  return magnitude >= ends.beyond ? code - 1 : code;
}

std::uint32_t code_of(const Conversion& c, std::uint32_t in, const ConversionRule& rule) {
  const Real x = real_of(c.a, in);
  const Ends ends = ends_of(c.d);
  if (x.kind == NumberKind::nan) {
    const std::uint32_t code = nan_code(c, x, ends, rule);
    return c.satfinite && c.rounding == CvtRounding::rna && rule.nan == NanCode::cut
               ? cut_and_clamped(code, ends)
               : code;
  }
  const std::uint32_t magnitude = magnitude_code(c, x, in, ends, rule);
  if (!x.negative) return magnitude;
  const bool is_zero = x.kind == NumberKind::finite && x.significand == 0;
  if (info(c.d).specials == Specials::exponent) {
    if (is_zero || rule.negative == NegativeScale::magnitude) return magnitude;
    return rule.negative == NegativeScale::nan ? ends.beyond : 0;
  }
  if (c.relu) return magnitude == 0 && rule.relu_zero == ReluZero::kept ? ends.sign : 0;
  return ends.sign | magnitude;
}

}  // namespace

std::uint32_t convert(const Conversion& c, std::uint32_t in, const ConversionRule& rule) {
  const std::uint32_t code = code_of(c, in, rule);
  if (c.d != Element::tf32) return code;
  return code << 13 | (rule.tf32_low_zero ? 0 : in & 0x1fffU);
}

std::uint32_t convert(const Conversion& c, std::uint32_t in) {
  return convert(c, in, conversion_rules(c).front());
}

}  // namespace numemu::oracle::recording

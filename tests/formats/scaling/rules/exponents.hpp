// Shared by the tests of the power-of-two rules: calling a rule on magnitudes, and hard
// magnitudes.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "formats/scaling/scale_rule.hpp"
#include "tests/formats/blocks/block_oracle.hpp"

namespace numemu::test {

inline const std::vector<const char*> kPowerFormats = {"mxfp4",
                                                       "mxfp6_e2m3",
                                                       "mxfp6_e3m2",
                                                       "mxfp8_e4m3",
                                                       "mxfp8_e5m2",
                                                       "mxint8",
                                                       "bfp(2,8)",
                                                       "bfp(4,16)",
                                                       "bfp(8,32)",
                                                       "mx(float16,32)",
                                                       "mx(bf16,8)",
                                                       "mx(e2m1b3+finite,32)",
                                                       "group(int4,32,e8m0)"};

/// s of each block, whose only element is its largest magnitude.
inline std::vector<std::int32_t> exponents(const char* rule, const BlockFormat& f,
                                           const std::vector<float>& amax,
                                           const Rounding& rounding = {}) {
  Conversion conversion;
  conversion.format = f.element;
  conversion.rounding = rounding;
  std::vector<std::int32_t> s(amax.size());
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i <= amax.size(); ++i) offsets.push_back(static_cast<std::int64_t>(i));
  find_scale_rule(rule, f).exponents({&f, &conversion, static_cast<std::int64_t>(amax.size()),
                                      amax.data(), amax.data(), offsets.data(), s.data()});
  return s;
}

inline std::int32_t exponent(const char* rule, const char* format, float amax) {
  return exponents(rule, find_block_format(format), {amax})[0];
}

/// Every binade near the ends of float32 and every fifth of the others: the power of two, the
/// largest element's mantissa, the format's midpoints, the square root of two, all with their
/// neighbours; subnormals.
inline std::vector<float> hard_magnitudes(const BlockFormat& f) {
  std::vector<double> mantissas = {1, 1.5, 1.75, 1.875, 1.9375, 1.25, M_SQRT2, 2 - 0x1p-23};
  const double largest = to_double(decode(*f.element, f.element->largest_code()));
  const double mantissa = largest / std::exp2(std::floor(std::log2(largest)));
  for (const double m : {mantissa, mantissa * M_SQRT2, mantissa / M_SQRT2, 2 - (2 - mantissa) / 2})
    mantissas.push_back(m >= 2 ? m / 2 : m < 1 ? 2 * m : m);
  std::vector<float> list;
  for (int e = -149; e <= 127; e += e < -110 || e > 120 ? 1 : 5) {
    for (const double m : mantissas) {
      const auto x = static_cast<float>(std::ldexp(m, e));
      for (const float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, HUGE_VALF)})
        if (y > 0 && std::isfinite(y)) list.push_back(y);
    }
  }
  return list;
}

/// The largest element as a fraction, and floor(log2) of a fraction found by comparison.
inline oracle::Fraction largest_fraction(const BlockFormat& f) {
  return oracle::fraction(to_double(decode(*f.element, f.element->largest_code()))) *
         oracle::power_of_two(f.element_exponent);
}
inline int floor_log2(const oracle::Fraction& x, int guess) {
  while (oracle::power_of_two(guess) > x) --guess;
  while (oracle::power_of_two(guess + 1) <= x) ++guess;
  return guess;
}

inline int clamped(int s) { return std::clamp(s, -127, 127); }

}  // namespace numemu::test

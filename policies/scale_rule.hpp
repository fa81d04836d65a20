// A scale rule chooses the real scale of one tensor or channel; one file each in policies/scale/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/quantize.hpp"

namespace numemu::policies {

/// The float32 elements that will share the scale, and how they will be converted.
struct ScaleRequest {
  const float* x = nullptr;
  std::int64_t n = 0;
  const Conversion* conversion = nullptr;
};

/// A rule never runs the quantizer: predictions use the same rules.
struct ScaleRule {
  const char* name;
  const char* summary;
  /// The largest magnitude is put near the format's largest value: refused for formats whose range
  /// is too wide for products in float32 (docs/adr/0005).
  bool fills_range;
  /// A scale is kept beside the codes and counts among the stored bits.
  bool stores_scale;
  /// A finite positive scale for x / scale. NaN and infinite elements are ignored; 1 when nothing
  /// else is left.
  float (*scale)(const ScaleRequest&);
};

/// The rule of that name; throws Error with the nearest known name.
const ScaleRule& find_scale_rule(std::string_view name);
std::vector<const ScaleRule*> all_scale_rules();

/// Largest value up to which a range may be filled: products of two such operands stay below 2^112
/// and 2^15 of them below 2^127.
inline constexpr double kWidestFilled = 0x1p56;

/// The largest magnitude that conversion gives without saturating: the largest finite value, for
/// signed integers 2^(b-1) - 1.
double largest_element(const Conversion&);
/// amax / largest_element rounded upward to float32, so that amax itself never saturates; 1 when
/// amax is 0.
float absmax_scale(double amax, const Conversion&);
/// The largest finite |x|, 0 for none.
double largest_magnitude(const float* x, std::int64_t n);

}  // namespace numemu::policies

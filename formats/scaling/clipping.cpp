#include "formats/scaling/clipping.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "formats/scaling/scale_exponent.hpp"

namespace numemu {

double floor_overreach(const BlockFormat& f) {
  const Value largest = largest_element(f);
  return std::ldexp(1.0, leading(largest).exponent + 1) / to_double(largest);
}

namespace {

/// Whether the largest element is less than twice the next one. Of posits, and of floats without
/// mantissa bits, the steps below the largest are so long that a scale which clips nothing may have
/// more error than one that clips.
bool dense_at_top(const BlockFormat& f) {
  const std::vector<double> values = finite_values(*f.element);
  return values.size() > 1 && values.back() < 2 * values[values.size() - 2];
}

}  // namespace

std::string clipping_note(const BlockFormat& f, std::string_view rule) {
  constexpr double kNotable = 1.6;  // float4_e2m1fn has 4/3
  if (!f.power_of_two_scale() || rule != "floor" || !(floor_overreach(f) >= kNotable)) return "";
  return fmt::format(
      "scale rule floor puts the largest magnitude of a block of {} up to {:.3g} times above the "
      "largest element, which clips it; {}mse has the least error",
      f.name, floor_overreach(f), dense_at_top(f) ? "ceil clips nothing, " : "");
}

}  // namespace numemu

// Scale rule four-over-six: of two scales the one with less squared error. Under one the largest
// magnitude lands on the largest element, under the other on the next one, as 6 and 4 of FP4 E2M1
// (Cook et al., Four Over Six, arXiv 2512.02010).
#include <cmath>

#include "formats/scaling/element_grid.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu {
namespace {

/// The element below the largest one, its exponent included; the largest where no other is
/// positive.
double second_element(const Conversion& c) {
  const ElementGrid& line = element_grids(c).line;
  const double largest = line.high.back();
  for (std::size_t k = line.size(); k-- > 0;)
    if (line.high[k] < largest) return line.high[k] > 0 ? line.high[k] : largest;
  return largest;
}

float better_scale(const ScaleRequest& r) {
  const ElementGrid& line = element_grids(*r.conversion).line;
  const double second = second_element(*r.conversion);
  const BlockFormat* const f = r.block;
  float scale[2];
  if (f == nullptr) {
    const double amax = largest_magnitude(r.x, r.n);
    scale[0] = absmax_scale(amax, *r.conversion);
    scale[1] = scale_to(amax, second);
  } else {
    Value element = value_of(static_cast<float>(second));
    element.exponent += f->element_exponent;
    scale[0] = absmax_block_scale(r);
    scale[1] = block_scale_to(r, element);
  }
  if (!has_magnitude(r)) return scale[0];
  std::vector<float> finite;
  for (std::int64_t i = 0; i < r.n; ++i)
    if (std::isfinite(r.x[i])) finite.push_back(r.x[i]);
  const double unit = f != nullptr ? std::ldexp(double{r.tensor_scale}, f->element_exponent) : 1;
  LeastOfCodes least(line, finite.data(), static_cast<std::int64_t>(finite.size()));
  for (const int i : {0, 1}) least.consider(i, scale[i] * unit);
  return scale[least.code()];
}

}  // namespace

extern const ScaleRule scale_four_over_six{
    .name = "four-over-six",
    .summary =
        "of two scales, for the largest element and the next one, that with less squared "
        "error",
    .fills_range = true,
    .scale = better_scale,
    .reads_elements = true,
    .lands_on =
        [](const Conversion& c) {
          return std::vector<double>{largest_element(c), second_element(c)};
        },
    .serves_tensor_scale = true};

}  // namespace numemu

// Scale rule lognormal: the lognormal law fitted to the magnitudes sets the scale, so that log2|x|
// has the mean -margin after scaling (Chmiel et al., Neural gradients are near-lognormal, ICLR
// 2021, who publish a margin of 3 for gradients).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/analysis/magnitude_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu {
namespace {

constexpr double kMostMargin = 64, kLn2 = 0.69314718055994530942;

/// Of the elements that are finite and not 0.
MagnitudeLaw law_of(const ScaleRequest& r) {
  MagnitudeLaw law = fit_law(ThresholdLaw::lognormal, r.x, r.n);
  if (law.usable() || !has_magnitude(r)) return law;
  std::vector<float> finite;
  std::copy_if(r.x, r.x + r.n, std::back_inserter(finite),
               [](float x) { return std::isfinite(x); });
  return fit_law(ThresholdLaw::lognormal, finite.data(), static_cast<std::int64_t>(finite.size()));
}

/// 2^x; whole numbers exactly.
double power_of_two(double x) {
  const double whole = std::floor(x);
  return std::ldexp(portable::exp((x - whole) * kLn2), static_cast<int>(whole));
}

ScaleRule lognormal(const ScaleArguments& arguments) {
  ScaleRule rule;
  rule.scale = [above = power_of_two(arguments.number)](const ScaleRequest& r) {
    const MagnitudeLaw law = law_of(r);
    if (!law.usable()) return 1.0f;
    const double wanted = std::clamp<double>(law.scale * above, std::numeric_limits<float>::min(),
                                             std::numeric_limits<float>::max());
    const auto rounded = static_cast<float>(wanted);
    return r.block == nullptr ? rounded : round_scale(r, rounded);
  };
  return rule;
}

}  // namespace

extern const ScaleRule scale_lognormal{
    .name = "lognormal",
    .summary = "2^(mean of log2|x| + MARGIN) over the elements that are not 0",
    .arguments = {{ScaleArgument::Kind::number, "MARGIN",
                   "binades between the mean of log2|x| and 1 after scaling; negative: above 1",
                   -kMostMargin, kMostMargin}},
    .make = lognormal};

}  // namespace numemu

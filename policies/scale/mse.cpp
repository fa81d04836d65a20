// Scale rule mse: of absmax * 2^(-j/8), j = 0..16, the one with the least squared error; ties to
// the larger.
#include <array>
#include <cmath>

#include "formats/analysis/error_moments.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::policies {
namespace {

/// 2^(-j/8) for j = 0..7, correctly rounded doubles: constants, so that no libm decides a scale.
constexpr std::array<double, 8> kEighths = {1.0,
                                            0.91700404320467121,
                                            0.84089641525371450,
                                            0.77110541270397037,
                                            0.70710678118654752,
                                            0.64841977732550480,
                                            0.59460355750136051,
                                            0.54525386633262877};
constexpr int kSteps = 16;

float least_squared_error(const ScaleRequest& r) {
  const double amax = largest_magnitude(r.x, r.n);
  if (amax == 0) return 1;
  const float widest = absmax_scale(amax, *r.conversion);
  const bool stochastic = r.conversion->rounding.stochastic();
  const std::vector<Cell> grid =
      stochastic ? brackets(*r.conversion->format, r.conversion->symmetric)
                 : cells(*r.conversion->format, r.conversion->rounding, r.conversion->symmetric);
  float best = widest;
  double least = HUGE_VAL;
  for (int j = 0; j <= kSteps; ++j) {
    const float scale = static_cast<float>(widest * kEighths[j % 8] * std::ldexp(1.0, -(j / 8)));
    if (!(scale > 0)) break;
    const double mse = (stochastic ? stochastic_error_moments(grid, scale, r.x, r.n)
                                   : error_moments(grid, scale, r.x, r.n))
                           .mse;
    if (mse < least) {
      least = mse;
      best = scale;
    }
  }
  return best;
}

}  // namespace

extern const ScaleRule scale_mse{"mse",
                                 "the best of absmax * 2^(-j/8), j = 0..16, by squared error",
                                 /*fills_range=*/true, /*stores_scale=*/true, least_squared_error};

}  // namespace numemu::policies

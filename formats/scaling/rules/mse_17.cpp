// Scale rule mse(17): of a few candidates the scale with the least squared error, ties to the
// larger. Real scales: absmax * 2^(-j/8), j = 0..16. Powers of two: floor's s and its neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "formats/analysis/error_moments.hpp"
#include "formats/scaling/element_grid.hpp"
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {
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

/// The means are float64: where those of two candidates differ by less than about n 2^-53 of their
/// value, their rounding decides, the same on every machine.
float best_scale_of_17(const ScaleRequest& r) {
  const double amax = largest_magnitude(r.x, r.n);
  if (amax == 0) return 1;
  const Conversion& c = *r.conversion;
  const bool stochastic = c.rounding.stochastic();
  const float widest = r.block ? absmax_block_scale(r) : absmax_scale(amax, c);
  const std::vector<Cell> grid =
      stochastic ? brackets(*c.format, c.symmetric) : cells(*c.format, c.rounding, c.symmetric);
  float best = widest;
  double least = HUGE_VAL;
  for (int j = 0; j <= kSteps; ++j) {
    float scale = static_cast<float>(widest * kEighths[j % 8] * std::ldexp(1.0, -(j / 8)));
    if (!(scale > 0)) break;
    if (r.block) scale = round_scale(r, scale);
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

void best_exponents_of_17(const ExponentRequest& r) {
  const ExponentRange range = exponent_range(*r.format->scale);
  const ElementGrid& line = element_grids(*r.conversion).line;
  const std::int32_t down = leading(largest_element(*r.format)).exponent;
  for_each_block(r, [&](const Leading& amax) { return amax.exponent - down; });
  for (std::int64_t b = 0; b < r.blocks; ++b) {
    if (r.amax[b] == 0) continue;
    const std::int32_t floor = leading(value_of(r.amax[b])).exponent - down;
    LeastOfCodes least(line, r.x + r.offsets[b], r.offsets[b + 1] - r.offsets[b]);
    for (const std::int32_t s : {floor + 1, floor, floor - 1}) {
      const std::int32_t inside = std::clamp(s, range.lowest, range.highest);
      least.consider(inside, std::ldexp(1.0, inside + r.format->element_exponent));
    }
    r.exponents[b] = static_cast<std::int32_t>(least.code());
  }
}

}  // namespace

extern const ScaleRule scale_mse_17{
    "mse(17)",
    "least squared error of few: of absmax * 2^(-j/8), j = 0..16; of floor - 1, floor, floor + 1",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    best_scale_of_17,
    best_exponents_of_17,
    /*reads_elements=*/true};

}  // namespace numemu

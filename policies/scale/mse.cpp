// Scale rule mse: of a few candidates the scale with the least squared error, ties to the larger.
// Real scales: absmax * 2^(-j/8), j = 0..16. Powers of two: the floor rule's s and its neighbours.
#include <array>
#include <cmath>

#include "formats/analysis/error_moments.hpp"
#include "policies/scale_exponent.hpp"

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

std::vector<Cell> cells_of(const Conversion& c) {
  return c.rounding.stochastic() ? brackets(*c.format, c.symmetric)
                                 : cells(*c.format, c.rounding, c.symmetric);
}

float best_scale(const ScaleRequest& r) {
  const double amax = largest_magnitude(r.x, r.n);
  if (amax == 0) return 1;
  const float widest = r.block ? absmax_block_scale(r) : absmax_scale(amax, *r.conversion);
  const std::vector<Cell> grid = cells_of(*r.conversion);
  float best = widest;
  double least = HUGE_VAL;
  for (int j = 0; j <= kSteps; ++j) {
    float scale = static_cast<float>(widest * kEighths[j % 8] * std::ldexp(1.0, -(j / 8)));
    if (!(scale > 0)) break;
    if (r.block) scale = round_scale(r, scale);
    const double mse =
        (r.conversion->rounding.stochastic() ? stochastic_error_moments(grid, scale, r.x, r.n)
                                             : error_moments(grid, scale, r.x, r.n))
            .mse;
    if (mse < least) {
      least = mse;
      best = scale;
    }
  }
  return best;
}

/// The squared error of y, in units of the step, under nearest or directed rounding.
double squared_error(const std::vector<Cell>& grid, double y) {
  const auto after = std::partition_point(grid.begin(), grid.end(), [&](const Cell& cell) {
    return cell.low < y || (cell.low == y && cell.low_closed);
  });
  const double error = (after - 1)->value - y;
  return error * error;
}

/// The same in expectation over the random bits.
double expected_squared_error(const std::vector<Cell>& grid, double y) {
  const double low = grid.front().low, high = grid.back().high;
  if (y <= low || y >= high)
    return (y <= low ? low - y : y - high) * (y <= low ? low - y : y - high);
  const auto after = std::partition_point(grid.begin(), grid.end(),
                                          [&](const Cell& cell) { return cell.low <= y; });
  return (y - (after - 1)->low) * ((after - 1)->high - y);
}

/// Sums of squares in float64 in the order of the elements. Dividing by a power of two is exact, an
/// error has at most 26 bits (it is a multiple of the last bit of x or of the element, and below 4
/// x), so its square is exact too.
void best_exponents(const ExponentRequest& r) {
  const ExponentRange range = exponent_range(*r.format->scale);
  const Leading largest = leading(largest_element(*r.format));
  const bool stochastic = r.conversion->rounding.stochastic();
  const std::vector<Cell> grid = cells_of(*r.conversion);
  for_each_block(r, [&](const Leading& amax) { return amax.exponent - largest.exponent; });
  for (std::int64_t b = 0; b < r.blocks; ++b) {
    if (r.amax[b] == 0) continue;
    const std::int32_t floor = leading(value_of(r.amax[b])).exponent - largest.exponent;
    double least = HUGE_VAL;
    for (const std::int32_t candidate : {floor + 1, floor, floor - 1}) {
      const std::int32_t s = std::clamp(candidate, range.lowest, range.highest);
      const double to_step = std::ldexp(1.0, -s - r.format->element_exponent);
      double sum = 0;
      for (std::int64_t i = r.offsets[b]; i < r.offsets[b + 1]; ++i) {
        const double y = r.x[i] * to_step;
        sum += stochastic ? expected_squared_error(grid, y) : squared_error(grid, y);
      }
      sum /= to_step * to_step;
      if (!(sum < least)) continue;
      least = sum;
      r.exponents[b] = s;
    }
  }
}

}  // namespace

extern const ScaleRule scale_mse{
    "mse",
    "least squared error: of absmax * 2^(-j/8), j = 0..16; of floor - 1, floor, floor + 1",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    best_scale,
    best_exponents,
    /*reads_elements=*/true};

}  // namespace numemu::policies

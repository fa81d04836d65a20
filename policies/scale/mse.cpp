// Scale rule mse: of a few candidates the scale with the least squared error, ties to the larger.
// Real scales: absmax * 2^(-j/8), j = 0..16. Powers of two: the floor rule's s and its neighbours.
#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <vector>

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

/// The means are float64: where those of two candidates differ by less than about n 2^-53 of their
/// value, their rounding decides, the same on every machine.
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

/// What an element may become: its squared error, or its expectation, is |(a - x) (b - x)|.
struct Ends {
  double a, b;
};

/// The two ends for y, in units of the step: equal unless random bits choose between them.
Ends ends_of(const std::vector<Cell>& grid, bool stochastic, double y) {
  if (stochastic) {
    const double low = grid.front().low, high = grid.back().high;
    if (y <= low) return {low, low};
    if (y >= high) return {high, high};
  }
  const auto after = std::partition_point(grid.begin(), grid.end(), [&](const Cell& cell) {
    return cell.low < y || (cell.low == y && (stochastic || cell.low_closed));
  });
  const Cell& cell = *(after - 1);
  return stochastic ? Ends{cell.low, cell.high} : Ends{cell.value, cell.value};
}

/// One block, and the elements of its format.
struct Block {
  const std::vector<Cell>& grid;
  bool stochastic;
  int element_exponent;
  const float* x;
  std::int64_t n;

  /// The step under 2^s: its products with elements and quotients of x by it are exact in float64.
  double step(std::int32_t s) const { return std::ldexp(1.0, s + element_exponent); }
};

/// A sum in float64 and how far it may be from the exact one.
struct Bounded {
  double sum = 0, bound = 0;
};

/// Differences, products and sums of numbers that are not negative: each rounds by a factor of at
/// most 1 + 2^-53, and no element meets more of them than `rounds`; twice that covers the higher
/// order terms, as rounds < 2^32. Nothing underflows: squares are above 2^-900.
Bounded error_of(const Block& block, std::int32_t s) {
  constexpr std::int64_t kChunk = 4096;  // shorter chains of additions
  const double step = block.step(s), to_step = 1 / step;
  Bounded error;
  for (std::int64_t begin = 0; begin < block.n; begin += kChunk) {
    double sum = 0;
    for (std::int64_t i = begin; i < std::min(block.n, begin + kChunk); ++i) {
      const double y = block.x[i] * to_step;
      const Ends ends = ends_of(block.grid, block.stochastic, y);
      sum += std::fabs((ends.a - y) * (ends.b - y));
    }
    error.sum += sum;
  }
  error.sum *= step * step;
  const auto rounds = static_cast<double>(3 + std::min(block.n, kChunk) + block.n / kChunk);
  error.bound = error.sum * (2 * rounds * 0x1p-53);
  return error;
}

using boost::multiprecision::cpp_int;

/// v / 2^kUnit: float32 numbers are multiples of 2^-149, elements (bias at most 255, mantissa at
/// most 15 bits) of 2^-270, times 2^-133 for the least step.
cpp_int in_units(double v) {
  constexpr int kUnit = -403, kDigits = 53;
  int exponent = 0;
  const double mantissa = std::ldexp(std::frexp(v, &exponent), kDigits);
  const int shift = exponent - kDigits - kUnit;
  cpp_int integer = static_cast<std::uint64_t>(std::fabs(mantissa));
  if (shift >= 0) integer <<= static_cast<unsigned>(shift);
  if (shift < 0) integer >>= static_cast<unsigned>(-shift);  // only zeros: v is a multiple
  if (mantissa < 0) integer.backend().negate();
  return integer;
}

cpp_int exact_error(float x, const Ends& ends) {
  const cpp_int at = in_units(x);
  cpp_int product = (in_units(ends.a) - at) * (in_units(ends.b) - at);
  return abs(product);
}

/// The error under 2^s is below that under 2^other, in integers; elements that become the same are
/// left out, which are nearly all of a floating format.
bool exactly_less(const Block& block, std::int32_t s, std::int32_t other) {
  const double step = block.step(s), other_step = block.step(other);
  const auto ends_under = [&](double x, double unit) {
    const Ends ends = ends_of(block.grid, block.stochastic, x / unit);
    return Ends{ends.a * unit, ends.b * unit};
  };
  cpp_int difference = 0;
  for (std::int64_t i = 0; i < block.n; ++i) {
    const float x = block.x[i];
    const Ends a = ends_under(x, step), b = ends_under(x, other_step);
    if (a.a == b.a && a.b == b.b) continue;
    difference += exact_error(x, a) - exact_error(x, b);
  }
  return difference < 0;
}

/// Of floor + 1, floor, floor - 1 the one with the least error: sums in float64 where they decide,
/// integers where they do not.
std::int32_t best_exponent(const Block& block, std::int32_t floor, const ExponentRange& range) {
  std::int32_t best = std::clamp(floor + 1, range.lowest, range.highest);
  Bounded least = error_of(block, best);
  for (const std::int32_t candidate : {floor, floor - 1}) {
    const std::int32_t s = std::clamp(candidate, range.lowest, range.highest);
    if (s == best) continue;
    const Bounded error = error_of(block, s);
    const bool decided = std::fabs(error.sum - least.sum) > error.bound + least.bound;
    if (!(decided ? error.sum < least.sum : exactly_less(block, s, best))) continue;
    best = s;
    least = error;
  }
  return best;
}

void best_exponents(const ExponentRequest& r) {
  const ExponentRange range = exponent_range(*r.format->scale);
  const Leading largest = leading(largest_element(*r.format));
  const std::vector<Cell> grid = cells_of(*r.conversion);
  for_each_block(r, [&](const Leading& amax) { return amax.exponent - largest.exponent; });
  for (std::int64_t b = 0; b < r.blocks; ++b) {
    if (r.amax[b] == 0) continue;
    const Block block{grid, r.conversion->rounding.stochastic(), r.format->element_exponent,
                      r.x + r.offsets[b], r.offsets[b + 1] - r.offsets[b]};
    r.exponents[b] =
        best_exponent(block, leading(value_of(r.amax[b])).exponent - largest.exponent, range);
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

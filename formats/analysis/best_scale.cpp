// The scale that loses least: an exact search over powers of two, a multi-start search over reals.
#include "formats/analysis/best_scale.hpp"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/outcome_law.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu {

namespace {

constexpr int kLeastExponent = -126, kMostExponent = 127;
constexpr int kOctaves = 4;     // of the best powers of two, each with both neighbours
constexpr int kNarrowed = 8;    // local minima that Brent's method narrows
constexpr int kBrentBits = 24;  // more would resolve rounding errors of the MSE
constexpr double kTie = 1e-9;

using Objective = std::function<double(double scale)>;

/// Starts of the real search in an octave: the fewer values, the more a shift of one matters.
int starts_per_octave(const OutcomeLaw& law) {
  constexpr std::size_t kManyPieces = 1024;
  return law.pieces.size() <= kManyPieces ? 128 : 32;
}

/// The magnitudes of a law between its least and its largest.
struct Extent {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
};

Extent extent_of(const OutcomeLaw& law) {
  Extent extent;
  for (const OutcomePiece& piece : law.pieces) {
    const double v = std::abs(piece.near.value);
    if (!(v > 0) || std::isinf(v)) continue;
    extent.smallest = std::min(extent.smallest, v);
    extent.largest = std::max(extent.largest, v);
  }
  if (extent.largest == 0) throw Error("best scale: the format has no value but zero");
  return extent;
}

/// The objective at 2^(t / per_octave) for each t, on several threads.
std::vector<double> evaluate(const std::vector<int>& t, int per_octave,
                             const Objective& objective) {
  std::vector<double> out(t.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < t.size(); ++i)
    out[i] = objective(portable::exp2(static_cast<double>(t[i]) / per_octave));
  return out;
}

std::vector<int> exponents(const Extent& extent, double rms, double largest) {
  // A sixteenth of the rms saturates nearly everything; four times below half the smallest value
  // everything is zero.
  const int low = std::ilogb(rms / extent.largest) - 4;
  const int high = std::ilogb(largest / extent.smallest) + 3;
  std::vector<int> list;
  for (int k = std::clamp(low, kLeastExponent, kMostExponent);
       k <= std::clamp(high, kLeastExponent, kMostExponent); ++k)
    list.push_back(k);
  return list;
}

/// Grid points t of the octaves around the best powers of two, ascending. Formats with many binades
/// serve equally well in many octaves; those nearest to 1 are taken.
std::vector<int> starts(const std::vector<int>& powers, std::vector<double> squares,
                        int per_octave) {
  std::vector<std::size_t> order(powers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const double tied = *std::min_element(squares.begin(), squares.end()) * (1 + kTie);
  for (double& square : squares) square = std::max(square, tied);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(powers[a]) < std::abs(powers[b]);
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return squares[a] < squares[b]; });
  order.resize(std::min<std::size_t>(order.size(), kOctaves));
  std::vector<int> grid;
  for (const std::size_t i : order) {
    for (int t = (powers[i] - 1) * per_octave; t <= (powers[i] + 1) * per_octave; ++t)
      grid.push_back(t);
  }
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

double as_float(double scale) {
  return static_cast<double>(static_cast<float>(
      std::clamp(scale, std::ldexp(1.0, kLeastExponent), std::ldexp(1.0, kMostExponent))));
}

/// The better of two: less error, or the nearer to 1 where the errors are within kTie.
bool better(const ScaleChoice& a, const ScaleChoice& b) {
  if (std::abs(a.square - b.square) > kTie * std::min(a.square, b.square))
    return a.square < b.square;
  return std::abs(portable::log2(a.scale)) < std::abs(portable::log2(b.scale));
}

ScaleChoice best_power(const std::vector<int>& powers, const std::vector<double>& squares) {
  ScaleChoice best{std::ldexp(1.0, powers[0]), squares[0]};
  for (std::size_t i = 1; i < powers.size(); ++i) {
    const ScaleChoice choice{std::ldexp(1.0, powers[i]), squares[i]};
    if (better(choice, best)) best = choice;
  }
  return best;
}

ScaleChoice best_real(const std::vector<int>& grid, const std::vector<double>& squares,
                      const ScaleChoice& power, int per_octave, const Objective& objective) {
  std::vector<std::size_t> minima;
  for (std::size_t i = 1; i + 1 < grid.size(); ++i) {
    const bool inside = grid[i - 1] == grid[i] - 1 && grid[i + 1] == grid[i] + 1;
    if (inside && squares[i] <= squares[i - 1] && squares[i] <= squares[i + 1]) minima.push_back(i);
  }
  std::stable_sort(minima.begin(), minima.end(),
                   [&](std::size_t a, std::size_t b) { return squares[a] < squares[b]; });
  minima.resize(std::min<std::size_t>(minima.size(), kNarrowed));
  std::vector<ScaleChoice> found(minima.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < minima.size(); ++i) {
    const int t = grid[minima[i]];
    const auto of_log = [&](double log2_scale) { return objective(portable::exp2(log2_scale)); };
    std::uintmax_t steps = 60;
    const double log2_scale =
        boost::math::tools::brent_find_minima(of_log, (t - 1.0) / per_octave,
                                              (t + 1.0) / per_octave, kBrentBits, steps)
            .first;
    const double scale = as_float(portable::exp2(log2_scale));
    found[i] = {scale, objective(scale)};
  }
  ScaleChoice best = power;
  for (const ScaleChoice& choice : found) {
    if (better(choice, best)) best = choice;
  }
  return best;
}

BestScale search(const OutcomeLaw& law, double signal, double largest, const Objective& objective) {
  if (!(signal > 0) || std::isinf(signal))
    throw Error("best scale: all numbers are zero, or their mean square is beyond a double");
  const std::vector<int> powers = exponents(extent_of(law), std::sqrt(signal), largest);
  const std::vector<double> squares = evaluate(powers, 1, objective);
  BestScale best{{}, best_power(powers, squares), signal};
  const int per_octave = starts_per_octave(law);
  const std::vector<int> grid = starts(powers, squares, per_octave);
  best.real = best_real(grid, evaluate(grid, per_octave, objective), best.power_of_two, per_octave,
                        objective);
  return best;
}

}  // namespace

BestScale best_scale(const Format& format, const Rounding& rounding, const Density& density) {
  const OutcomeLaw law = outcome_law(format, rounding, Overflow::saturate);
  const std::vector<double> knots = density.knots();
  const double largest = std::max(std::abs(knots.front()), std::abs(knots.back()));
  const double signal = error_figures(law, 1, density).signal.mean;
  return search(law, signal, largest,
                [&](double scale) { return mean_square_error(law, scale, density); });
}

BestScale best_scale(const Format& format, const Rounding& rounding, const double* x,
                     std::int64_t n) {
  const OutcomeLaw law = outcome_law(format, rounding, Overflow::saturate);
  const SampleMse sample(x, n);
  return search(law, sample.signal(), sample.largest(),
                [&](double scale) { return sample.at(law, scale); });
}

}  // namespace numemu

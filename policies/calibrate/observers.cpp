// Cold: a negligible share of any run (docs/build.md).
#include "policies/calibrate/observers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr double kSixteenthDown = 0.95760328069857365;  // 2^(-1/16), rounded to nearest
constexpr int kEntropyBins = 2048;
constexpr int kFewestBins = 128;

using Points = std::vector<MagnitudeHistogram::Point>;

/// Sum over the points of count * error(value, cell) for cells and points in ascending order.
template <class Error>
double summed_error(const std::vector<Cell>& grid, double scale, const Points& points,
                    std::vector<double>& errors, const Error& error) {
  std::size_t cell = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = points[i].value;
    while (cell + 1 < grid.size() &&
           (x > grid[cell].high * scale ||
            (x == grid[cell].high * scale && grid[cell + 1].low_closed))) {
      ++cell;
    }
    errors[i] = static_cast<double>(points[i].count) * error(x, grid[cell]);
  }
  return pairwise_sum(static_cast<std::int64_t>(errors.size()),
                      [&](std::int64_t i) { return errors[i]; });
}

double squared(double x) { return x * x; }

/// The 2048 bins of entropy calibration.
std::vector<double> entropy_bins(const MagnitudeHistogram& h) {
  std::vector<double> bins(kEntropyBins);
  for (int i = 0; i < MagnitudeHistogram::kBins; ++i) {
    const double middle = std::min((i + 0.5) * h.width(), h.largest());
    const auto to = static_cast<std::size_t>(middle / h.largest() * kEntropyBins);
    bins[std::min<std::size_t>(to, kEntropyBins - 1)] += static_cast<double>(h.magnitudes(i));
  }
  bins[0] = bins[1];
  return bins;
}

/// x ln x
double x_log_x(double x) { return x > 0 ? x * portable::log(x) : 0; }

/// Divergence of the first `kept` bins with the elements beyond from those bins quantized. `ends`
/// are the upper bounds of the positive elements' cells over the largest element.
double divergence(const std::vector<double>& bins, int kept, double beyond,
                  const std::vector<double>& ends) {
  if (beyond > 0 && bins[kept - 1] == 0) return HUGE_VAL;  // the candidate has nothing there
  double inside = 0, reference = 0, crossed = 0;
  std::size_t cell = 0;
  for (int i = 0; i < kept;) {
    while (cell + 1 < ends.size() && i + 0.5 > ends[cell] * kept) ++cell;
    double mass = 0;
    int filled = 0;
    const bool last_cell = cell + 1 == ends.size();
    do {
      mass += bins[i];
      filled += bins[i] > 0;
      reference += x_log_x(i == kept - 1 ? bins[i] + beyond : bins[i]);
      ++i;
    } while (i < kept && (last_cell || i + 0.5 <= ends[cell] * kept));
    inside += mass;
    if (mass > 0) crossed += (mass + (i == kept ? beyond : 0)) * portable::log(mass / filled);
  }
  const double total = inside + beyond;
  return (reference - crossed) / total - portable::log(total) + portable::log(inside);
}

}  // namespace

double percentile_threshold(const MagnitudeHistogram& h, double percentile) {
  const double wanted = percentile * static_cast<double>(h.count());
  std::int64_t below = 0;
  for (int i = 0; i < MagnitudeHistogram::kBins; ++i) {
    below += h.magnitudes(i);
    if (static_cast<double>(below) * 100 >= wanted)
      return std::min((i + 1) * h.width(), h.largest());
  }
  return h.largest();
}

double mse_threshold(const MagnitudeHistogram& h, const Conversion& c) {
  if (h.largest() == 0) return 0;
  const bool stochastic = c.rounding.stochastic();
  const std::vector<Cell> grid =
      stochastic ? brackets(*c.format, c.symmetric) : cells(*c.format, c.rounding, c.symmetric);
  const Points points = h.points();
  std::vector<double> errors(points.size());
  double best = h.largest(), least = HUGE_VAL, threshold = h.largest();
  for (int j = 0; j <= kClipSteps; ++j, threshold *= kSixteenthDown) {
    const double scale = absmax_scale(threshold, c);
    if (!(scale > 0)) break;
    const double low = grid.front().low * scale, high = grid.back().high * scale;
    const double error = summed_error(grid, scale, points, errors, [&](double x, const Cell& cell) {
      if (!stochastic) return squared(cell.value * scale - x);
      if (x <= low || x >= high) return squared((x <= low ? low : high) - x);
      return (x - cell.low * scale) * (cell.high * scale - x);
    });
    if (error < least) {
      least = error;
      best = threshold;
    }
  }
  return best;
}

double kl_threshold(const MagnitudeHistogram& h, const Conversion& c) {
  if (h.largest() == 0) return 0;
  const Rounding rounding = c.rounding.stochastic() ? Rounding{} : c.rounding;
  const double largest = largest_element(c);
  std::vector<double> ends;
  for (const Cell& cell : cells(*c.format, rounding, c.symmetric))
    if (cell.high > 0) ends.push_back(cell.high / largest);
  const std::vector<double> bins = entropy_bins(h);
  double beyond = 0;
  for (int i = kFewestBins; i < kEntropyBins; ++i) beyond += bins[i];
  int best = kEntropyBins;
  double least = HUGE_VAL;
  for (int kept = kFewestBins; kept <= kEntropyBins; ++kept) {
    const double found = divergence(bins, kept, beyond, ends);
    if (found <= least) {
      least = found;
      best = kept;
    }
    if (kept < kEntropyBins) beyond -= bins[kept];
  }
  return h.largest() * best / kEntropyBins;
}

namespace {

using CalibrationRule = CalibrationPolicy::Rule;

class AbsmaxObserver final : public Observer {
 public:
  void see(const float* x, std::int64_t n) override {
    largest_ = std::max(largest_, largest_magnitude(x, n));
  }
  double threshold() const override { return largest_; }

 private:
  double largest_ = 0;
};

class HistogramObserver final : public Observer {
 public:
  HistogramObserver(const CalibrationPolicy& policy, const RolePolicy& role)
      : policy_(policy), role_(role) {}
  void see(const float* x, std::int64_t n) override { histogram_.add(x, n); }
  double threshold() const override { return histogram_threshold(policy_, role_, histogram_); }

 private:
  CalibrationPolicy policy_;
  RolePolicy role_;
  MagnitudeHistogram histogram_;
};

}  // namespace

double histogram_threshold(const CalibrationPolicy& policy, const RolePolicy& role,
                           const MagnitudeHistogram& histogram) {
  if (policy.rule == CalibrationRule::percentile)
    return percentile_threshold(histogram, policy.percentile);
  Conversion conversion;
  conversion.format = role.format;
  conversion.rounding = role.rounding;
  return policy.rule == CalibrationRule::mse ? mse_threshold(histogram, conversion)
                                             : kl_threshold(histogram, conversion);
}

std::unique_ptr<Observer> Observer::make(const CalibrationPolicy& policy, const RolePolicy& role) {
  if (policy.rule == CalibrationRule::dynamic)
    throw Error("calibration rule dynamic uses no observer: each tensor sets its own scale");
  if (policy.rule == CalibrationRule::absmax) return std::make_unique<AbsmaxObserver>();
  return std::make_unique<HistogramObserver>(policy, role);
}

}  // namespace numemu::policies

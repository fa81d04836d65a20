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

/// The least power of two above a positive number.
double power_above(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent);
}

/// 2^shift neighbours become one.
void merge(std::vector<std::int64_t>& bins, int shift) {
  for (std::size_t i = 1; i < bins.size(); ++i) {
    const std::size_t to = i >> shift;
    bins[to] += bins[i];
    bins[i] = 0;
  }
}

}  // namespace

void MagnitudeHistogram::grow(double largest) {
  largest_ = std::max(largest_, largest);
  const double range = power_above(largest_);
  if (range <= range_) return;
  if (range_ > 0) {
    const int shift = std::min(30, std::ilogb(range / range_));
    merge(positive_, shift);
    merge(negative_, shift);
  }
  range_ = range;
}

void MagnitudeHistogram::add(const float* x, std::int64_t n) {
  const double largest = largest_magnitude(x, n);
  if (largest > 0) grow(largest);
  const double per_bin = range_ > 0 ? kBins / range_ : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    ++count_;
    if (x[i] == 0) {
      ++zeros_;
      continue;
    }
    std::vector<std::int64_t>& bins = x[i] > 0 ? positive_ : negative_;
    if (bins.empty()) bins.resize(kBins);
    // Exact: a power of two times a float32, and the largest is below the range.
    ++bins[static_cast<std::size_t>(std::fabs(static_cast<double>(x[i])) * per_bin)];
  }
}

std::vector<MagnitudeHistogram::Point> MagnitudeHistogram::points() const {
  std::vector<Point> out;
  const auto middle = [&](std::size_t i) {
    return std::min((static_cast<double>(i) + 0.5) * width(), largest_);
  };
  for (std::size_t i = negative_.size(); i-- > 0;)
    if (negative_[i] > 0) out.push_back({-middle(i), negative_[i]});
  if (zeros_ > 0) out.push_back({0, zeros_});
  for (std::size_t i = 0; i < positive_.size(); ++i)
    if (positive_[i] > 0) out.push_back({middle(i), positive_[i]});
  return out;
}

std::int64_t MagnitudeHistogram::magnitudes(int bin) const {
  const auto i = static_cast<std::size_t>(bin);
  return (positive_.empty() ? 0 : positive_[i]) + (negative_.empty() ? 0 : negative_[i]) +
         (bin == 0 ? zeros_ : 0);
}

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

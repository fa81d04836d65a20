#include "experiments/zap/thresholds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/random.hpp"
#include "policies/calibrate/least_squares.hpp"

namespace numemu::experiments {

namespace {

constexpr std::int64_t kParameters = 4;
using Vector = std::array<double, kParameters>;  // a, b, c, d

double share(const LogisticCurve& curve, double x) { return core::sigmoid(curve.b * x - curve.c); }

/// Half the gradient and the Gauss-Newton matrix of the sum of squared residuals.
struct Normal {
  double squares = 0;
  Vector gradient{};
  std::vector<double> matrix = std::vector<double>(kParameters * kParameters);
};

double squares_of(const LogisticCurve& curve, std::span<const double> x,
                  std::span<const double> y) {
  return pairwise_sum(static_cast<std::int64_t>(x.size()), [&](std::int64_t i) {
    const double residual = y[i] - curve.at(x[i]);
    return residual * residual;
  });
}

Normal normal_of(const LogisticCurve& curve, std::span<const double> x, std::span<const double> y) {
  Normal normal;
  normal.squares = squares_of(curve, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = share(curve, x[i]), slope = curve.a * s * (1 - s);
    const Vector by{s, slope * x[i], -slope, 1};
    for (std::int64_t p = 0; p < kParameters; ++p) {
      normal.gradient[p] += by[p] * (y[i] - curve.at(x[i]));
      for (std::int64_t q = 0; q < kParameters; ++q)
        normal.matrix[p * kParameters + q] += by[p] * by[q];
    }
  }
  return normal;
}

/// The start: between the extremes, half way up where the points first are, as steep as they rise
/// from a quarter to three quarters.
LogisticCurve start_of(std::span<const double> x, std::span<const double> y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  LogisticCurve curve;
  curve.d = *least;
  curve.a = *most - *least;
  const auto reaches = [&](double part) {
    const auto found =
        std::find_if(y.begin(), y.end(), [&](double v) { return v >= curve.d + part * curve.a; });
    return x[static_cast<std::size_t>(found - y.begin())];
  };
  const double range =
      *std::max_element(x.begin(), x.end()) - *std::min_element(x.begin(), x.end());
  const double rise = std::max(reaches(0.75) - reaches(0.25), range / 64);
  curve.b = 2.1972245773362196 / rise;  // 2 ln 3
  curve.c = curve.b * reaches(0.5);
  return curve;
}

}  // namespace

double LogisticCurve::at(double x) const { return d + a * share(*this, x); }

LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < static_cast<std::size_t>(kParameters))
    throw Error("logistic curve: expected at least 4 points with one value each");
  const auto finite = [](double v) { return std::isfinite(v); };
  if (!std::all_of(x.begin(), x.end(), finite) || !std::all_of(y.begin(), y.end(), finite))
    throw Error("logistic curve: expected finite points");
  const FloatGuard guard;
  const double count = static_cast<double>(x.size());
  LogisticCurve curve = start_of(x, y);
  if (curve.a == 0) return {0, 1, 0, curve.d, 0};
  // Levenberg-Marquardt: a step that helps divides the damping by ten, any other multiplies it. The
  // fit has converged when no damping helps.
  constexpr int kSteps = 500;
  constexpr double kLeastTrust = 1e12, kMostTrust = 1e-12;
  double damping = 1e-3;
  Normal normal = normal_of(curve, x, y);
  for (int step = 0; step < kSteps && damping < kLeastTrust; ++step) {
    std::vector<double> matrix = normal.matrix;
    for (std::int64_t p = 0; p < kParameters; ++p) {
      double& diagonal = matrix[p * kParameters + p];
      diagonal += damping * std::max(diagonal, kMostTrust);
    }
    Vector change = normal.gradient;
    LogisticCurve next = curve;
    try {
      policies::Cholesky(std::move(matrix), kParameters).solve(change.data());
    } catch (const Error&) {
      damping *= 10;
      continue;
    }
    next.a += change[0];
    next.b = std::max(0.0, next.b + change[1]);
    next.c += change[2];
    next.d += change[3];
    const double squares = squares_of(next, x, y);
    if (!(squares < normal.squares)) {
      damping *= 10;
      continue;
    }
    curve = next;
    normal = normal_of(curve, x, y);
    damping = std::max(damping / 10, kMostTrust);
  }
  curve.rms = std::sqrt(normal.squares / count);
  return curve;
}

// Sums by image over maps and predictions.

Estimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const double whole = pairwise_sum(n, [&](std::int64_t i) { return wholes[i]; });
  if (whole == 0) return {};
  Estimate ratio;
  ratio.value = pairwise_sum(n, [&](std::int64_t i) { return parts[i]; }) / whole;
  ratio.error = std::sqrt(pairwise_sum(n,
                                       [&](std::int64_t i) {
                                         const double residual = parts[i] - ratio.value * wholes[i];
                                         return residual * residual;
                                       })) /
                std::fabs(whole);
  return ratio;
}

PredictedMaps::PredictedMaps(const policies::ZapPredictor& predictor, net::Tensor maps)
    : predictor_(predictor), x_(std::move(maps)), z_(x_.shape) {
  // A few at a time: the predictor's own tensors are as large as the maps.
  constexpr std::int64_t kBatch = 128;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  for (std::int64_t first = 0; first < images; first += kBatch) {
    net::Shape shape = x_.shape;
    shape[0] = std::min(kBatch, images - first);
    net::Tensor part(shape);
    std::copy_n(x_.data.begin() + first * each, part.size(), part.data.begin());
    const net::Tensor z = predictor.predict(part);
    std::copy(z.data.begin(), z.data.end(), z_.data.begin() + first * each);
  }
}

policies::ZapTally PredictedMaps::tally(float threshold) const {
  return policies::tally_of(predictor_.mask(), x_, z_, threshold);
}

Estimate PredictedMaps::bound() const {
  const std::int64_t images = x_.dim(0), each = x_.size() / images, channels = x_.dim(3);
  const policies::PositionMask& mask = predictor_.mask();
  std::vector<double> zeros(static_cast<std::size_t>(images)),
      all(zeros.size(), static_cast<double>(each));
  for (std::int64_t n = 0; n < images; ++n) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < each; ++i) {
      const bool predicted = mask.computed[static_cast<std::size_t>(i / channels)] == 0;
      count += predicted && !(x_.data[n * each + i] > 0);
    }
    zeros[n] = static_cast<double>(count);
  }
  return ratio_of(zeros, all);
}

Estimate PredictedMaps::error_where(const std::function<bool(std::int64_t)>& skips) const {
  const FloatGuard guard;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  std::vector<double> lost, all;
  for (std::int64_t n = 0; n < images; ++n) {
    const auto value = [&](std::int64_t i) { return static_cast<double>(x_.data[i]); };
    all.push_back(pairwise_sum(each, value, n * each));
    lost.push_back(pairwise_sum(
        each, [&](std::int64_t i) { return skips(i) ? value(i) : 0; }, n * each));
  }
  return ratio_of(lost, all);
}

Estimate PredictedMaps::error(float threshold) const {
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, z_.data[i], threshold);
  });
}

Estimate PredictedMaps::random_error(double rate, std::uint64_t seed) const {
  const RandomSource random{seed, Stream::mask, tensor_word(predictor_.graph().name + ".random"),
                            0};
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, -HUGE_VALF, 0) &&
           random.uniform(static_cast<std::uint64_t>(i)) < rate;
  });
}

// Curves per layer, and a knapsack with one choice per layer.

namespace {

constexpr int kMeasured = static_cast<int>(2 * kLargestThreshold / kMeasuredStep + 1.5);
constexpr int kChoices = static_cast<int>(2 * kLargestThreshold / kChosenStep + 1.5);

double measured_at(int i) { return (i - kMeasured / 2) / (1 / kMeasuredStep); }
double choice_at(int i) { return (i - kChoices / 2) / (1 / kChosenStep); }

/// A fitted curve may leave what an error or a share can be.
double share_at(const LogisticCurve& curve, double threshold) {
  return std::clamp(curve.at(threshold), 0.0, 1.0);
}

double remaining_at(const ThresholdCurves& layer, double threshold) {
  return layer.macs * (1 - share_at(layer.saving, threshold));
}

/// The error of each threshold in parts of the budget, rounded up.
std::vector<std::int64_t> parts_of(const ThresholdCurves& layer, double budget) {
  constexpr double kMost = 1e15;  // no sum of these leaves the integers
  std::vector<std::int64_t> parts;
  for (int i = 0; i < kChoices; ++i) {
    const double part = std::ceil(share_at(layer.error, choice_at(i)) / budget * kBudgetParts);
    parts.push_back(static_cast<std::int64_t>(std::min(part, kMost)));
  }
  return parts;
}

}  // namespace

std::vector<float> measured_thresholds() {
  std::vector<float> thresholds;
  for (int i = 0; i < kMeasured; ++i) thresholds.push_back(static_cast<float>(measured_at(i)));
  return thresholds;
}

ThresholdCurves threshold_curves(std::span<const policies::ZapTally> tallies, double macs) {
  if (tallies.size() != static_cast<std::size_t>(kMeasured)) {
    throw Error("threshold curves: expected the tallies of " + std::to_string(kMeasured) +
                " thresholds, got " + std::to_string(tallies.size()));
  }
  std::vector<double> x, error, saving;
  for (int i = 0; i < kMeasured; ++i) {
    x.push_back(measured_at(i));
    error.push_back(tallies[i].error());
    saving.push_back(tallies[i].saving());
  }
  return {macs, fit_logistic(x, error), fit_logistic(x, saving)};
}

ThresholdChoice choose_thresholds(std::span<const ThresholdCurves> layers, double budget) {
  if (!(budget > 0 && std::isfinite(budget)))
    throw Error("thresholds: expected a budget of error above 0");
  const FloatGuard guard;
  // Every layer costs the error of its least threshold; the rest of the budget is distributed.
  std::vector<std::vector<std::int64_t>> prices;
  std::int64_t left = kBudgetParts;
  for (const ThresholdCurves& layer : layers) {
    const std::vector<std::int64_t> parts = parts_of(layer, budget);
    left -= parts[0];
    std::vector<std::int64_t>& price = prices.emplace_back();
    for (const std::int64_t part : parts)
      price.push_back(std::max<std::int64_t>(0, part - parts[0]));
  }
  left = std::max<std::int64_t>(0, left);
  // least[p]: multiply-adds of the layers so far for at most p parts; choices[layer][p] is the
  // layer's threshold there.
  std::vector<double> least(static_cast<std::size_t>(left) + 1, 0);
  std::vector<std::vector<int>> choices;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> next(least.size(), HUGE_VAL);
    std::vector<int>& choice = choices.emplace_back(least.size());
    for (int i = 0; i < kChoices; ++i) {
      const double macs = remaining_at(layers[l], choice_at(i));
      for (std::int64_t p = prices[l][i]; p <= left; ++p) {
        if (!(least[p - prices[l][i]] + macs < next[p])) continue;
        next[p] = least[p - prices[l][i]] + macs;
        choice[p] = i;
      }
    }
    least = std::move(next);
  }
  ThresholdChoice result;
  result.thresholds.resize(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) {
    const int chosen = choices[l][left];
    left -= prices[l][chosen];
    result.thresholds[l] = choice_at(chosen);
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    result.error += share_at(layers[l].error, result.thresholds[l]);
    result.remaining += remaining_at(layers[l], result.thresholds[l]);
  }
  return result;
}

}  // namespace numemu::experiments

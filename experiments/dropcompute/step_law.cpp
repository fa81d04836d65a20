#include "experiments/dropcompute/step_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::dropcompute {
namespace {

/// P(the largest of n is above x) where one of them is so with probability p.
double any_above(double n, double p) {
  return p >= 1 ? 1 : -portable::expm1(n * portable::log1p(-p));
}

/// z(1 - tail), without the rounding of 1 - tail.
double upper_quantile(double tail) { return -normal::quantile(tail); }

}  // namespace

double published_largest_normal(double workers) {
  constexpr double g = std::numbers::egamma;
  return (1 - g) * upper_quantile(1 / workers) +
         g * upper_quantile(1 / (std::numbers::e * workers));
}

double StepLaw::best_threshold() const {
  const double low = static_cast<double>(step_.micro_batches) * mean() / 2, high = time();
  double best = high, most = speed_up(high);
  // The time is at least the mean of a worker, 2 low: as many steps below low lead to 0.
  for (int i = 1 - kThresholds; i < kThresholds; ++i) {
    const double threshold = low + (high - low) * i / kThresholds;
    if (!(threshold > 0)) continue;
    const double gain = speed_up(threshold);
    if (gain > most) {
      best = threshold;
      most = gain;
    }
  }
  return best;
}

PublishedStep::PublishedStep(double mean, double variance, const Accumulation& step)
    : StepLaw(step), mean_(mean), sigma_(std::sqrt(variance)) {
  const auto m = static_cast<double>(step.micro_batches);
  const auto n = static_cast<double>(step.workers);
  time_ = m * mean + sigma_ * std::sqrt(m) * (step.workers < 2 ? 0 : published_largest_normal(n));
}

double PublishedStep::kept(double threshold) const {
  double sum = 0;
  for (std::int64_t m = 1; m <= step().micro_batches; ++m) {
    const auto count = static_cast<double>(m);
    const double over = threshold - count * mean_;
    sum += sigma_ > 0 ? normal::cdf(over / (sigma_ * std::sqrt(count))) : over > 0 ? 1 : 0;
  }
  return sum / static_cast<double>(step().micro_batches);
}

SumLaws::SumLaws(const stats::LatencyLaw& law, std::int64_t micro_batches) : law_(law) {
  low_ = law.of_bits(0);
  const double high = law.of_bits(0xffffffff);
  const std::int64_t points = high > low_ ? kPoints : 1;
  spacing_ = points > 1 ? (high - low_) / static_cast<double>(points - 1) : 0;
  if (8 * spacing_ > std::sqrt(law.variance) && points > 1) {
    throw Error(
        fmt::format("latency {}: draws from {:.4g} to {:.4g} are too wide for closed forms, "
                    "expected a range of at most {} standard deviations, {:.4g}",
                    law.name, low_, high, (kPoints - 1) / 8,
                    std::sqrt(law.variance) * static_cast<double>((kPoints - 1) / 8)));
  }
  std::vector<double> one(static_cast<std::size_t>(points));
  double below = 0, first = 0;
  for (std::int64_t i = 0; i < points; ++i) {
    const double until =
        i + 1 == points ? 1 : law.probability(low_ + (static_cast<double>(i) + 0.5) * spacing_);
    one[i] = until - below;
    below = until;
    first += one[i] * static_cast<double>(i);
  }
  low_ = law.mean - first * spacing_;  // so that rounding to the lattice keeps the mean
  std::vector<double> sum = {1};
  above_.push_back({1, 0});
  for (std::int64_t m = 1; m <= micro_batches; ++m) {
    std::vector<double> next(sum.size() + one.size() - 1);
    for (std::size_t i = 0; i < sum.size(); ++i)
      for (std::size_t j = 0; j < one.size(); ++j) next[i + j] += sum[i] * one[j];
    sum = std::move(next);
    std::vector<double> above(sum.size() + 1);
    for (std::size_t i = sum.size(); i-- > 0;) above[i] = above[i + 1] + sum[i];
    above_.push_back(std::move(above));
  }
}

std::int64_t SumLaws::cells(std::int64_t m) const {
  return static_cast<std::int64_t>(above_[m].size()) - 1;
}

double SumLaws::edge(std::int64_t m, std::int64_t i) const {
  return static_cast<double>(m) * low_ + (static_cast<double>(i) - 0.5) * spacing_;
}

double SumLaws::above(std::int64_t m, double x) const {
  const double from = x - edge(m, 0);
  if (spacing_ == 0) return from <= 0 ? 1 : 0;
  const double place = from / spacing_;
  if (place <= 0) return 1;
  if (place >= static_cast<double>(cells(m))) return 0;
  const auto cell = static_cast<std::int64_t>(place);
  const double part = place - static_cast<double>(cell);
  return above_[m][cell] + part * (above_[m][cell + 1] - above_[m][cell]);
}

ExactStep::ExactStep(const SumLaws& sums, const Accumulation& step) : StepLaw(step), sums_(sums) {
  const std::int64_t m = step.micro_batches, cells = sums.cells(m);
  double before = 1;
  until_.push_back(sums.edge(m, 0));
  for (std::int64_t i = 1; i <= cells; ++i) {
    const double after = longer(sums.edge(m, i));
    until_.push_back(until_.back() + sums.spacing() * (before + after) / 2);
    before = after;
  }
}

double ExactStep::longer(double x) const {
  return any_above(static_cast<double>(step().workers), sums_.above(step().micro_batches, x));
}

double ExactStep::time_until(double threshold) const {
  const std::int64_t m = step().micro_batches;
  const double first = sums_.edge(m, 0);
  if (threshold <= first) return threshold;
  if (threshold >= sums_.edge(m, sums_.cells(m))) return time();
  const auto i = static_cast<std::int64_t>((threshold - first) / sums_.spacing());
  const double at = sums_.edge(m, i);
  return until_[i] + (threshold - at) * (longer(at) + longer(threshold)) / 2;
}

double ExactStep::kept(double threshold) const {
  double sum = 0;
  for (std::int64_t m = 1; m <= step().micro_batches; ++m) sum += 1 - sums_.above(m, threshold);
  return sum / static_cast<double>(step().micro_batches);
}

double ExactStep::time_checked(double threshold) const {
  const double spacing = sums_.spacing();
  if (spacing == 0) {
    const double one = sums_.law().mean, all = one * static_cast<double>(step().micro_batches);
    return std::min(all, std::max(one, std::ceil(threshold / one) * one));
  }
  // A worker leaves after x >= threshold if a sum below the threshold is followed by one above x:
  // P = sum_m sum_s P(S_m = s < threshold) P(latency > x - s). Latencies are not negative, so that
  // one m at most does so. x goes to the largest latency behind the threshold.
  constexpr std::int64_t kSteps = 512;
  const double apart = sums_.edge(1, sums_.cells(1)) / static_cast<double>(kSteps);
  std::vector<double> late(kSteps + 1);
  for (std::int64_t m = 0; m < step().micro_batches; ++m) {
    for (std::int64_t j = 0; j < sums_.cells(m) && sums_.edge(m, j) < threshold; ++j) {
      const double from = sums_.edge(m, j), part = std::min(1.0, (threshold - from) / spacing);
      const double p = part * (sums_.above_edge(m, j) - sums_.above_edge(m, j + 1));
      const double left = threshold - (from + part * spacing / 2);  // from the middle of the part
      for (std::int64_t i = 0; i <= kSteps; ++i)
        late[i] += p * sums_.above(1, left + static_cast<double>(i) * apart);
    }
  }
  const auto n = static_cast<double>(step().workers);
  double sum = time_until(threshold);
  for (std::int64_t i = 0; i < kSteps; ++i)
    sum += apart * (any_above(n, late[i]) + any_above(n, late[i + 1])) / 2;
  return sum;
}

}  // namespace numemu::experiments::dropcompute

// Closed forms of a synchronous step of DropCompute (Giladi et al., NeurIPS 2023): each of N
// workers adds up M micro-batches and then waits for the others, or stops at a threshold.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/latency.hpp"

namespace numemu::experiments::dropcompute {

/// E of the largest of N standard normal numbers, N >= 2, by the publication's approximation: (1-g)
/// z(1 - 1/N) + g z(1 - 1/(e N)), g Euler's constant and z the normal quantile.
double published_largest_normal(double workers);

/// The effective speed-up of a threshold that keeps a share of the micro-batches and makes a step
/// last so long, not `time`; `overhead` is a part of both that no threshold shortens.
constexpr double effective_speed_up(double kept, double time, double lasts, double overhead) {
  return kept * (time + overhead) / (lasts + overhead);
}

/// Who takes a step.
struct Accumulation {
  std::int64_t workers = 2, micro_batches = 1;
  double overhead = 0;  ///< communication
};

/// How long a step lasts. All times are in the unit of the latencies.
class StepLaw {
 public:
  explicit StepLaw(const Accumulation& step) : step_(step) {}
  virtual ~StepLaw() = default;
  /// E[T], T = max_n of the time that worker n needs for its micro-batches.
  virtual double time() const = 0;
  /// E[min(threshold, T)].
  virtual double time_until(double threshold) const = 0;
  /// Expected share of the micro-batches that end before the threshold.
  virtual double kept(double threshold) const = 0;

  /// With E[T] and E[min(threshold, T)].
  double speed_up(double threshold) const { return speed_up(threshold, time_until(threshold)); }
  /// The speed-up of a step that lasts so long.
  double speed_up(double threshold, double lasts) const {
    return effective_speed_up(kept(threshold), time(), lasts, step_.overhead);
  }
  /// The threshold of the largest speed_up() among equal steps from 0 to E[T], of which kThresholds
  /// lie between `micro_batches` / 2 times the mean latency and E[T].
  double best_threshold() const;
  const Accumulation& step() const { return step_; }

 protected:
  static constexpr int kThresholds = 400;
  virtual double mean() const = 0;

 private:
  Accumulation step_;
};

/// The publication's: sums of micro-batches are normal, and T is E[T].
class PublishedStep final : public StepLaw {
 public:
  PublishedStep(const stats::LatencyLaw& law, const Accumulation& step)
      : PublishedStep(law.mean, law.variance, step) {}
  PublishedStep(double mean, double variance, const Accumulation&);
  double time() const override { return time_; }
  double time_until(double threshold) const override {
    return threshold < time_ ? threshold : time_;
  }
  double kept(double threshold) const override;

 private:
  double mean() const override { return mean_; }
  double mean_, sigma_, time_;
};

/// The laws of the first 1 to M of a worker's micro-batches added up, on a lattice: of any law of
/// latencies, at the resolution of its 32-bit draws.
class SumLaws {
 public:
  /// Throws Error for a law that is too wide for the lattice: kPoints equal steps between its
  /// smallest and its largest draw must be at most 1/8 of its standard deviation.
  SumLaws(const stats::LatencyLaw&, std::int64_t micro_batches);

  std::int64_t micro_batches() const { return static_cast<std::int64_t>(above_.size()) - 1; }
  const stats::LatencyLaw& law() const { return law_; }
  /// P(the first m add up to more than x), continuous within steps of the lattice.
  double above(std::int64_t m, double x) const;
  /// The ends of the lattice's cells of the sum of m: edge i; above() is linear between them.
  std::int64_t cells(std::int64_t m) const;
  double edge(std::int64_t m, std::int64_t i) const;
  double spacing() const { return spacing_; }
  /// P(the sum of m is in cell i or above).
  double above_edge(std::int64_t m, std::int64_t i) const { return above_[m][i]; }

 private:
  static constexpr std::int64_t kPoints = 1024;
  stats::LatencyLaw law_;
  double low_ = 0, spacing_ = 0;            ///< cell i of the sum of m: m low + i spacing
  std::vector<std::vector<double>> above_;  ///< by m, then cell; one more for the last end
};

/// Exact but for the lattice's spacing: order statistics by quadrature.
class ExactStep final : public StepLaw {
 public:
  /// `sums` outlives it.
  ExactStep(const SumLaws& sums, const Accumulation&);
  double time() const override { return until_.back(); }
  double time_until(double threshold) const override;
  double kept(double threshold) const override;
  /// E of the time until every worker left where the clock is read at the end of each micro-batch:
  /// the one that passes the threshold is waited for, and lost.
  double time_checked(double threshold) const;

 private:
  double mean() const override { return sums_.law().mean; }
  double longer(double x) const;  ///< P(T > x)

  const SumLaws& sums_;
  std::vector<double> until_;  ///< time_until() each edge, from the first on
};

}  // namespace numemu::experiments::dropcompute

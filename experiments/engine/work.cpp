// Costs are ratios of processor time; docs/performance.md has the measurement.
#include "experiments/engine/work.hpp"

#include <algorithm>

#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/layer_noise.hpp"

namespace numemu::experiments {

void Work::tell() {
  if (told_) told_({phase_, std::min(total_, before_ + share_ * cost_), total_, free_});
}

void Work::begin(std::string_view phase, double cost) {
  const std::lock_guard lock(mutex_);
  before_ += cost_;
  cost_ = cost;
  share_ = 0;
  samples_ = 0;
  phase_ = phase;
  tell();
}

void Work::add(std::int64_t samples, std::int64_t of) {
  const std::lock_guard lock(mutex_);
  samples_ += samples;
  share_ = std::min(
      1.0, static_cast<double>(samples_) / static_cast<double>(std::max<std::int64_t>(1, of)));
  tell();
}

void Work::skip() {
  const std::lock_guard lock(mutex_);
  share_ = 1;
  free_ += cost_;
  tell();
}

double bench_cost(std::int64_t images, std::int64_t reference) {
  return static_cast<double>(images + reference);
}

double point_cost(std::int64_t images, std::int64_t reference, std::int64_t calibration,
                  bool predictions) {
  return calibration_cost(calibration) +
         (predictions ? tensors_cost(reference) + layers_cost(reference) + accuracy_cost(images)
                      : 0) +
         noise_cost(reference) + evaluation_cost(images);
}

double calibration_cost(std::int64_t samples) { return 1.3 * static_cast<double>(samples); }

double tensors_cost(std::int64_t reference) { return 5.0 * static_cast<double>(reference); }

// Where probe_plan() has fewer probes, too much.
double layers_cost(std::int64_t reference) {
  return 1.5 * static_cast<double>(kProbes * std::min(kProbeSamples, reference));
}

double accuracy_cost(std::int64_t images) {
  return 2.0 * static_cast<double>(std::min(kMostPredicted, images));
}

// Streamed samples run in float32, too; fewer where the interval is short before.
double noise_cost(std::int64_t reference) {
  const std::int64_t streamed = std::max<std::int64_t>(0, kMeasuredSamples - reference);
  return 2.0 * static_cast<double>(reference) + 2.5 * static_cast<double>(streamed);
}

double evaluation_cost(std::int64_t images) { return 1.3 * static_cast<double>(images); }

}  // namespace numemu::experiments

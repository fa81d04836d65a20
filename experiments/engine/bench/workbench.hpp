// Everything the points of one sweep share: the trained network, the data, the float32 truth.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/trained_net.hpp"
#include "experiments/engine/work.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/policy.hpp"

namespace numemu::policies {
class RecipeNumerics;
class SeenTensors;
}  // namespace numemu::policies

namespace numemu::experiments {

class FitCache;
struct AccuracyReference;

/// How many calibration samples the reference may hold: fewer of larger networks.
std::int64_t reference_count(const net::Graph&, const net::Dataset&);

/// The first calibration samples, as many as the reference may hold. Those with NaN or infinite
/// numbers, which would spread to every figure, are left out and added to `odd`, if given. Throws
/// Error where none is left.
net::Tensor reference_batch(const net::Graph&, const net::Dataset&,
                            std::set<std::int64_t>* odd = nullptr);

/// The samples of a batch that hold NaN or infinite numbers.
std::vector<std::int64_t> odd_samples_of(const net::Tensor& batch);
/// Drops the samples of a batch that hold NaN or infinite numbers, counted from `first` in `odd`,
/// if given; returns how many are left.
std::int64_t keep_finite(net::Tensor& batch, std::set<std::int64_t>* odd = nullptr);

/// What a workbench takes from earlier runs, and whom it tells how far it is.
struct BenchOptions {
  std::string cache = {};  ///< folder with baselines; empty for none
  bool fresh = false;      ///< the baseline is computed, whatever the cache holds
  OnWork on_work = {};
  /// Names of scores (emu/net/train/score.hpp); without any those of the data set.
  std::vector<std::string> metrics = {};
};

/// The shared float32 side of a sweep: points read it, and change nothing.
struct Workbench {
  Workbench(net::Dataset, TrainedNet, std::int64_t eval_images, const BenchOptions& = {});

  /// Activations that the reference may hold: it has fewer samples of larger networks.
  static constexpr std::int64_t kReferenceElements = std::int64_t{1} << 24;

  net::Dataset dataset;
  TrainedNet trained;
  std::vector<net::OutputScore> scores;
  std::int64_t eval_images;            ///< at most the size of the test split
  std::set<std::int64_t> odd_samples;  ///< of the reference, with NaN or infinite numbers
  policies::FloatReference reference;  ///< on the calibration images
  net::Evaluation baseline;            ///< float32 on the test images
};

/// What points on one workbench find once and share; also points beside each other.
class PointCache {
 public:
  /// `several`: what calibration saw is kept, for points that calibrate on the same samples.
  explicit PointCache(bool several = false);
  ~PointCache();
  FitCache& fits() { return *fits_; }
  policies::SeenTensors* calibrations() { return calibrations_.get(); }
  /// The float32 side of predicted accuracy; null where the data set has no targets.
  const AccuracyReference* accuracy(const Workbench&);
  /// Calibration samples with NaN or infinite numbers.
  void add_odd_sample(std::int64_t);
  std::set<std::int64_t> odd_samples() const;

 private:
  std::unique_ptr<FitCache> fits_;
  std::unique_ptr<policies::SeenTensors> calibrations_;
  std::once_flag accuracy_once_;
  std::unique_ptr<AccuracyReference> accuracy_;
  mutable std::mutex mutex_;
  std::set<std::int64_t> odd_samples_;
};

/// The calibration samples of a data set, which must outlive this.
policies::CalibrationBatch calibration_of(const net::Dataset&);
/// Freezes numerics, calibrated on those samples.
void freeze(policies::RecipeNumerics&, const net::Graph&, const net::Dataset&);

/// Throws Error that says how to keep samples apart.
[[noreturn]] void throw_no_calibration(const net::Dataset&);

}  // namespace numemu::experiments

// Everything the points of one sweep share: the trained network, the data, the float32 truth.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/run_state.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/row.hpp"
#include "experiments/engine/work.hpp"
#include "formats/storage/json.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/policy.hpp"

namespace numemu::policies {
class BoundRecipe;
class RecipeNumerics;
class SeenTensors;
}  // namespace numemu::policies

namespace numemu::experiments {

class FitCache;
struct AccuracyReference;

/// Where the program finds what it ships and keeps what it generates.
struct Folders {
  std::string data;   ///< shipped checkpoints and sweeps
  std::string cache;  ///< generated data sets, and baselines in float32
};

/// A network with its trained weights.
struct TrainedNet {
  net::Graph graph;
  std::string path;    ///< of the checkpoint
  std::string digest;  ///< first 16 hexadecimal digits of the SHA-256 of its parameters' bits
  /// SHA-256 of the graph that an .onnx file gave (net::graph_bytes); empty where a name gives it.
  std::string source = {};
  /// The network before tuning or fine-tuning, where the checkpoint has it: the float32 baseline.
  std::optional<net::Graph> before = {};
};

/// `name` is a reference network (then the checkpoint shipped for that data set is used), a
/// .safetensors file written by `numemu train`, NAME=FILE with the weights of a reference network
/// as safetensors or npz, or an .onnx file. Throws Error that explains how to train one if none is
/// shipped.
TrainedNet load_trained_net(const std::string& name, const net::Dataset&, const Folders&);

/// The network whose accuracy in float32 points are compared with.
const net::Graph& baseline_graph(const TrainedNet&);

/// The data set with the targets of the network's outputs, in their order.
net::Dataset at_outputs_of(const net::Graph&, const net::Dataset&);

/// load_trained_net(), with the data set as at_outputs_of() gives it.
TrainedNet load_with_data(const std::string& name, net::Dataset&, const Folders&);

/// Folds batch normalisation into the weights before it (emu/net/fold_batch_norm.hpp).
void fold_batch_norm(TrainedNet&);

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

/// How many samples a float32 reference may hold where one has so many elements.
std::int64_t most_samples(std::int64_t elements);

/// float32 elements of what calibration keeps of the activations of a recipe: histograms of those
/// that a rule clips, elements where a scale rule reads them.
std::int64_t calibration_elements(const policies::BoundRecipe&);

/// Throws Error where the memory budget does not hold a float32 reference of at most `most`
/// calibration samples and what is measured beside it and `beside` elements, by so many points at
/// the same time: passes over its samples, the evaluation of `images` by the network and by its
/// baseline. It names a budget that does, by estimate the least, which is returned where it fits (0
/// where no budget is set).
std::int64_t require_bench_memory(const net::Graph&, const net::Graph& baseline,
                                  const net::Dataset&, std::int64_t images, std::int64_t beside = 0,
                                  std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                                  std::int64_t points = 1);

/// Throws Error where the budget is too small for an export, before anything is computed or
/// written: `calibration` samples, the `samples` that are compared, and beside their outputs the
/// network that is read back.
void require_export_memory(const policies::BoundRecipe&, std::int64_t samples,
                           std::int64_t calibration);

/// The recipe on a trained network: with the ranges of its checkpoint, unless the recipe has some
/// itself. `where`, the recipe's file, starts messages.
policies::BoundRecipe bound_recipe(const policies::Recipe&, const TrainedNet&,
                                   const std::string& where);

/// The calibration samples of a data set, which must outlive this.
policies::CalibrationBatch calibration_of(const net::Dataset&);
/// Freezes numerics, calibrated on those samples.
void freeze(policies::RecipeNumerics&, const net::Graph&, const net::Dataset&);

/// Throws Error that says how to keep samples apart.
[[noreturn]] void throw_no_calibration(const net::Dataset&);

NetworkIdentity identity_of(const TrainedNet&);
/// Its members by name.
net::RunIdentity run_identity(const TrainedNet&);
/// Adds it to the point of a trial.
void identify(Json& point, const TrainedNet&);

/// One file in FOLDER/baselines, named by everything that decides the evaluation: numerics version,
/// nodes and parameters of the graph, the file it came from, data set, number of samples, and the
/// reference's samples and logits. The file holds that key and a digest of itself: one that is
/// damaged, cut or another's is no file, and is written anew.
class BaselineCache {
 public:
  /// An empty folder keeps nothing.
  BaselineCache(const std::string& folder, const TrainedNet&, const net::Dataset&,
                const policies::FloatReference&, std::int64_t images);

  /// Sets the file's time, so that write() keeps it longer.
  std::optional<net::Evaluation> read() const;
  /// A folder that cannot be written costs the next run its time, nothing else. Beyond kMostBytes
  /// the files that were used longest ago go; so do temporary files of killed writers.
  void write(const net::Evaluation&) const;

  static constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;   ///< of all files
  static constexpr std::int64_t kMostTargets = std::int64_t{4} << 20;  ///< of one evaluation
  /// "" where nothing is kept.
  const std::string& path() const { return path_; }

 private:
  std::string folder_, key_, path_;
  std::int64_t images_ = 0, targets_ = 0;
};

}  // namespace numemu::experiments

// One training run of an experiment: a network, a data set, a recipe and a seed to an accuracy.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/train/metrics.hpp"
#include "emu/net/train/options.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {
class Recipe;
}

namespace numemu::experiments {

/// Numerics around those of a recipe in training, for contrasts that no recipe offers.
struct NumericsAround {
  std::string name;  ///< part of the trial's point; empty: none
  std::function<std::unique_ptr<net::Numerics>(net::Numerics& inner)> make;
};

struct TrainTrial {
  std::string net;  ///< a reference network, or a file whose weights training begins with
  Json recipe = Json::object();    ///< its version and seed are filled in; {}: float32
  std::uint64_t seed = 0;          ///< of weights, order, augmentation and the recipe's draws
  net::TrainOptions options = {};  ///< epochs, batch, rates; its seed is replaced
  std::int64_t train_samples = 0;  ///< the first ones of the training split; 0: all
  std::int64_t eval_samples = 0;   ///< the first ones of the test split; 0: all
  /// How often it is tested on the way, evenly, the last time behind the last update.
  std::int64_t tests = 0;
  /// The first value of every parameter by name, running statistics too, instead of those drawn
  /// from the seed: a checkpoint's tensors; empty: none.
  std::vector<net::NamedTensor> start = {};
  NumericsAround around = {};  ///< of the training, not of the test
  /// Called before every product of a training step, as the network requests it (operands unpruned
  /// and unquantized); may be empty.
  std::function<void(const net::Product&, std::int64_t step)> before = {};
  /// Called after every training step, with the number of the step and the network that it left;
  /// may be empty.
  std::function<void(const net::Graph&, std::int64_t step)> on_step = {};
  /// Called after every epoch, with the stage of the recipe that was in force; may be empty.
  std::function<void(const net::EpochMetrics&, std::size_t stage)> on_epoch = {};
  /// Called with the loss of every training step, in their order; may be empty.
  std::function<void(double loss)> on_loss = {};
};

struct TrainOutcome {
  double metric = 0;  ///< top-1 in [0, 1], or bits per character; NaN where training diverged
  bool accuracy = true;
  std::int64_t correct = 0, n = 0;  ///< of the targets evaluated
  double train_loss = 0;            ///< mean of the last epoch; NaN where it is not finite
  /// The update, from 1, from which on no loss is finite; none: training did not diverge.
  std::optional<std::int64_t> diverged = {};
  std::vector<double> at = {}, reached = {};  ///< updates, and the metric behind them

  double top1() const { return 100 * metric; }  ///< per cent
  static void fields(auto& self, const auto& visit) {
    visit("metric", self.metric);
    visit("accuracy", self.accuracy);
    visit("correct", self.correct);
    visit("n", self.n);
    visit("train_loss", self.train_loss);
    visit("diverged", self.diverged);
    visit("at", self.at, kIfAny);
    visit("reached", self.reached, kIfAny);
  }
};

/// Trains from the initial weights of the seed, or `start`, and evaluates on the test split under
/// the same recipe (weights masked and quantized by it; gradients play no part there; of one with
/// stages the last). Validation samples are read only if options.patience is set. Throws Error for
/// an unknown network, a recipe that cannot train it or names another optimizer or other objectives
/// than the options, for a start that does not fit the network, and for more samples than there
/// are.
TrainOutcome run_train_trial(const TrainTrial&, const net::Dataset&);
/// Throws Error, which says `where`, where run_train_trial() would refuse the recipe on the trial's
/// network; trains nothing.
void require_trainable(const TrainTrial&, net::Graph,
                       const std::string& where = "recipe of a training trial");

/// The trial as the point of a Trial: everything but what is called, and the identity of
/// the data. A start is there, as a digest, only where one is given.
Json point_of(const TrainTrial&, const net::Dataset&);

/// The set with the first `train_samples` of its training split (0: all) and, where `validation` is
/// false, no validation samples. Throws Error for more samples than there are.
net::Dataset restricted(const net::Dataset&, std::int64_t train_samples, bool validation);

/// The recipe of a trial with its version and its seed; objectives without an optimizer of their
/// own have the trial's. Throws Error as run_train_trial().
policies::Recipe parsed_recipe(const TrainTrial&);
/// The network of a trial at the weights of its seed or its file, whatever its start is.
net::Graph initial_network(const TrainTrial&, const net::Dataset&);
/// Whether the network of a trial comes from a file with weights.
bool has_weights(const TrainTrial&, const net::Dataset&);
/// Trains a network under these numerics by the options of a trial, whatever its recipe and calls
/// are; no validation samples are read.
void train_under(net::Numerics&, net::Graph&, const TrainTrial&, const net::Dataset&);
/// initial_network() trained in float32.
net::Graph trained_in_float32(const TrainTrial&, const net::Dataset&);

/// Top-1 in [0, 1] on the first `samples` test samples, 0: all.
double test_top1(const net::Graph&, const net::Dataset&, std::int64_t samples, net::Numerics&);

/// The network after one float32 epoch on the first samples in batches of 32, at the recommended
/// rates: trained to the end, a few samples would make up the whole gradient.
net::Graph briefly_trained(const std::string& name, const net::Dataset&, std::int64_t samples,
                           std::uint64_t seed);

struct TrainingPass {
  std::vector<net::Tensor> gradients;  ///< of the parameters, times the scale
  float scale = 1;                     ///< of the loss, as the numerics have it
};
/// Forward and backward of one training step, which updates nothing. The loss is the mean over the
/// batch.
TrainingPass training_pass(const net::Graph&, const net::Tensor& x,
                           const std::vector<std::int32_t>& classes, net::Numerics&,
                           std::int64_t step, std::uint64_t seed);

/// Gradients of one layer with respect to its outputs: what wgrad reads as its left operand.
struct LayerGradient {
  std::string layer;
  std::int64_t rows = 0, channels = 0;
  std::vector<float> g;  ///< [rows, channels] row-major, rows running over steps, batch and space
};

/// The gradients of every layer that multiplies, in the order of forward, for `steps` batches of
/// the training split in the order of shuffled(., seed, .), at the network's current weights and in
/// float32; the network is left as it is. The loss is the mean over the batch.
std::vector<LayerGradient> layer_gradients(const net::Graph&, const net::Dataset&,
                                           std::int64_t batch, std::int64_t steps,
                                           std::uint64_t seed);

}  // namespace numemu::experiments

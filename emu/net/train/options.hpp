// The options of a training run: everything that decides its bits besides network, data and
// numerics.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/data/samples.hpp"
#include "emu/net/train/image_sizes.hpp"

namespace numemu::net {

struct TrainOptions {
  /// A name of optimizer_names(), with arguments where it has options of its own.
  std::string optimizer = "adam";
  /// Names of objective_names(), with arguments where they have options, in turn within a step: see
  /// training_step().
  std::vector<std::string> objectives = {"cross_entropy"};
  /// By objective: its own optimizer, in place of `optimizer`, at the same rates.
  std::map<std::string, std::string> objective_optimizers = {};
  std::string schedule = "cosine";  ///< a name of schedule_names()
  double learning_rate = 0.002;
  std::int64_t warmup = 0;  ///< steps over which the rate rises linearly before the schedule
  double momentum = 0.9;    ///< sgd
  bool nesterov = false;    ///< sgd
  /// Of optimizers that read them (OptimizerName).
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  ///< L2 for sgd and adam-l2, decoupled for adam and adamw; on
                               ///< parameters of more than one axis
  double clip = 0;  ///< largest global norm of a step's gradients; 0: they are not clipped
  std::int64_t epochs = 12;
  std::int64_t patience = 0;  ///< epochs without a lower validation loss before the end, which
                              ///< then gives the best weights; 0: all epochs, the last weights
  std::int64_t batch = 128;
  std::int64_t workers = 1, micro_batches = 1;  ///< simulated workers of a step, and the parts each
                                                ///< one's share of the batch is cut into
  /// Steps that a worker takes on weights and an optimizer state of its own between two exchanges,
  /// which are then of what the weights lost (local SGD, Stich 2019); the last step of an epoch is
  /// exchanged, too. 0: every step exchanges gradients.
  std::int64_t local_steps = 0;
  Augmentation augment = {};  ///< of training images
  std::int64_t copies = 1;    ///< augmented views of each sample in a step: batch x copies rows
  ImageSizes sizes = {};      ///< of images, drawn anew for each step
  std::uint64_t seed = 0;

  bool augments() const { return augment.shift != 0 || augment.flip || augment.crop != 0; }
};

/// Throws Error naming the option that is out of its range, or a name nobody has.
void check(const TrainOptions&);

/// Every option by name, as text that differs for any two values, optimizers and objectives in
/// their canonical form; `workers`, `micro_batches`, `copies`, the image sizes, the objectives and
/// their optimizers only where they are not the defaults, so that runs without them keep their
/// identity.
std::vector<std::pair<std::string, std::string>> described(const TrainOptions&);

/// The optimizer that serves a reference network best; "adam" for any other.
std::string recommended_optimizer(std::string_view net);
/// Sets learning rate, warm-up, weight decay and clipping to what serves options.optimizer on the
/// reference network `net`, or on most networks where it is not one. Throws Error with the nearest
/// known optimizer.
void use_recommended_rates(TrainOptions& options, std::string_view net = "");

}  // namespace numemu::net

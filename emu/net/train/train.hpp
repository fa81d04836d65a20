// The training loop: shuffled epochs, an optimizer, a schedule, metrics per epoch; the same bits
// for any thread count.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"

namespace numemu::net {

struct TrainOptions {
  std::string optimizer = "adam";  ///< sgd (momentum) or adam
  std::string schedule =
      "cosine";  ///< cosine (to zero over all steps) or step (x 0.1 at 1/2 and 3/4 of the epochs)
  double learning_rate = 0.002;
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam
  double weight_decay = 0.01;  ///< L2 for sgd, decoupled for adam; on weights, not on biases
  std::int64_t epochs = 12;
  std::int64_t batch = 128;
  std::uint64_t seed = 0;
};

/// Sets the learning rate and the weight decay that serve options.optimizer on the reference
/// networks. Throws Error with the nearest known optimizer.
void use_recommended_rates(TrainOptions& options);

struct EpochMetrics {
  std::int64_t epoch = 0;
  double train_loss = 0, train_top1 = 0, validation_loss = 0, validation_top1 = 0;
};

struct TrainHooks {
  std::function<void(std::int64_t step, std::int64_t steps, double loss)> on_step;
  std::function<void(const EpochMetrics&)> on_epoch;
};

/// Trains in place. Never reads the test split. A step asks the numerics in this order: begin_step,
/// loss_scale, forward (product, vector_result, edge, save), backward (edge, restore, product),
/// accept_gradients on the unscaled gradients, and if they are accepted exchange and for each
/// parameter penalty and update; then end_step.
std::vector<EpochMetrics> train(Graph&, const Dataset&, const TrainOptions&, Numerics&,
                                const TrainHooks& = {});

enum class Split { train, validation, calibration, test };

struct Evaluation {
  std::int64_t n = 0, correct = 0;
  double loss = 0;                  ///< mean cross-entropy
  std::vector<std::uint8_t> right;  ///< one entry per image
};

/// Top-1 and loss on the first `count` images of a split (0 = all), batches of 64 over OpenMP
/// threads.
Evaluation evaluate(const Graph&, const Dataset&, Split, std::int64_t count, Numerics&);

}  // namespace numemu::net

// One training step: forward, loss, backward, update, and every hook of the numerics in a fixed
// order.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/samples.hpp"
#include "emu/net/exchange.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/tensor.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {

class Ranks;

/// An output behind the first one, whose loss is added to the first one's.
struct FurtherOutput {
  int value = 0;          ///< of the graph
  std::string objective;  ///< compares it with the element of Targets::further in its place
};

/// What a step works on.
struct StepInput {
  Tensor x;
  Targets targets;
  std::vector<std::int64_t> samples;  ///< ids
  std::int64_t index = 0;             ///< of the step in the run
  double learning_rate = 0;
  double loss_weight = 1;  ///< of the loss whose gradient is taken
  bool exchange = true;    ///< local steps: the workers' weights become one behind this step
  std::vector<FurtherOutput> further = {};  ///< one for each element of targets.further, or none
};

struct StepResult {
  Classified seen;           ///< of all samples that took part, in their order
  double penalty = 0;        ///< sum of what Numerics::penalty() returned; 0 in a step not accepted
  double gradient_norm = 0;  ///< of the unscaled gradients and penalties, before clipping
  float loss_scale = 1;
  double dropped = 0;  ///< share of the samples that took no part
  bool accepted = true;
  std::vector<WireBits> wire;  ///< by parameter; empty for one worker and in a step not accepted
};

/// Trains `graph` by one step. The order of the hooks is begin_step, loss_scale, participation of
/// each worker, exchange; then for each worker in order: for each of its micro-batches forward
/// (product, vector_result, edge, save) and backward (edge, restore, product), then
/// worker_gradients on the float32 mean of their unscaled gradients, and Exchange::add();
/// accept_gradients; if the step is taken Exchange::finish(), penalty for each trained parameter,
/// then for each of them update and optimizer_state; end_step. A step in which nothing takes part
/// is not taken.
///
/// Workers and micro-batches: worker w's micro-batch m is number w * options.micro_batches + m of
/// the runs of samples that the batch is cut into, and has that number as Step::part. The first
/// ones have a sample more where the batch does not divide; in a batch of fewer samples the last
/// ones are empty, and their workers send nothing. Each one's loss is its mean, weighted so that
/// the mean over micro-batches, then over workers, is the gradient of the mean over all samples
/// (the weight is 1 where they are equal). Batch normalisation sees one micro-batch at a time, and
/// running statistics are renewed in order, also where the step is not taken.
///
/// With Ranks, each process computes the workers it owns and gets the results of the others.
///
/// With options.local_steps each worker begins with weights of its own. Once the step is taken each
/// has penalties, clipping, update and optimizer_state of its own, in the order of workers and with
/// its first part as Step::part; then, where the input says so, what their weights lost is
/// exchanged. Penalty and norm of the result are means over the workers. Throws Error where
/// numerics keep state of an update, of which there would be one for all workers.
///
/// With several objectives, each after the first makes such a step of its own on the same samples:
/// a second forward with the updated weights, an optimizer state of its own, the same learning
/// rate. For the numerics and dropout these are steps of different numbers (index times the number
/// of objectives, plus the place), so that nothing drawn or prepared for one serves another. The
/// result is that of the first.
StepResult training_step(Graph& graph, const StepInput&, const TrainOptions&, Optimizer&, Numerics&,
                         Ranks* = nullptr);

}  // namespace numemu::net

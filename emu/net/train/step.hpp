// One training step: forward, loss, backward, update, and every moment of the numerics in a fixed
// order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/samples.hpp"
#include "emu/net/exchange.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/tensor.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {

// Passes of several workers that wait for each other where they need values of all, such as
// synchronised statistics of batch normalisation.

/// Runs one body per worker, each on a thread of its own but only one at a time, from meeting to
/// meeting in the order of workers: the same calls of the numerics in the same order on every
/// machine.
class Lockstep {
 public:
  explicit Lockstep(std::int64_t workers);

  /// Calls body(worker, meeting) for every worker. Bodies that still run must meet equally often
  /// until one of them ends. Rethrows what the first body threw; the others are then abandoned.
  void run(const std::function<void(std::int64_t worker, Meeting& meeting)>& body);

 private:
  struct Abandoned {};
  class Place;

  std::vector<std::vector<double>> gather(std::int64_t worker, std::vector<double> own);
  void wait_for_turn(std::unique_lock<std::mutex>&, std::int64_t worker);
  /// The turn of the next worker that has not ended; behind the last one a round is complete.
  void pass_on(std::int64_t worker);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t turn_ = 0;
  std::vector<bool> ended_;
  std::vector<std::optional<std::vector<double>>> given_;  ///< of the round begun, by worker
  std::vector<std::vector<double>> round_;                 ///< of the one before, in order
  std::exception_ptr failure_;
};

class Ranks;

/// The Euclidean norm of all elements of all tensors: float64 sums of squares over a fixed tree in
/// each tensor, then over the tensors in order.
double global_norm(std::span<const Tensor>);

/// Multiplies every element by float32(limit / norm) where norm > limit (Pascanu et al. 2013); a
/// norm that is NaN changes nothing.
void clip_to_norm(std::span<Tensor>, double norm, double limit);

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

/// Trains `graph` by one step. The order of the moments is begin_step, loss_scale, participation of
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

// Gradient smoothing: the loss of steps with several copies is scaled, so that their gradients have
// the norm of one copy's (Mix & Match, Hoffer et al. 2019).

/// What a run keeps of gradient smoothing, in the state of its numerics, which it passes on.
class SizeSmoothing final : public Forwarding {
 public:
  SizeSmoothing(Numerics& inner, const TrainOptions& options)
      : Forwarding(inner), options_(&options) {}

  /// The weight of the step's loss: per image size a mean of (sum_j |g_j| / copies) / |g|, g_j the
  /// gradient of copy j alone and g that of all, which keeps 0.9 of what it was at each
  /// measurement. A size is measured in its first step and in each whose number is a multiple of
  /// sizes.smoothing: in float32, whatever the recipe is, with the first objective and before
  /// penalties. 1 without smoothing, for one copy, and where a norm is 0 or not finite.
  double weight(const Graph&, const StepInput&, const PlannedStep&);

  void save_state(NamedState&) const override;
  void load_state(const NamedState&) override;

 private:
  const TrainOptions* options_;
  std::map<std::int64_t, double> weights_;  ///< by image size
};

/// |g| of all rows, and the mean over the copies of |g_j|; rows are those of a batch with `copies`
/// neighbouring rows of each sample.
struct CopyNorms {
  double all = 0, one = 0;
};
CopyNorms copy_norms(const Graph&, const StepInput&, std::int64_t copies, const TrainOptions&);

}  // namespace numemu::net

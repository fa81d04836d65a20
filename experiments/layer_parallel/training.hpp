// A network cut into stages whose inputs are variables of their own (layer-parallel training, arXiv
// 2009.01462), trained stage by stage: every update from the local gradients of all stages, or from
// backpropagation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/losses.hpp"
#include "experiments/delayed_weights/pipeline.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::layer_parallel {

struct Stages {
  std::vector<net::Graph> parts;  ///< one after the other; they share the network's parameters
  std::vector<std::string> ends;  ///< the value that each computes
  /// Multiply-adds of a sample, forward and backward.
  std::vector<std::int64_t> costs;
};

/// Stages whose largest cost is the least, cut at values that all later layers alone read, in front
/// of a layer that multiplies. The graph must outlive them. Throws Error where there are fewer such
/// places.
Stages cut_into_stages(net::Graph& graph, std::int64_t count);

/// The variables of a batch: lambda[0] is the network's input, lambda[k] the input of stage k.
struct StageVariables {
  std::vector<net::Tensor> lambda;
  /// kappa[k] of lambda[k]; kappa[0] is empty. All empty: the penalty alone.
  std::vector<net::Tensor> kappa;
  double beta = 1;
};

/// Of the mean over the samples of loss + sum over k of
/// beta / 2 |lambda[k+1] - F_k(lambda[k])|^2 + <kappa[k+1], lambda[k+1] - F_k(lambda[k])>.
struct LocalGradients {
  std::vector<std::vector<net::Tensor>> parameters;  ///< [stage], in the order of its parameters
  std::vector<net::Tensor> lambda;                   ///< of a sample's sum; [0] is empty
  std::vector<net::Tensor> outputs;                  ///< F_k(lambda[k])
  net::Classified seen;
};
LocalGradients local_gradients(const Stages&, const StageVariables&,
                               const std::vector<std::int32_t>& classes, net::Numerics&,
                               const net::Step&, std::uint64_t seed);

/// lambda of a forward pass in training, whose running statistics go into the network; no kappa.
StageVariables feasible(Stages&, const net::Tensor& x, double beta, net::Numerics&,
                        const net::Step&, std::uint64_t seed);

/// lambda -= rate / beta times its gradient, all stages at once; where there is a kappa it then
/// grows by beta (lambda - F), F as the gradients have it.
void step_variables(StageVariables&, const LocalGradients&, double rate);

struct Method {
  std::string name = {};
  std::int64_t rounds = 0;        ///< steps of the variables before an update; 0: backpropagation
  bool augmented = false;         ///< multipliers follow each of them
  std::int64_t serial_every = 0;  ///< every so many updates one is backpropagation's; 0: none
  std::string format = "";        ///< of variables, with the scale of each tensor; "": float32
  bool filtered = false;          ///< means of 2 x 2 pixels are kept of images of even size
};

/// What is kept of a variable under a method.
void store(const Method&, net::Tensor& lambda);
/// Bytes of all variables of a sample, without scales.
double stored_bytes(const Method&, const StageVariables&);

struct Trained {
  double top1 = 0;                            ///< per cent
  std::optional<std::int64_t> diverged = {};  ///< the first update, from 1, of no finite loss
  double bytes = 0;                           ///< of the variables of a sample

  double score() const;  ///< top1, NaN where the training diverged
  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1);
    visit("diverged", self.diverged);
    visit("bytes", self.bytes);
  }
};

/// By the options and the recipe of the trial; every method has the same batches and updates.
Trained train_stages(const TrainTrial&, const net::Dataset&, const Method&, std::int64_t stages,
                     double beta);

using delayed_weights::Ticks;

/// Every stage computes forward and backward on its own variables, `rounds` times in a step, and
/// sends what it found to both neighbours, who need it in their next round; the last of each
/// `serial_every` steps passes through the stages forward and backward, 0: none does.
struct Rounds {
  std::vector<delayed_weights::Stage> stages;  ///< times of passes, and of links
  std::int64_t rounds = 1;
  std::int64_t serial_every = 0;

  Ticks serial() const;  ///< a step on one device, without links
  /// Of a round, where stages wait for neighbours alone: the largest mean of a cycle of waits,
  /// max(c_k, (c_k + c_k+1) / 2 + l_k), c_k a stage's passes and l_k its link to the next.
  double period() const;
  /// Time of a step, the mean over `serial_every` of them.
  double step_time() const;
  double speed_up() const { return static_cast<double>(serial()) / step_time(); }
};

/// When the last stage is through with so many steps, each pass as soon as its inputs are there.
Ticks simulated_time(const Rounds&, std::int64_t steps);

}  // namespace numemu::experiments::layer_parallel

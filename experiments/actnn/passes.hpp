// One batch through a network and back: what float32 keeps, closed forms of the noise that
// compressed contexts add to gradients, and passes that compress chosen contexts.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::actnn {

/// A network with the batch that its gradients come from.
struct Sample {
  net::Graph graph;
  net::Tensor x;
  std::vector<std::int32_t> labels;
};

/// The network after an epoch on the first `train` samples in float32, and a batch of others, which
/// repeat where the set has fewer.
Sample sample_of(const std::string& net, const net::Dataset&, std::int64_t train,
                 std::int64_t batch, std::uint64_t seed);
/// Everything that sample_of() depends on, for points.
Json sample_point(const std::string& net, const net::Dataset&, std::int64_t train,
                  std::int64_t batch, std::uint64_t seed);

/// A layer whose weight gradient reads a context.
struct Layer {
  std::string name, context;  ///< node, and the value it reads
  std::size_t parameter = 0;  ///< of its weight, in Graph::parameters()
};
std::vector<Layer> layers_of(const net::Graph&);
/// Values that backward reads linearly, the network's input first.
std::vector<std::string> linear_contexts(const net::Graph&);

/// What float32 computes.
struct Exact {
  std::vector<net::Tensor> gradients;           ///< of parameters
  std::map<std::string, net::Tensor> contexts;  ///< by value, those kept for linear use
  std::map<std::string, net::Tensor> outputs;   ///< by node, the gradient of its output
  /// By layer and element of its context: the sum of g^2 over all products that read it, so that an
  /// independent error of variance v adds v times this to the squared error of the weight gradient.
  std::map<std::string, std::vector<double>> reach;
};
Exact exact_pass(const Sample&);

/// Gradients of the mean loss of the batch.
std::vector<net::Tensor> pass(const Sample&, net::Numerics&);

/// Compresses the linear contexts of `draws` as the inner numerics do in the step of that number,
/// and keeps all others as they are.
class Drawn final : public net::Forwarding {
 public:
  using Forwarding::Forwarding;
  std::map<std::string, std::int64_t, std::less<>> draws;

  net::Saved save(const net::Step&, const net::Kept&, const net::SharedTensor&) override;
  net::SharedTensor restore(const net::Step&, const net::Kept&, net::Saved) override;
};

/// Of every element of a context: s^2 f (1 - f) with the step s = range / (2^b - 1), rounded upward
/// to bfloat16, f its distance from the code below in steps. `bits`: of each sample. `bound`: the
/// sum of range^2 / (4 (2^b - 1)^2) over the elements, weighted.
std::vector<double> context_variance(const net::Tensor&, std::int64_t group,
                                     const std::vector<int>& bits);
std::vector<double> context_bound(const net::Tensor&, std::int64_t group,
                                  const std::vector<int>& bits);

/// The bits of every sample of every linear context: the same for all, or with `bits` 0 greedy
/// ones, `average` on average, after a first step on the same batch with these gradients of
/// outputs.
std::map<std::string, std::vector<int>> bits_of(const Sample&, const Exact&, int bits,
                                                double average, std::int64_t group);

double squared_distance(const net::Tensor&, const net::Tensor&);

/// Weight gradients of each layer of `nets` with compressed contexts: variance, mean and the
/// published bound, with 1 to 8 bits and with greedy ones (settings nets, bits, group, draws,
/// gradient_train, gradient_batch).
void add_variance(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// What each context of `net` adds to the variance of the first layer's gradient, alone and behind
/// others (settings net, passes).
void add_layers(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Bits by the greedy algorithm against the optimum (setting instances).
void add_allocation(const ExperimentRun&, Conclusion&);

/// Bytes kept for a sample, the largest batch in a budget, and networks trained at levels L0 to L3
/// and with fixed bits (settings net, epochs, batch, budget_batch, train_samples, eval_samples,
/// seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::actnn

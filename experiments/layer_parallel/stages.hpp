// A network cut into stages whose inputs are variables of their own, and the gradients that each
// stage computes without the others (layer-parallel training, arXiv 2009.01462).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/ops/losses.hpp"

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

}  // namespace numemu::experiments::layer_parallel

// A chain of scalar stages tanh(w x): gradients with converged stage variables beside those of
// backpropagation, in float64.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::experiments::layer_parallel {

struct Chain {
  std::vector<double> weights;   ///< of the stages, each of magnitude below 2
  double input = 1, target = 0;  ///< the loss is (output - target)^2 / 2

  /// Normal numbers of mean 1 and deviation 1/4; input and target normal.
  static Chain drawn(std::int64_t stages, std::uint64_t seed, std::int64_t number);

  /// dloss/dweights of backpropagation.
  std::vector<double> gradients() const;
  /// Along the trajectory x(k+1) = tanh(w x(k)) - a(k+1) / beta, a the derivatives of the loss
  /// along the exact one: what the penalty method's gradients are to first order in 1 / beta,
  /// because its stationary variables satisfy this equation with their own a.
  std::vector<double> shifted_gradients(double beta) const;
  /// Of the penalty method, with the stage variables that minimise it, by descent.
  std::vector<double> penalty_gradients(double beta) const;
};

}  // namespace numemu::experiments::layer_parallel

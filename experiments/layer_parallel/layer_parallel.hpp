// Gradients of stages whose variables are their own, each question with its findings and tables: of
// a chain of scalar stages tanh(w x) in float64, beside those of backpropagation, and of a network.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

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

/// Chains of scalar stages with converged variables (settings chain_stages, chain_betas, chains).
void add_chains(const ExperimentRun&, Conclusion&);
/// Gradients of one batch of a network at its first weights: at multipliers of backpropagation,
/// after each round of steps of the variables, and with variables in a format (settings net,
/// stages, betas, formats, batch).
void add_gradients(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::layer_parallel

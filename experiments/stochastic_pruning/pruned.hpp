// Measured effects of pruning below a threshold, beside their expectations from the elements.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::stochastic_pruning {

/// A number and its standard error.
struct Estimate {
  double value = 0, error = 0;
};

/// Sums over one tensor. "expected": given the elements, over the draws of the pruning alone.
struct PrunedTensor {
  std::int64_t n = 0, below = 0, zeros = 0;
  double squares = 0, pruned_squares = 0, products = 0, error = 0;
  Estimate expected_zeros, expected_error;  ///< counts and sums of squares, with deviations

  double zero_share() const { return static_cast<double>(zeros) / static_cast<double>(n); }
  double relative_error() const { return squares > 0 ? error / squares : 0; }
  double cosine() const {
    return pruned_squares > 0 ? products / std::sqrt(squares * pruned_squares) : 1;
  }
};

PrunedTensor prune_and_measure(Pruning pruning, const float* x, std::int64_t n, double threshold,
                               const RandomSource& random);

/// Distance of zero shares on real gradients that a law is trusted with (specs/quantization.md).
inline constexpr double kLawHolds = 0.02;

}  // namespace numemu::experiments::stochastic_pruning

// Distributes a total share of zeros over the layers of a network: one threshold per layer, from
// their laws alone.
#pragma once
#include <vector>

#include "experiments/stochastic_pruning/pruning_effect.hpp"

namespace numemu::experiments::stochastic_pruning {

/// A layer's gradient: its law, its elements, and what a unit of its error costs.
struct LayerMagnitudes {
  MagnitudeLaw law;
  double elements = 1;
  double weight = 1;  ///< 1: errors add as they are; 1 / second_moment(law): relative to each layer
};

/// Over all layers at these thresholds: share of elements that are zero, and the weighted sum of
/// squared errors over the weighted sum of squares.
struct TotalEffect {
  double zeros = 0, error = 0;
};
TotalEffect total_effect(Pruning pruning, const std::vector<LayerMagnitudes>& layers,
                         const std::vector<double>& thresholds);

/// Every layer at the same cosine, in (0, 1).
std::vector<double> thresholds_at_cosine(Pruning pruning,
                                         const std::vector<LayerMagnitudes>& layers, double cosine);
/// Every layer at the same cosine, that which leaves the share `zeros` of all elements zero.
std::vector<double> thresholds_of_equal_cosine(Pruning pruning,
                                               const std::vector<LayerMagnitudes>& layers,
                                               double zeros);
/// Every layer at the same share of zeros (those with more structural zeros keep them).
std::vector<double> thresholds_of_equal_zeros(Pruning pruning,
                                              const std::vector<LayerMagnitudes>& layers,
                                              double zeros);
/// The least weighted sum of squared errors with the share `zeros` of all elements zero. Moving a
/// threshold costs d error / d zeros = tau^2 under any law, for stochastic pruning (m / (m /
/// tau^2), m = E[|g|; |g| < tau]) and for hard pruning (tau^2 f / f) alike; so the optimum has
/// weight * tau^2 the same everywhere: with equal weights one threshold for the whole network.
std::vector<double> thresholds_of_least_error(Pruning pruning,
                                              const std::vector<LayerMagnitudes>& layers,
                                              double zeros);

/// Heterogeneous sparsity (Chmiel et al., ICLR 2021; specs/quantization.md): a layer with a floor
/// (in (0, 1); 0: none) takes the smaller threshold of its cosine there and of the share `zeros`;
/// the others make up for what those leave, to at most `most` of their elements.
std::vector<double> thresholds_with_floors(Pruning pruning,
                                           const std::vector<LayerMagnitudes>& layers, double zeros,
                                           const std::vector<double>& cosine_floors,
                                           double most = 0.9);

}  // namespace numemu::experiments::stochastic_pruning

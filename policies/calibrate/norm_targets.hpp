// What batch normalisation tells of the values behind it, on the network with it folded: the
// targets of data made without data (Haroush et al., "The Knowledge Within", CVPR 2020).
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// Mean and variance of each channel that training data gave a value.
struct NormTarget {
  std::string value;  ///< a node of the folded network
  std::vector<double> mean, variance;
};

/// Folds every batch normalisation into the layer before it (emu/net/fold_batch_norm.hpp) and
/// returns the targets of these layers' outputs: with gain g, shift b and running variance v the
/// mean b and the variance g^2 v / (v + epsilon). Throws Error for a network without any, and
/// naming one that nothing takes in.
std::vector<NormTarget> fold_to_targets(net::Graph&);

/// Sum over channels of KL(N(mu, s2) || N(m, v)), mu and s2 the target's, m and v those of x [n,
/// .., channels] over all leading axes; channels whose target or own variance is 0 count nothing.
/// `gradient`, unless null, becomes its derivative along x: (1 / n) [(m - mu) / v + (1 / v - (s2 +
/// (mu - m)^2) / v^2) (x - m)].
double norm_divergence(const NormTarget&, const net::Tensor& x, net::Tensor* gradient);

/// Mean over all targets' channels of that divergence for a batch.
double norm_divergence(const net::Graph& folded, const std::vector<NormTarget>&,
                       const net::Tensor& batch);

}  // namespace numemu::policies

// AdaRound: for each weight the number below or the number above, chosen so that the layer's
// outputs change least (Nagel et al., ICML 2020).
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

struct AdaRoundOptions {
  std::int64_t iterations = 2000;
  double rate = 0.01;      ///< of Adam
  double regulariser = 4;  ///< lambda
  double first_beta = 20, last_beta = 2;
  double warm_up = 0.2;  ///< share of the iterations without regulariser
};

/// The rectified sigmoid h(v) = clip(1.2 sigmoid(v) - 0.1, 0, 1), its derivative, and the v of a
/// given h in [0, 1].
double rectified_sigmoid(double v);
double rectified_sigmoid_slope(double v);
double rectified_sigmoid_inverse(double h);
/// The derivative along h of 1 - |2 h - 1|^beta, which is 0 at h = 0 and 1.
double rounding_penalty_slope(double h, double beta);

/// The rounded weight: every element the number below or above it under the scales that the role's
/// rule chooses for `weight` [out, ..., in] or ranges fix. Adam on V minimises
///   tr(D H D^T) / samples + lambda sum (1 - |2 h(V) - 1|^beta), D = below + h (above - below) - W,
/// beta falling from the first to the last value along half a cosine. H as in gptq(); `samples` are
/// the rows behind it. The published method takes batches of inputs and compares after the
/// activation function; here H holds all inputs, and the comparison is before it. A row of the
/// result whose error is not below that of rounding to nearest is rounded to nearest.
net::Tensor adaround(const RolePolicy&, const net::Tensor& weight,
                     const std::vector<std::vector<double>>& hessians, std::int64_t samples,
                     const AdaRoundOptions& = {});

}  // namespace numemu::policies

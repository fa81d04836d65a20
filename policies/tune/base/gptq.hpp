// GPTQ: weights rounded column after column, each one's error made up for by the columns that
// follow (Frantar et al., ICLR 2023).
#pragma once
#include <vector>

#include "emu/net/tensor.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

struct GptqOptions {
  double damping = 0.01;  ///< added to the diagonal of the Hessian, in units of its mean
  /// Columns by falling diagonal of the Hessian (the published act_order), not from the first on.
  bool greedy = false;
  /// Groups of columns choose their scale when the first of their columns is rounded, from the
  /// weights as they are then; else all scales are those of the weight as it was. A greedy order
  /// and a tensor scale have the latter.
  bool current_groups = true;
};

/// The rounded weight. `weight` [out, ..., in] is read as rows of depth K; `hessians` are X^T X of
/// its inputs, K x K row-major, one for each of equal shares of the rows (groups of a convolution).
/// Rounding w_i to q changes the columns that follow by the change that minimises the layer's
/// squared error, -H_FF^-1 H_Fi (q - w_i) over those columns F, with the damped Hessian. Of a block
/// the weights that decide its scale are rounded as they were then, so that inference finds the
/// scale again (with a zero point or minimum: one near it). Throws Error where the damping is too
/// small for inputs that depend on each other.
net::Tensor gptq(const RolePolicy&, const net::Tensor& weight,
                 const std::vector<std::vector<double>>& hessians, const GptqOptions& = {});

/// tr(D H D^T) summed over the shares, D = changed - weight: what the change adds to the squared
/// error of the layer's outputs, sum over samples and outputs, exactly.
double output_error(const net::Tensor& weight, const net::Tensor& changed,
                    const std::vector<std::vector<double>>& hessians);
/// output_error() of each row.
std::vector<double> output_errors(const net::Tensor& weight, const net::Tensor& changed,
                                  const std::vector<std::vector<double>>& hessians);

}  // namespace numemu::policies

// Closed forms of the unbiased estimators: probabilities, variances and covariances, without
// cancellation.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::policies {

/// Which unbiased estimator. Groups of M <= 16 finite elements throughout; a_i = |x_i|.
enum class Estimator : std::uint8_t {
  exact,   ///< minimum variance: water-filling; for 1:2 the pairs
  approx,  ///< 2:4 only, two draws in turn
  random,  ///< a uniform mask, times M / N
};

/// P(element i is kept), i in [0, M): 0 for zeros but under `random`.
std::vector<double> inclusion_probabilities(Estimator, const unit::Sparsity&, const float* x);

/// Sum of the variances of a group: sum of a_i^2 (1 - p_i) / p_i, every term of a sum positive. For
/// pairs 2 a1 a2; for 2:4 S^2 / 2 - sum a^2, or T^2 - sum of the three smaller a^2.
double estimator_variance(Estimator, const unit::Sparsity&, const float* x);

/// P(i and j are both kept), symmetric, row-major M x M, p_i on the diagonal: exact (systematic
/// sampling in index order), approx (two draws) and random.
std::vector<double> joint_probabilities(Estimator, const unit::Sparsity&, const float* x);

/// A choice of 2:4 pair probabilities with the exact estimator's marginals and no draw of the two
/// smallest: of (12, 13, 14, 23, 24, 34), magnitudes ascending and not all zero. Sparsity
/// specification, section 1b.
std::array<double, 6> pair_probabilities(const std::array<double, 4>& ascending);

/// Cov(y_i, y_j) of a group, row-major M x M: x_i x_j (p_ij / (p_i p_j) - 1), the variances on the
/// diagonal.
std::vector<double> estimator_covariance(Estimator, const unit::Sparsity&, const float* x);

/// Variance of sum over n of weight[n] y[n], `groups` groups drawn independently: an element of dW
/// where the weights are a column of X and x is one of the gradient (specification, section 1c).
double product_variance(Estimator, const unit::Sparsity&, const float* x, const float* weight,
                        std::int64_t groups);

}  // namespace numemu::policies

// Closed forms of the variances of the unbiased estimators, without cancellation.
#pragma once
#include <cstdint>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::policies {

/// Which unbiased estimator. Groups of M <= 16 finite elements throughout; a_i = |x_i|.
enum class Estimator : std::uint8_t {
  exact,   ///< minimum variance: water-filling; for 1:2 the pairs
  approx,  ///< 2:4 only, two draws in turn
  random,  ///< a uniform mask, times M / N
};

/// Sum of the variances of a group: sum of a_i^2 (1 - p_i) / p_i, every term of a sum positive. For
/// pairs 2 a1 a2; for 2:4 S^2 / 2 - sum a^2, or T^2 - sum of the three smaller a^2.
double estimator_variance(Estimator, const unit::Sparsity&, const float* x);

}  // namespace numemu::policies

#include "experiments/stochastic_pruning/pruned.hpp"

#include <vector>

#include "policies/mask/rules/stochastic.hpp"

namespace numemu::experiments::stochastic_pruning {
PrunedTensor prune_and_measure(Pruning pruning, const float* x, std::int64_t n, double threshold,
                               const RandomSource& random) {
  const bool hard = pruning == Pruning::hard;
  std::vector<float> y(static_cast<std::size_t>(n));
  const policies::MaskRun run{x, y.data(), nullptr, n, 0, threshold};
  if (hard)
    policies::prune_hard(run);
  else
    policies::prune_stochastic(random, run);
  const double tau = policies::threshold_value(threshold);
  PrunedTensor t;
  t.n = n;
  double zero_variance = 0, error_variance = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = x[i], p = y[i], size = std::fabs(g), e = p - g;
    t.zeros += p == 0;
    t.squares += g * g;
    t.pruned_squares += p * p;
    t.products += g * p;
    t.error += e * e;
    if (size == 0) {
      t.expected_zeros.value += 1;
    } else if (size < tau) {
      const double kept = hard ? 0 : size / tau, spread = kept * (1 - kept);
      ++t.below;
      t.expected_zeros.value += 1 - kept;
      t.expected_error.value += hard ? g * g : size * (tau - size);
      zero_variance += spread;
      error_variance += spread * tau * tau * (tau - 2 * size) * (tau - 2 * size);
    }
  }
  t.expected_zeros.error = std::sqrt(zero_variance);
  t.expected_error.error = std::sqrt(error_variance);
  return t;
}

}  // namespace numemu::experiments::stochastic_pruning

// Noise-to-signal ratios of N:M pruning under the named laws, by closed forms and quadrature.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "emu/unit/sparse/pattern.hpp"
#include "formats/analysis/distribution.hpp"

namespace numemu::experiments::mvue {

enum class PruneMethod : std::uint8_t { exact, approx, random, greedy };
/// "mvue", "mvue-approx", "random-unbiased", "greedy": the names of the mask rules.
std::string_view to_string(PruneMethod);

/// E sum (y - x)^2 / E sum x^2 over groups of independent elements under a law: normal, laplace or
/// lognormal:S (Error for others).
///
/// exact 1:2: (E a)^2 / E a^2. exact 2:4: of a group S^2 / 2 - sum a^2, plus (a - T)^2 / 2 where
/// one a exceeds the sum T of the others; three integrals. approx: four integrals. random: M / N
/// - 1. greedy, any N:M: one integral over an element and how likely N others beat it. Relative
/// error about 1e-6. Empty for the other patterns of exact. Sparsity specification, section 1c.
std::optional<double> predicted_nsr(PruneMethod, const unit::Sparsity&, const Distribution&);

/// E of the sum of what greedy keeps over E of the sum of all magnitudes: what remains of an
/// average in which every element counts with its sign.
double greedy_shrink(const unit::Sparsity&, const Distribution&);

/// E |x| and E x^2.
struct MagnitudeMoments {
  double first, second;
};
MagnitudeMoments magnitude_moments(const Distribution&);

}  // namespace numemu::experiments::mvue

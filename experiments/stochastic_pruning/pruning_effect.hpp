// What pruning below a threshold does to a gradient, in closed form under the laws of its
// magnitudes, and the thresholds for a cosine or a share of zeros.
#pragma once
#include <cstdint>

#include "formats/analysis/magnitude_law.hpp"

namespace numemu::experiments::stochastic_pruning {

// IEEE operations in a fixed order, as in magnitude_law.hpp: the same bits on every machine.

/// The law with its cut at the largest 1/300 of the non-zero elements: a lognormal law puts most of
/// its second moment where a tensor has no element, and its cosines come out too high (Chmiel et
/// al.'s code; specs/quantization.md). Any other law as it is.
MagnitudeLaw with_cut(const MagnitudeLaw& law, const float* x, std::int64_t n);

/// p such that of *all* elements a share is zero or below the threshold: (share - zeros) / (1 -
/// zeros); 0 where the structural zeros alone are more.
double share_of_nonzeros(const MagnitudeLaw& law, double share);

enum class Pruning : std::uint8_t { stochastic, hard };

/// What pruning at a threshold does to a tensor of that law.
struct PruningEffect {
  double below = 0;    ///< share of the non-zero elements below the threshold
  double zeros = 0;    ///< share of all elements that are zero afterwards, structural ones too
  double density = 1;  ///< 1 - zeros
  double error = 0;    ///< E[(y - g)^2] / E[g^2]: stochastic, the variance added
  double cosine = 1;   ///< of g and y in expectation: 1 / sqrt(1 + error), hard sqrt(1 - error)
};

PruningEffect effect(Pruning pruning, const MagnitudeLaw& law, double threshold);
/// E[g^2] over all elements.
double second_moment(const MagnitudeLaw& law);

/// The largest threshold whose effect keeps at least this cosine (in (0, 1)).
double threshold_for_cosine(Pruning pruning, const MagnitudeLaw& law, double cosine);
/// The threshold that leaves this share of all elements zero (in (0, 1)); 0 where the structural
/// zeros are as many already.
double threshold_for_zeros(Pruning pruning, const MagnitudeLaw& law, double zeros);

}  // namespace numemu::experiments::stochastic_pruning

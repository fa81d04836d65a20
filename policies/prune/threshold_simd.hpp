// Stochastic pruning below a threshold in vectors.
#pragma once
#include "formats/random.hpp"
#include "policies/mask_rule.hpp"

namespace numemu::policies::simd {

/// From here on the product of a random word and the threshold is a normal float32.
inline constexpr float kSmallestThreshold = 0x1p-90F;

/// prune_stochastic_reference in every bit, for a finite tau >= kSmallestThreshold.
void prune_stochastic(const RandomSource& random, const MaskRun& run, float tau);

}  // namespace numemu::policies::simd

// Absorb mean: what a group loses is shared by what it keeps, so that its sum stays (AdaPrune,
// Hubara et al., NeurIPS 2021).
#pragma once
#include <cstdint>

namespace numemu::policies {

/// `groups` groups of `size` neighbours one after the other; the rows of row-major tiles are
/// groups, too. keep: 1 where kept, else 0; any mask. y[i] = x[i] + (sum of pruned) / (number kept)
/// where kept, +0 elsewhere; y may be x.
///
/// The sum ascends in float64, share and result are computed there, and one rounding to float32
/// follows. Where the sum is zero, kept elements keep their bits; where it or one of them is not
/// finite, what follows from it is not either, a NaN always 0x7fc00000. A group that keeps nothing
/// becomes zeros: its sum is lost.
void absorb_pruned(std::int64_t groups, std::int64_t size, const float* x, const std::uint8_t* keep,
                   float* y);

}  // namespace numemu::policies

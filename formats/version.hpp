// The version of the numerics: changes whenever any result could change a bit, so that old rows are
// never mixed with new.
#pragma once

namespace numemu {

/// 2: floors of NVIDIA's alignment, -0 of sums that cancel under rdn, blocks that run across the
/// groups of a convolution, scales of float16 that divide in float16. 3: draws and scales of
/// portable functions, an ulp of float64 beside libm's.
inline constexpr const char* kNumericsVersion = "3";

}  // namespace numemu

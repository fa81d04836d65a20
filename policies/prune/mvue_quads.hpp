// Exact minimum-variance unbiased 2:4 by vectors.
#pragma once
#include <cstdint>

namespace numemu::policies {

/// Groups of 4 under one word each, as mvue_group() prunes them to 2:4; returns how many were done
/// from the first on (whole vectors), the rest is the caller's. y may be x.
std::int64_t mvue_quads(const float* x, const std::uint32_t* words, std::int64_t groups, float* y);

}  // namespace numemu::policies

// Places that are spread over a range, however many are taken.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace numemu {

/// The golden ratio less 1. Of its multiples modulo 1 each lies in the largest gap that those
/// before it left in [0, 1), and no regular layout (the first pixel of every image) meets them.
inline constexpr double kGolden = 0.61803398874989485;

/// Number i of some places that are spread over [0, n), other ones in every draw.
inline std::int64_t spread(std::int64_t i, std::int64_t draw, std::int64_t n) {
  constexpr double kOther = 0.41421356237309505;  // the root of 2 less 1
  const double at = static_cast<double>(i + 1) * kGolden + static_cast<double>(draw) * kOther;
  return std::min(n - 1, static_cast<std::int64_t>((at - std::floor(at)) * static_cast<double>(n)));
}

}  // namespace numemu

// The code of a real scale that leaves the least squared error, found without trying every code.
#pragma once
#include <cstddef>
#include <cstdint>

#include "formats/scaling/element_grid.hpp"

namespace numemu {

// Sorts float32 magnitudes by the digits of their bits.

/// x[0..n) ascending, in x or in `other`, an array as long: the one that is returned. No element is
/// negative or NaN: the bits of all others are in their order.
float* sort_magnitudes(float* x, float* other, std::size_t n);

/// What is searched: the codes of a scale format, whose factors ascend.
struct ScaleCodes {
  std::int64_t lowest = 1, start = 1, highest = 1;
  double (*factor)(const void* format, std::int64_t code) = nullptr;
  const void* format = nullptr;

  double at(std::int64_t code) const { return factor(format, code); }
};

/// Within this factor of the least squared error the search may stop. So it may where the error is
/// below 2^-44 of the sum of squares (132 dB): a scale of 24 bits is no finer.
inline constexpr double kSearchTolerance = 1e-6;

/// The code in [lowest, highest] under which x[0..n), all finite, have the least squared error, to
/// kSearchTolerance; `start`, the first that is tried, where nothing is better than it.
///
/// As the scale grows, every element passes from piece to piece towards zero. Between the scales at
/// which one of them does, the error is a quadratic; at these scales, one value, which may be less
/// under directed rounding. Over an interval of scales the elements that stay in their piece have a
/// quadratic in sum, whose least value is known; one that passes is at least as far off as its two
/// numbers stay from it over the interval. The sum is a bound below; intervals whose bound exceeds
/// the least error met are dropped, the most promising one is halved, and where few elements pass
/// their quadratics are looked at one by one. Elements are sorted once and summed beforehand, so
/// that a bound takes a step per piece, not per element. Grids of more than some hundred pieces,
/// and rodd, may need more intervals than the search has time for: then the best code met is given.
/// Codes under which an element becomes infinite in float32 are passed over; `start` where all are.
std::int64_t least_error_code(const ElementGrids&, const float* x, std::int64_t n,
                              const ScaleCodes&);

}  // namespace numemu

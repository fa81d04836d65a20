// What a random rotation of blocks does to a tensor's moments and outliers, before it is done.
#pragma once
#include <cstdint>

namespace numemu::policies {

/// Moments about zero: rotations with random signs leave no mean.
struct RawMoments {
  double square = 0, fourth = 0;  ///< mean of x^2, x^4
  double largest = 0;             ///< |x|

  /// E x^4 / (E x^2)^2; 0 of zeros.
  double kurtosis() const { return square > 0 ? fourth / (square * square) : 0; }
  /// The largest magnitude in units of the root mean square.
  double peak() const;
};

/// Of n elements.
RawMoments raw_moments(const float* x, std::int64_t n);

/// raw_moments() after every block of `block` neighbours, a power of two that divides n, was
/// multiplied by an orthonormal Hadamard matrix with random signs, as an expectation over the
/// signs. With the sums S2, S4 of x^2, x^4 over a block of size b, an element of it has
///   E y^2 = S2 / b,  E y^4 = (3 S2^2 - 2 S4) / b^2
/// exactly: only products of signs whose powers are even remain. For independent elements with
/// kurtosis k that gives 3 + (k - 3) / b. `largest` is the bound max |y| <= |x|_1 / sqrt b.
RawMoments rotated_moments(const float* x, std::int64_t n, std::int64_t block);

}  // namespace numemu::policies

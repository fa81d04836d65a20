// Channels that pass from one linear layer to another through linear maps alone, so that a rotation
// of them can be put into the weights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "formats/random.hpp"

namespace numemu::policies {

/// The values of attention: the linear layer `producer` gives them, the probabilities of each head
/// mix rows of them, the linear layer `consumer` reads the result. Channels of a head lie together.
struct RotationLink {
  std::size_t producer = 0, consumer = 0;  ///< nodes
  std::int64_t channels = 0, heads = 1;

  /// Channels that are rotated together: the largest power of two that divides those of a head, at
  /// most `most`.
  std::int64_t block(std::int64_t most) const;
};

/// Every such link with blocks of at least two channels.
std::vector<RotationLink> rotation_links(const net::Graph&);

/// R = S H / sqrt(block), S random signs and H the Hadamard matrix, for every block of channels:
/// the producer's weight and bias become R^T W and R^T b, the consumer's W R. As R R^T = I the
/// network computes the same, within the rounding of its weights: in float64, rounded once.
void rotate_link(net::Graph&, const RotationLink&, std::int64_t block, const RandomSource& signs);

// What a random rotation of blocks does to a tensor's moments and outliers, before it is done.

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

/// The share of the rotated elements above `threshold` in magnitude, each taken as normal with the
/// variance S2 / b of its block: exact in the limit of large blocks.
double rotated_share_above(const float* x, std::int64_t n, std::int64_t block, double threshold);

}  // namespace numemu::policies

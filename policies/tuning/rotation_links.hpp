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

}  // namespace numemu::policies

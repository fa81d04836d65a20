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
/// mix rows of them, the linear layer `consumer` reads the result. Between them lie views, which
/// may repeat the values of a group of heads.
struct RotationLink {
  std::size_t producer = 0, consumer = 0;  ///< nodes
  std::vector<std::size_t> biases = {};    ///< constants added to the producer's channels: nodes
  std::int64_t channels = 0;               ///< of the producer
  /// What column j of the consumer reads: a channel of the producer, mixed by a head.
  std::vector<std::int64_t> from = {}, head_of = {};

  /// Channels that are rotated together: the largest power of two, at most `most`, whose blocks of
  /// columns are blocks of channels of one head.
  std::int64_t block(std::int64_t most) const;
};

struct RotationLinks {
  std::vector<RotationLink> links;  ///< with blocks of at least two channels
  /// "NAME: ...", the products of probabilities and values without a link, and why.
  std::vector<std::string> left_out;
};
RotationLinks rotation_links(const net::Graph&);

/// R = S H / sqrt(block), S random signs and H the Hadamard matrix, for every block of channels
/// that the consumer reads: the producer's weight and bias become R^T W and R^T b, the consumer's W
/// R. As R R^T = I the network computes the same, within the rounding of its weights: in float64,
/// rounded once.
void rotate_link(net::Graph&, const RotationLink&, std::int64_t block, const RandomSource& signs);

}  // namespace numemu::policies

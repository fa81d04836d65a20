// What the float32 graph computes on the calibration images: the only values that scales and
// predictions may read.
#pragma once
#include <map>
#include <string>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// Per multiplying layer, on a fixed batch: the activations it reads and the outputs it gives
/// (after bias), in float32.
struct FloatReference {
  net::Tensor images;  ///< the batch, [n, height, width, channels]
  std::map<std::string, net::Tensor, std::less<>> inputs;
  std::map<std::string, net::Tensor, std::less<>> outputs;
  net::Tensor logits;
};

FloatReference float_reference(const net::Graph&, net::Tensor images);

/// The first `samples` entries along axis 0.
net::Tensor first_samples(const net::Tensor&, std::int64_t samples);

}  // namespace numemu::policies

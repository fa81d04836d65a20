// The results of the float32 graph on the calibration samples: the only values that scales and
// predictions may read.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// Tensors by layer.
using LayerTensors = std::map<std::string, net::Tensor, std::less<>>;

/// Per multiplying layer, on a fixed batch, in float32. A layer that multiplies several times in a
/// forward pass (recurrence) has all its tensors side by side: [batch, times, ...]. One
/// that does not multiply (the recurrent product of a single step) has tensors [batch, 0].
struct FloatReference {
  std::vector<net::Tensor> batch;  ///< one per input of the graph, [samples, ...]
  LayerTensors inputs;             ///< the activations it reads as left operand
  LayerTensors
      seconds;  ///< the right operand, of layers where that is an activation too (attention)
  /// What its operator gives (after bias); of a product that is a part of its operator, what the
  /// product gives.
  LayerTensors outputs;
  net::Tensor logits;

  std::int64_t samples() const { return batch.empty() ? 0 : batch.front().dim(0); }
};

FloatReference float_reference(const net::Graph&, std::vector<net::Tensor> batch);
/// Of a packed batch where the network has several inputs.
FloatReference float_reference(const net::Graph&, net::Tensor images);

/// Entries [first, first + count) along axis 0.
net::Tensor samples_of(const net::Tensor&, std::int64_t first, std::int64_t count);
/// The first `samples` entries along axis 0.
net::Tensor first_samples(const net::Tensor&, std::int64_t samples);

// A float32 pass heard layer by layer, so that nothing of it need be kept.

/// What hears of a float32 pass the tensors that FloatReference holds (reference.hpp), each once,
/// as soon as it is complete; they live as long as the call. A function that is null hears nothing.
struct ReferenceListener {
  std::function<void(std::string_view layer, const net::Tensor& left, const net::Tensor* right)>
      operands;  ///< right: null where it is a weight
  std::function<void(std::string_view layer, const net::Tensor& output)> output;
};

/// Runs the float32 graph on a batch for a listener; returns the logits.
net::Tensor listen(const net::Graph&, const std::vector<net::Tensor>& batch,
                   const ReferenceListener&);

}  // namespace numemu::policies

// A float32 pass heard layer by layer, so that nothing of it need be kept.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

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

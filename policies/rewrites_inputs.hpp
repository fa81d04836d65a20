// What policies are beside Policy that rewrite the inputs of layers.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/net/tensor.hpp"

namespace numemu::policies {

/// Calibration below such a policy sees other numbers than the float32 network's, so that recipes
/// with and without it share nothing.
class RewritesInputs {
 public:
  virtual ~RewritesInputs() = default;
  /// Rewrites a float32 input of a layer (its left operand), samples from number `first_sample` on,
  /// as `product` does in inference: policies below calibrate on that.
  virtual void read_input(std::string_view layer, std::int64_t first_sample,
                          net::Tensor& x) const = 0;
};

}  // namespace numemu::policies

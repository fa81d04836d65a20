// A dense float32 array with a shape; activations are NHWC, convolution weights OHWI.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/elements.hpp"

namespace numemu::net {

using Shape = std::vector<std::int64_t>;
using Shapes = std::span<const Shape>;

/// Number of elements of a shape (1 for the scalar shape {}).
std::int64_t element_count(const Shape&);
/// "[128, 28, 28, 1]"
std::string to_string(const Shape&);

struct Tensor {
  Shape shape;
  Elements data;

  Tensor() = default;
  explicit Tensor(Shape s, float value = 0);
  /// Reads memory of the caller, element_count() floats that stay as they are while it lives.
  static Tensor borrowed(Shape, const float*);
  /// Number of elements, released ones too.
  std::int64_t size() const {
    return data.empty() ? released_ : static_cast<std::int64_t>(data.size());
  }
  std::int64_t dim(int axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
  /// No element is in memory.
  bool empty() const { return data.empty(); }
  /// Frees the data: shape and size stay, and data is empty.
  void release();

 private:
  std::int64_t released_ = 0;
};

struct NamedTensor {
  std::string name;
  Tensor value;
};

struct NamedShape {
  std::string name;
  Shape shape;  ///< of one sample
};
/// A packed batch [samples, elements of all parts] has the parts of a sample side by side. Gives a
/// tensor [samples, shape...] for each; of one part the batch itself.
std::vector<Tensor> unpacked(Tensor batch, std::span<const NamedShape> parts);

/// Reads samples [first, first + count) of the first axis where they lie.
Tensor borrowed_samples(const Tensor&, std::int64_t first, std::int64_t count);

/// Throws Error naming the tensor where Tensor::release() has freed its elements.
void require_elements(const Tensor&, std::string_view name);

}  // namespace numemu::net

// A dense float32 array with a shape; activations are NHWC, convolution weights OHWI.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace numemu::net {

using Shape = std::vector<std::int64_t>;

/// Number of elements of a shape (1 for the scalar shape {}).
std::int64_t element_count(const Shape&);
/// "[128, 28, 28, 1]"
std::string to_string(const Shape&);

struct Tensor {
  Shape shape;
  std::vector<float> data;

  Tensor() = default;
  explicit Tensor(Shape s, float value = 0);
  std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
  std::int64_t dim(int axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
  bool empty() const { return data.empty(); }
};

}  // namespace numemu::net

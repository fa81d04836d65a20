// Copies between tensors of different strides, for transposing, slicing and padding.
#pragma once
#include <cstdint>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Where the elements of a box lie: element (i, j, ..) at start + i steps[0] + j steps[1] + ..
struct Strides {
  std::int64_t start = 0;
  Shape steps;
};

/// Those of a row-major tensor.
Strides row_major(const Shape&);

/// to[..] = from[..] for every element of the box `extent`. Both have one step an axis; the
/// elements written are distinct.
void strided_copy(const Shape& extent, const float* from, const Strides& from_strides, float* to,
                  const Strides& to_strides);

/// `axis` counted from the front; throws Error naming `op` when a tensor of that rank has no such
/// axis.
std::int64_t checked_axis(const char* op, std::int64_t axis, std::size_t rank);

}  // namespace numemu::net

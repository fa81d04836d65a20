// Strided copies: the last axis is the inner loop, the lines before it go to threads.
#include "emu/net/ops/strided_copy.hpp"

#include <cstring>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Strides row_major(const Shape& shape) {
  Strides strides{0, Shape(shape.size())};
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides.steps[i] = step;
  return strides;
}

void strided_copy(const Shape& extent, const float* from, const Strides& from_strides, float* to,
                  const Strides& to_strides) {
  const std::int64_t total = element_count(extent);
  if (total == 0) return;
  if (extent.empty()) {
    to[to_strides.start] = from[from_strides.start];
    return;
  }
  const std::size_t last = extent.size() - 1;
  const std::int64_t length = extent[last];
  const std::int64_t from_step = from_strides.steps[last], to_step = to_strides.steps[last];
  for_each_row(total / length, length, [&](std::int64_t line) {
    std::int64_t source = from_strides.start, target = to_strides.start, rest = line;
    for (std::size_t i = last; i-- > 0; rest /= extent[i]) {
      source += rest % extent[i] * from_strides.steps[i];
      target += rest % extent[i] * to_strides.steps[i];
    }
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to + target, from + source, static_cast<std::size_t>(length) * sizeof(float));
      return;
    }
    for (std::int64_t i = 0; i < length; ++i)
      to[target + i * to_step] = from[source + i * from_step];
  });
}

std::int64_t checked_axis(const char* op, std::int64_t axis, std::size_t rank) {
  const std::int64_t axes = static_cast<std::int64_t>(rank);
  if (axis < -axes || axis >= axes) {
    throw Error(std::string(op) + ": axis " + std::to_string(axis) + " of a tensor of " +
                std::to_string(axes) + " axes");
  }
  return axis < 0 ? axis + axes : axis;
}

}  // namespace numemu::net

#include "emu/net/ops/pool_options.hpp"

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                     std::int64_t before, std::int64_t after, bool ceil_mode) {
  const std::int64_t room = size + before + after - kernel;
  if (room < 0) return 0;
  std::int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if ((count - 1) * stride >= size + before) --count;  // it would begin in the border behind
  return count;
}

}  // namespace

PoolOptions checked(std::string_view op, PoolOptions o) {
  if (o.stride_height == 0) o.stride_height = o.kernel_height;
  if (o.stride_width == 0) o.stride_width = o.kernel_width;
  const auto refuse = [&](const std::string& what) {
    throw Error(std::string(op) + ": " + what + ", got kernel " + std::to_string(o.kernel_height) +
                "x" + std::to_string(o.kernel_width) + ", stride " +
                std::to_string(o.stride_height) + "x" + std::to_string(o.stride_width) +
                ", pads top " + std::to_string(o.pad_top) + ", left " + std::to_string(o.pad_left) +
                ", bottom " + std::to_string(o.pad_bottom) + ", right " +
                std::to_string(o.pad_right));
  };
  if (std::min({o.kernel_height, o.kernel_width, o.stride_height, o.stride_width}) < 1)
    refuse("kernel and stride must be positive");
  const bool fits = std::max(o.pad_top, o.pad_bottom) < o.kernel_height &&
                    std::max(o.pad_left, o.pad_right) < o.kernel_width;
  if (std::min({o.pad_top, o.pad_left, o.pad_bottom, o.pad_right}) < 0 || !fits)
    refuse("pads must be from 0 to the kernel's size - 1");
  return o;
}

Shape pooled_shape(std::string_view op, const PoolOptions& o, std::span<const Shape> inputs) {
  if (inputs.size() != 1 || inputs[0].size() != 4) {
    throw Error(std::string(op) + ": expected one input [batch, height, width, channels], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape& x = inputs[0];
  const Shape y{
      x[0], windows(x[1], o.kernel_height, o.stride_height, o.pad_top, o.pad_bottom, o.ceil_mode),
      windows(x[2], o.kernel_width, o.stride_width, o.pad_left, o.pad_right, o.ceil_mode), x[3]};
  if (y[1] < 1 || y[2] < 1) {
    throw Error(std::string(op) + ": expected with its border an image of at least " +
                std::to_string(o.kernel_height) + "x" + std::to_string(o.kernel_width) + ", got " +
                to_string(x));
  }
  return y;
}

PoolSpan pool_span(std::int64_t index, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad_before, std::int64_t pad_after, std::int64_t size,
                   bool count_include_pad) {
  const std::int64_t first = index * stride - pad_before;
  PoolSpan span{std::max<std::int64_t>(first, 0), std::min(first + kernel, size), 0};
  span.divisor =
      count_include_pad ? std::min(first + kernel, size + pad_after) - first : span.to - span.from;
  return span;
}

}  // namespace numemu::net

#include "emu/net/ops/pool_options.hpp"

#include <algorithm>
#include <utility>

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
  if (o.stride_depth == 0) o.stride_depth = o.kernel_depth;
  if (o.stride_height == 0) o.stride_height = o.kernel_height;
  if (o.stride_width == 0) o.stride_width = o.kernel_width;
  const auto refuse = [&](const std::string& what) {
    const auto sizes = [&](std::int64_t depth, std::int64_t height, std::int64_t width) {
      return (o.kernel_depth == 1 ? "" : std::to_string(depth) + "x") + std::to_string(height) +
             "x" + std::to_string(width);
    };
    std::string message = std::string(op) + ": " + what + ", got kernel " +
                          sizes(o.kernel_depth, o.kernel_height, o.kernel_width) + ", stride " +
                          sizes(o.stride_depth, o.stride_height, o.stride_width) + ", pads";
    const std::pair<const char*, std::int64_t> pads[] = {
        {" front ", o.pad_front}, {", back ", o.pad_back},     {", top ", o.pad_top},
        {", left ", o.pad_left},  {", bottom ", o.pad_bottom}, {", right ", o.pad_right}};
    for (const auto& [name, pad] : pads) message += name + std::to_string(pad);
    throw Error(message);
  };
  if (std::min({o.kernel_depth, o.kernel_height, o.kernel_width, o.stride_depth, o.stride_height,
                o.stride_width}) < 1)
    refuse("kernel and stride must be positive");
  const bool fits = std::max(o.pad_front, o.pad_back) < o.kernel_depth &&
                    std::max(o.pad_top, o.pad_bottom) < o.kernel_height &&
                    std::max(o.pad_left, o.pad_right) < o.kernel_width;
  if (std::min({o.pad_front, o.pad_back, o.pad_top, o.pad_left, o.pad_bottom, o.pad_right}) < 0 ||
      !fits)
    refuse("pads must be from 0 to the kernel's size - 1");
  return o;
}

Shape as_volume(const Shape& image) {
  Shape volume = image;
  volume.insert(volume.begin() + 1, 5 - image.size(), 1);
  return volume;
}

Shape pooled_shape(std::string_view op, const PoolOptions& o, std::span<const Shape> inputs) {
  const std::size_t rank = inputs.size() == 1 ? inputs[0].size() : 0;
  // A kernel along an axis needs that axis.
  const std::size_t least = o.kernel_depth > 1 ? 5 : o.kernel_height > 1 ? 4 : 3;
  if (rank < least || rank > 5) {
    throw Error(std::string(op) + ": expected one input [batch" + (least == 5 ? ", depth" : "") +
                (least >= 4 ? ", height" : "") + ", width, channels], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape x = as_volume(inputs[0]);
  Shape y{x[0], windows(x[1], o.kernel_depth, o.stride_depth, o.pad_front, o.pad_back, o.ceil_mode),
          windows(x[2], o.kernel_height, o.stride_height, o.pad_top, o.pad_bottom, o.ceil_mode),
          windows(x[3], o.kernel_width, o.stride_width, o.pad_left, o.pad_right, o.ceil_mode),
          x[4]};
  if (std::min({y[1], y[2], y[3]}) < 1) {
    throw Error(std::string(op) + ": expected with its border an image of at least " +
                (rank == 5 ? std::to_string(o.kernel_depth) + "x" : "") +
                (rank >= 4 ? std::to_string(o.kernel_height) + "x" : "") +
                std::to_string(o.kernel_width) + ", got " + to_string(inputs[0]));
  }
  y.erase(y.begin() + 1, y.begin() + 1 + static_cast<std::ptrdiff_t>(5 - rank));
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

// Convolution: fprop, dgrad and wgrad differ only in which offsets run along rows and which along
// the depth.
#include "emu/net/ops/conv2d.hpp"

#include <limits>

#include "emu/net/ops/bias.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using unit::Gather;
using unit::Padding;
using Offsets = std::vector<std::int32_t>;

// Top-left corners of the windows (n, oh, ow) in a padded image of `channels` interleaved values a
// pixel.
Offsets corners(const Padding& p, std::int64_t oh, std::int64_t ow, std::int64_t stride) {
  Offsets offsets(static_cast<std::size_t>(p.outer * oh * ow));
  std::size_t i = 0;
  for (std::int64_t n = 0; n < p.outer; ++n) {
    for (std::int64_t y = 0; y < oh; ++y) {
      const std::int64_t line = (n * p.padded_height + y * stride) * p.padded_width;
      for (std::int64_t x = 0; x < ow; ++x) {
        offsets[i++] = static_cast<std::int32_t>((line + x * stride) * p.channels);
      }
    }
  }
  return offsets;
}

// The window's elements (kh, kw, channel) relative to its corner.
Offsets taps(const Padding& p, std::int64_t kh, std::int64_t kw) {
  Offsets offsets;
  offsets.reserve(static_cast<std::size_t>(kh * kw * p.channels));
  for (std::int64_t y = 0; y < kh; ++y) {
    for (std::int64_t x = 0; x < kw; ++x) {
      for (std::int64_t c = 0; c < p.channels; ++c) {
        offsets.push_back(static_cast<std::int32_t>((y * p.padded_width + x) * p.channels + c));
      }
    }
  }
  return offsets;
}

// Weights [out, kh, kw, in] as rows `in` and depth (kh, kw, out), the taps in opposite order.
Gather flipped(const Conv2dOptions& o) {
  Gather gather;
  const std::int64_t out_stride = o.kernel_height * o.kernel_width * o.in_channels;
  gather.padding = {.outer = o.out_channels,
                    .height = o.kernel_height,
                    .width = o.kernel_width,
                    .channels = o.in_channels,
                    .padded_height = o.kernel_height,
                    .padded_width = o.kernel_width};
  for (std::int64_t c = 0; c < o.in_channels; ++c)
    gather.row.push_back(static_cast<std::int32_t>(c));
  for (std::int64_t tap = o.kernel_height * o.kernel_width - 1; tap >= 0; --tap) {
    for (std::int64_t out = 0; out < o.out_channels; ++out) {
      gather.depth.push_back(static_cast<std::int32_t>(out * out_stride + tap * o.in_channels));
    }
  }
  return gather;
}

// The input with its border of zeros.
Padding padded_input(const Conv2dOptions& o, const Shape& x) {
  return {.outer = x[0],
          .height = x[1],
          .width = x[2],
          .channels = x[3],
          .top = o.pad,
          .left = o.pad,
          .padded_height = x[1] + 2 * o.pad,
          .padded_width = x[2] + 2 * o.pad};
}

// The output's gradient spread by the stride, so that flipped windows at every input pixel lie
// inside it.
Padding padded_gradient(const Conv2dOptions& o, const Shape& x, const Shape& y) {
  return {.outer = y[0],
          .height = y[1],
          .width = y[2],
          .channels = y[3],
          .top = o.kernel_height - 1 - o.pad,
          .left = o.kernel_width - 1 - o.pad,
          .padded_height = x[1] + o.kernel_height - 1,
          .padded_width = x[2] + o.kernel_width - 1,
          .dilation = o.stride};
}

void require_offsets(const Padding& padding) {
  if (padding.padded_size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error("conv2d: a padded tensor of " + std::to_string(padding.padded_size()) +
                " elements is beyond the 2^31 a gather can address; use a smaller batch");
  }
}

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const Conv2dOptions& o = options_;
  if (o.in_channels < 1 || o.out_channels < 1 || o.kernel_height < 1 || o.kernel_width < 1 ||
      o.stride < 1) {
    throw Error("conv2d: channels, kernel and stride must be positive");
  }
  if (o.pad < 0 || o.pad >= o.kernel_height || o.pad >= o.kernel_width) {
    throw Error("conv2d: pad " + std::to_string(o.pad) + " is not in 0 to the kernel's size - 1");
  }
  parameters_.push_back({"weight",
                         Tensor({o.out_channels, o.kernel_height, o.kernel_width, o.in_channels}),
                         o.kernel_height * o.kernel_width * o.in_channels});
  if (o.bias) parameters_.push_back({"bias", Tensor({o.out_channels}), 0});
}

Shape Conv2d::output_shape(std::span<const Shape> inputs) const {
  const Conv2dOptions& o = options_;
  if (inputs.size() != 1 || inputs[0].size() != 4 || inputs[0][3] != o.in_channels) {
    throw Error("conv2d: expected one input [batch, height, width, " +
                std::to_string(o.in_channels) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape& x = inputs[0];
  const std::int64_t rows = x[1] + 2 * o.pad - o.kernel_height,
                     columns = x[2] + 2 * o.pad - o.kernel_width;
  if (rows < 0 || columns < 0) {
    throw Error("conv2d: input " + to_string(x) + " is smaller than the kernel " +
                std::to_string(o.kernel_height) + "x" + std::to_string(o.kernel_width));
  }
  return {x[0], rows / o.stride + 1, columns / o.stride + 1, o.out_channels};
}

void Conv2d::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                     Tensor& output) const {
  const Conv2dOptions& o = options_;
  const Tensor& x = *inputs[0];            // [n, h, w, in]
  const Tensor& w = parameters_[0].value;  // [out, kh, kw, in]
  const Shape& y = output.shape;           // [n, oh, ow, out]
  const std::int64_t k = parameters_[0].fan_in;
  Gather a{padded_input(o, x.shape), {}, {}};
  require_offsets(a.padding);
  a.row = corners(a.padding, y[1], y[2], o.stride);
  a.depth = taps(a.padding, o.kernel_height, o.kernel_width);
  const Gather b = Gather::matrix(o.out_channels, k);
  call.numerics.product({call.layer,
                         GemmKind::fprop,
                         y[0] * y[1] * y[2],
                         o.out_channels,
                         k,
                         {&x, &a, Role::activation, 3},
                         {&w, &b, Role::weight, 3},
                         output.data.data()});
  if (o.bias) add_bias(parameters_[1].value, output);
}

void Conv2d::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs,
                      std::span<Tensor> grad_parameters, bool want_inputs) const {
  const Conv2dOptions& o = options_;
  const Tensor& x = *inputs[0];            // [n, h, w, in]
  const Tensor& w = parameters_[0].value;  // [out, kh, kw, in]
  const Tensor& g = grad_output;           // [n, oh, ow, out]
  const std::int64_t positions = g.dim(0) * g.dim(1) * g.dim(2);
  if (o.bias) bias_gradient(g, grad_parameters[1]);
  {
    const Gather a = Gather::matrix(o.out_channels, positions, true);
    Gather b{padded_input(o, x.shape), {}, {}};
    require_offsets(b.padding);
    b.row = taps(b.padding, o.kernel_height, o.kernel_width);
    b.depth = corners(b.padding, g.dim(1), g.dim(2), o.stride);
    call.numerics.product({call.layer,
                           GemmKind::wgrad,
                           o.out_channels,
                           parameters_[0].fan_in,
                           positions,
                           {&g, &a, Role::gradient, 0},
                           {&x, &b, Role::activation, 0},
                           grad_parameters[0].data.data()});
  }
  if (!want_inputs) return;
  Gather a{padded_gradient(o, x.shape, g.shape), {}, {}};
  require_offsets(a.padding);
  a.row = corners(a.padding, x.dim(1), x.dim(2), 1);
  a.depth = taps(a.padding, o.kernel_height, o.kernel_width);
  const Gather b = flipped(o);
  call.numerics.product({call.layer,
                         GemmKind::dgrad,
                         x.dim(0) * x.dim(1) * x.dim(2),
                         o.in_channels,
                         o.kernel_height * o.kernel_width * o.out_channels,
                         {&g, &a, Role::gradient, 3},
                         {&w, &b, Role::weight, 0},
                         grad_inputs[0].data.data()});
}

}  // namespace numemu::net

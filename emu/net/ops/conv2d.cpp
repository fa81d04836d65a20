// Convolution: fprop, dgrad and wgrad differ only in which offsets run along rows and which along
// the depth; groups are the matrices of their stacks.
#include "emu/net/ops/conv2d.hpp"

#include <algorithm>
#include <limits>

#include "emu/net/ops/bias.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using unit::Gather;
using unit::Padding;
using Offsets = std::vector<std::int32_t>;

// Windows at (first + i * step_y, first + j * step_x) of a padded image.
struct Grid {
  std::int64_t rows, columns;
  std::int64_t step_y = 1, step_x = 1;
  std::int64_t first_y = 0, first_x = 0;
};

// Corners of the windows (n, i, j) in padded images of `channels` interleaved values a pixel.
Offsets corners(const Padding& p, const Grid& grid) {
  Offsets offsets(static_cast<std::size_t>(p.outer * grid.rows * grid.columns));
  std::size_t i = 0;
  for (std::int64_t n = 0; n < p.outer; ++n) {
    for (std::int64_t y = 0; y < grid.rows; ++y) {
      const std::int64_t line =
          (n * p.padded_height + grid.first_y + y * grid.step_y) * p.padded_width + grid.first_x;
      for (std::int64_t x = 0; x < grid.columns; ++x) {
        offsets[i++] = static_cast<std::int32_t>((line + x * grid.step_x) * p.channels);
      }
    }
  }
  return offsets;
}

// The window's elements (kh, kw, channel) relative to its corner.
Offsets taps(const Padding& p, const Conv2dOptions& o) {
  Offsets offsets;
  offsets.reserve(static_cast<std::size_t>(o.kernel_height * o.kernel_width * p.channels));
  for (std::int64_t y = 0; y < o.kernel_height; ++y) {
    for (std::int64_t x = 0; x < o.kernel_width; ++x) {
      const std::int64_t pixel = y * o.dilation_height * p.padded_width + x * o.dilation_width;
      for (std::int64_t c = 0; c < p.channels; ++c)
        offsets.push_back(static_cast<std::int32_t>(pixel * p.channels + c));
    }
  }
  return offsets;
}

// A group's weights [out, kh, kw, in] as rows `in` and depth (kh, kw, out), the taps in opposite
// order.
Gather flipped(const Conv2dOptions& o) {
  Gather gather;
  const std::int64_t out_channels = o.out_channels / o.groups,
                     in_channels = o.in_channels / o.groups;
  const std::int64_t pixels = o.kernel_height * o.kernel_width;
  gather.padding = {.outer = out_channels,
                    .height = o.kernel_height,
                    .width = o.kernel_width,
                    .channels = in_channels,
                    .padded_height = o.kernel_height,
                    .padded_width = o.kernel_width};
  for (std::int64_t c = 0; c < in_channels; ++c) gather.row.push_back(static_cast<std::int32_t>(c));
  for (std::int64_t tap = pixels - 1; tap >= 0; --tap) {
    for (std::int64_t out = 0; out < out_channels; ++out)
      gather.depth.push_back(static_cast<std::int32_t>((out * pixels + tap) * in_channels));
  }
  return gather;
}

// Distance between the first and the last tap.
std::int64_t reach_y(const Conv2dOptions& o) { return o.dilation_height * (o.kernel_height - 1); }
std::int64_t reach_x(const Conv2dOptions& o) { return o.dilation_width * (o.kernel_width - 1); }

// Throws Error where they are 2^63 or more.
std::int64_t padded_elements(const Padding& p) {
  return element_count({p.outer, p.padded_height, p.padded_width, p.channels});
}

void require_offsets(const Padding& padding) {
  if (padded_elements(padding) > std::numeric_limits<std::int32_t>::max()) {
    throw Error("conv2d: a padded tensor of " + std::to_string(padding.padded_size()) +
                " elements is beyond the 2^31 a gather can address; use a smaller batch");
  }
}

// One group of the input with its border of zeros, and the windows of the output in it.
struct Windows {
  Padding padding;
  Grid grid;
};

Windows input_windows(const Conv2dOptions& o, const Shape& x, const Shape& y) {
  const Padding padding{.outer = x[0],
                        .height = x[1],
                        .width = x[2],
                        .channels = o.in_channels / o.groups,
                        .top = o.pad_top,
                        .left = o.pad_left,
                        .padded_height = x[1] + o.pad_top + o.pad_bottom,
                        .padded_width = x[2] + o.pad_left + o.pad_right};
  return {padding, {y[1], y[2], o.stride_height, o.stride_width}};
}

// A stride beyond 2^31 has one window on its axis, or require_offsets() refuses what it spreads.
std::int32_t spread(std::int64_t stride) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::min(stride, kLargest));
}

// One group of the output's gradient spread by the stride, with a border such that flipped windows
// for every input pixel lie inside it. Where the convolution's own border is wider than its reach,
// the first windows begin behind the outputs that saw only border.
Windows gradient_windows(const Conv2dOptions& o, const Shape& x, const Shape& y) {
  const std::int64_t top = std::max<std::int64_t>(0, reach_y(o) - o.pad_top);
  const std::int64_t left = std::max<std::int64_t>(0, reach_x(o) - o.pad_left);
  const Grid grid{.rows = x[1],
                  .columns = x[2],
                  .first_y = top + o.pad_top - reach_y(o),
                  .first_x = left + o.pad_left - reach_x(o)};
  const Padding padding{.outer = y[0],
                        .height = y[1],
                        .width = y[2],
                        .channels = o.out_channels / o.groups,
                        .top = top,
                        .left = left,
                        .padded_height = std::max(top + (y[1] - 1) * o.stride_height + 1,
                                                  grid.first_y + x[1] + reach_y(o)),
                        .padded_width = std::max(left + (y[2] - 1) * o.stride_width + 1,
                                                 grid.first_x + x[2] + reach_x(o)),
                        .dilation = spread(o.stride_width),
                        .dilation_height = spread(o.stride_height)};
  return {padding, grid};
}

Conv2dOptions spelt_out(Conv2dOptions o) {
  for (std::int64_t* stride : {&o.stride_height, &o.stride_width})
    if (*stride == 0) *stride = o.stride;
  for (std::int64_t* pad : {&o.pad_top, &o.pad_left, &o.pad_bottom, &o.pad_right})
    if (*pad == -1) *pad = o.pad;
  for (std::int64_t* dilation : {&o.dilation_height, &o.dilation_width})
    if (*dilation == 0) *dilation = o.dilation;
  for (const std::int64_t size :
       {o.in_channels, o.out_channels, o.kernel_height, o.kernel_width, o.stride_height,
        o.stride_width, o.groups, o.dilation_height, o.dilation_width}) {
    if (size < 1)
      throw Error("conv2d: channels, kernel, stride, groups and dilation must be positive, got " +
                  std::to_string(size));
  }
  for (const std::int64_t pad : {o.pad_top, o.pad_left, o.pad_bottom, o.pad_right}) {
    if (pad < 0) throw Error("conv2d: expected a pad of at least 0, got " + std::to_string(pad));
  }
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0) {
    throw Error("conv2d: " + std::to_string(o.groups) + " groups do not divide " +
                std::to_string(o.in_channels) + " input and " + std::to_string(o.out_channels) +
                " output channels");
  }
  return o;
}

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options) : options_(spelt_out(options)) {
  const Conv2dOptions& o = options_;
  const std::int64_t in = o.in_channels / o.groups;
  parameters_.push_back({"weight", Tensor({o.out_channels, o.kernel_height, o.kernel_width, in}),
                         o.kernel_height * o.kernel_width * in});
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
  const std::int64_t rows = x[1] + o.pad_top + o.pad_bottom - reach_y(o) - 1,
                     columns = x[2] + o.pad_left + o.pad_right - reach_x(o) - 1;
  if (rows < 0 || columns < 0) {
    throw Error("conv2d: input " + to_string(x) + " is smaller than the kernel " +
                std::to_string(reach_y(o) + 1) + "x" + std::to_string(reach_x(o) + 1));
  }
  return {x[0], rows / o.stride_height + 1, columns / o.stride_width + 1, o.out_channels};
}

/// The padded sources that units make of the image and of the output's gradient, and the tables
/// that read them.
OperatorMemory Conv2d::memory(std::span<const Shape> inputs) const {
  const Shape y = output_shape(inputs);
  const auto elements = [](const Windows& w) {
    const std::int64_t padded = w.padding.identity() ? 0 : padded_elements(w.padding);
    return padded + w.padding.outer * w.grid.rows * w.grid.columns;
  };
  const std::int64_t forward = elements(input_windows(options_, inputs[0], y));
  return {forward, std::max(forward, elements(gradient_windows(options_, inputs[0], y))), 0};
}

void Conv2d::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                     Tensor& output) const {
  const Conv2dOptions& o = options_;
  const Tensor& x = *inputs[0];            // [n, h, w, in]
  const Tensor& w = parameters_[0].value;  // [out, kh, kw, in / groups]
  const Shape& y = output.shape;           // [n, oh, ow, out]
  const std::int64_t in = o.in_channels / o.groups, out = o.out_channels / o.groups;
  const std::int64_t k = parameters_[0].fan_in;
  const Windows windows = input_windows(o, x.shape, y);
  require_offsets(windows.padding);
  const Gather a{windows.padding, corners(windows.padding, windows.grid), taps(windows.padding, o)};
  const Gather b = Gather::matrix(out, k);
  call.numerics.product(call.step, {call.layer,
                                    GemmKind::fprop,
                                    y[0] * y[1] * y[2],
                                    out,
                                    k,
                                    {&x, &a, Role::activation, {.inner = o.groups, .width = in}},
                                    {&w, &b, Role::weight, {.outer = o.groups, .width = in}},
                                    output.data.data(),
                                    {.inner = o.groups, .width = out}});
  if (o.bias) add_bias(parameters_[1].value, output);
}

void Conv2d::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs,
                      std::span<Tensor> grad_parameters, bool want_inputs) const {
  const Conv2dOptions& o = options_;
  const Tensor& x = *inputs[0];            // [n, h, w, in]
  const Tensor& w = parameters_[0].value;  // [out, kh, kw, in / groups]
  const Tensor& g = grad_output;           // [n, oh, ow, out]
  const std::int64_t in = o.in_channels / o.groups, out = o.out_channels / o.groups;
  const std::int64_t positions = g.dim(0) * g.dim(1) * g.dim(2);
  const std::int64_t k = parameters_[0].fan_in;
  if (o.bias) bias_gradient(g, grad_parameters[1]);
  {
    const Windows windows = input_windows(o, x.shape, g.shape);
    require_offsets(windows.padding);
    const Gather a = Gather::matrix(out, positions, true);
    const Gather b{windows.padding, taps(windows.padding, o),
                   corners(windows.padding, windows.grid)};
    call.numerics.product(call.step,
                          {call.layer,
                           GemmKind::wgrad,
                           out,
                           k,
                           positions,
                           {&g, &a, Role::gradient, {.inner = o.groups, .width = out}, true},
                           {&x, &b, Role::activation, {.inner = o.groups, .width = in}, true},
                           grad_parameters[0].data.data(),
                           {.outer = o.groups, .width = k}});
  }
  if (!want_inputs) return;
  const Windows windows = gradient_windows(o, x.shape, g.shape);
  require_offsets(windows.padding);
  const Gather a{windows.padding, corners(windows.padding, windows.grid), taps(windows.padding, o)};
  const Gather b = flipped(o);
  call.numerics.product(call.step, {call.layer,
                                    GemmKind::dgrad,
                                    x.dim(0) * x.dim(1) * x.dim(2),
                                    in,
                                    o.kernel_height * o.kernel_width * out,
                                    {&g, &a, Role::gradient, {.inner = o.groups, .width = out}},
                                    {&w, &b, Role::weight, {.outer = o.groups, .width = k}, true},
                                    grad_inputs[0].data.data(),
                                    {.inner = o.groups, .width = in}});
}

}  // namespace numemu::net

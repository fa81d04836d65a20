// Convolution: fprop, dgrad and wgrad differ only in which offsets run along rows and which along
// the depth; groups are the matrices of their stacks. One and two axes are volumes of extent 1
// along the others.
#include "emu/net/ops/conv.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using unit::Padding;
using Offsets = std::vector<std::int32_t>;
using Axes = std::array<ConvAxis, 3>;  // depth, height, width
using Sizes = std::array<std::int64_t, 3>;

std::int64_t product(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// The extents of an image's axes, without batch and channels.
Sizes extents(const Shape& image) {
  Sizes sizes{1, 1, 1};
  for (std::size_t i = 0; i < sizes.size() && i + 2 < image.size(); ++i)
    sizes[sizes.size() - 1 - i] = image[image.size() - 2 - i];
  return sizes;
}

// Windows at (first + i * step) of a padded image, along each axis.
struct Grid {
  Sizes count, step{1, 1, 1}, first{0, 0, 0};
};

// Corners of the windows (n, i, j, k) in padded images of `channels` interleaved values a pixel.
Offsets corners(const Padding& p, const Grid& grid) {
  Offsets offsets(static_cast<std::size_t>(p.outer * product(grid.count)));
  std::size_t i = 0;
  for (std::int64_t n = 0; n < p.outer; ++n) {
    for (std::int64_t z = 0; z < grid.count[0]; ++z) {
      const std::int64_t plane = n * p.padded_depth + grid.first[0] + z * grid.step[0];
      for (std::int64_t y = 0; y < grid.count[1]; ++y) {
        const std::int64_t line =
            (plane * p.padded_height + grid.first[1] + y * grid.step[1]) * p.padded_width +
            grid.first[2];
        for (std::int64_t x = 0; x < grid.count[2]; ++x)
          offsets[i++] = static_cast<std::int32_t>((line + x * grid.step[2]) * p.channels);
      }
    }
  }
  return offsets;
}

std::int64_t taps_of(const Axes& axes) { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }

// The window's elements (tap, channel) relative to its corner.
Offsets taps(const Padding& p, const Axes& axes) {
  Offsets offsets;
  offsets.reserve(static_cast<std::size_t>(taps_of(axes) * p.channels));
  for (std::int64_t z = 0; z < axes[0].kernel; ++z) {
    for (std::int64_t y = 0; y < axes[1].kernel; ++y) {
      for (std::int64_t x = 0; x < axes[2].kernel; ++x) {
        const std::int64_t line = z * axes[0].dilation * p.padded_height + y * axes[1].dilation;
        const std::int64_t pixel = line * p.padded_width + x * axes[2].dilation;
        for (std::int64_t c = 0; c < p.channels; ++c)
          offsets.push_back(static_cast<std::int32_t>(pixel * p.channels + c));
      }
    }
  }
  return offsets;
}

// A group's weights [out, tap, in] as rows `in` and depth (tap, out), the taps in opposite order.
unit::Gather flipped(std::int64_t taps, std::int64_t out_channels, std::int64_t in_channels) {
  unit::Gather gather;
  gather.padding.outer = out_channels;
  gather.padding.channels = taps * in_channels;
  for (std::int64_t c = 0; c < in_channels; ++c) gather.row.push_back(static_cast<std::int32_t>(c));
  for (std::int64_t tap = taps - 1; tap >= 0; --tap) {
    for (std::int64_t out = 0; out < out_channels; ++out)
      gather.depth.push_back(static_cast<std::int32_t>((out * taps + tap) * in_channels));
  }
  return gather;
}

// Throws Error where they are 2^63 or more.
std::int64_t padded_elements(const Padding& p) {
  return element_count({p.outer, p.padded_depth, p.padded_height, p.padded_width, p.channels});
}

void require_offsets(const Padding& padding) {
  if (padded_elements(padding) > std::numeric_limits<std::int32_t>::max()) {
    throw Error("conv: a padded tensor of " + std::to_string(padding.padded_size()) +
                " elements is beyond the 2^31 a gather can address; use a smaller batch");
  }
}

// A group of an image with its border of zeros, and windows in it.
struct Windows {
  Padding padding;
  Grid grid;
};

// Along one axis: where the image begins, its neighbours' distance, and the padded extent.
struct Border {
  std::int64_t before = 0, distance = 1, padded = 1;
};

// A stride beyond 2^31 has one window on its axis, or require_offsets() refuses what it spreads.
std::int32_t distance(std::int64_t stride) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::min(stride, kLargest));
}

Padding padding_of(const Shape& image, std::int64_t channels, const std::array<Border, 3>& b) {
  const Sizes sizes = extents(image);
  return {.outer = image[0],
          .height = sizes[1],
          .width = sizes[2],
          .channels = channels,
          .top = b[1].before,
          .left = b[2].before,
          .padded_height = b[1].padded,
          .padded_width = b[2].padded,
          .dilation = distance(b[2].distance),
          .dilation_height = distance(b[1].distance),
          .depth = sizes[0],
          .front = b[0].before,
          .padded_depth = b[0].padded,
          .dilation_depth = distance(b[0].distance)};
}

// One group of the input, and the windows of the output in it. Of a negative pad the windows leave
// the pixels out.
Windows input_windows(const Axes& axes, std::int64_t channels, const Shape& x, const Shape& y) {
  std::array<Border, 3> borders;
  Grid grid{.count = extents(y)};
  const Sizes sizes = extents(x);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ConvAxis& a = axes[i];
    borders[i] = {std::max<std::int64_t>(a.pad_before, 0), a.spread,
                  std::max<std::int64_t>(a.pad_before, 0) + (sizes[i] - 1) * a.spread + 1 +
                      std::max<std::int64_t>(a.pad_after, 0)};
    grid.first[i] = std::max<std::int64_t>(-a.pad_before, 0);
    grid.step[i] = a.stride;
  }
  return {padding_of(x, channels, borders), grid};
}

// One group of the output's gradient spread by the stride, with a border such that flipped windows
// for every input pixel lie inside it. Where the convolution's own border is wider than its reach,
// the first windows begin behind the outputs that saw only border.
Windows gradient_windows(const Axes& axes, std::int64_t channels, const Shape& x, const Shape& y) {
  std::array<Border, 3> borders;
  Grid grid{.count = extents(x)};
  const Sizes sizes = extents(y);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ConvAxis& a = axes[i];
    const std::int64_t before = std::max<std::int64_t>(0, a.reach() - a.pad_before);
    grid.first[i] = before + a.pad_before - a.reach();
    grid.step[i] = a.spread;
    borders[i] = {before, a.stride,
                  std::max(before + (sizes[i] - 1) * a.stride + 1,
                           grid.first[i] + (grid.count[i] - 1) * a.spread + 1 + a.reach())};
  }
  return {padding_of(y, channels, borders), grid};
}

ConvOptions checked(ConvOptions o) {
  const auto refuse = [](const std::string& what, std::int64_t found) {
    throw Error("conv: " + what + ", got " + std::to_string(found));
  };
  if (o.axes.empty() || o.axes.size() > 3) refuse("expected one to three axes", std::ssize(o.axes));
  std::vector<std::int64_t> sizes{o.in_channels, o.out_channels, o.groups};
  for (const ConvAxis& a : o.axes)
    sizes.insert(sizes.end(), {a.kernel, a.stride, a.dilation, a.spread});
  for (const std::int64_t size : sizes) {
    if (size < 1) refuse("channels, kernel, stride, groups and dilation must be positive", size);
  }
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0) {
    throw Error("conv: " + std::to_string(o.groups) + " groups do not divide " +
                std::to_string(o.in_channels) + " input and " + std::to_string(o.out_channels) +
                " output channels");
  }
  return o;
}

std::string_view kind_of(const ConvOptions& o) {
  constexpr std::string_view kKinds[] = {"conv1d", "conv2d", "conv3d"};
  return kKinds[o.axes.size() - 1];
}

/// [out, k.., in / groups]
Shape weight_shape(const ConvOptions& o) {
  Shape shape{o.out_channels};
  for (const ConvAxis& axis : o.axes) shape.push_back(axis.kernel);
  shape.push_back(o.in_channels / o.groups);
  return shape;
}

ConvOptions spelt_out(const Conv2dOptions& o) {
  const auto own = [](std::int64_t value, std::int64_t unset, std::int64_t common) {
    return value == unset ? common : value;
  };
  const auto pad = [&](std::int64_t value) {
    const std::int64_t size = own(value, -1, o.pad);
    if (size < 0) throw Error("conv2d: expected a pad of at least 0, got " + std::to_string(size));
    return size;
  };
  return {o.in_channels,
          o.out_channels,
          {{o.kernel_height, own(o.stride_height, 0, o.stride),
            own(o.dilation_height, 0, o.dilation), pad(o.pad_top), pad(o.pad_bottom)},
           {o.kernel_width, own(o.stride_width, 0, o.stride), own(o.dilation_width, 0, o.dilation),
            pad(o.pad_left), pad(o.pad_right)}},
          o.bias,
          o.groups};
}

}  // namespace

Conv::Conv(const ConvOptions& options) : Conv(options, Tensor(weight_shape(checked(options)))) {}

Conv::Conv(const ConvOptions& options, Tensor weight)
    : Op({.kind = kind_of(checked(options)), .result = ResultKind::product, .products = {{"", 0}}}),
      options_(checked(options)) {
  const ConvOptions& o = options_;
  std::ranges::copy(o.axes, axes_.end() - std::ssize(o.axes));
  const Shape shape = weight_shape(o);
  if (weight.shape != shape)
    throw Error("conv: expected a weight of shape " + to_string(shape) + ", got " +
                to_string(weight.shape));
  parameters_.push_back({"weight", std::move(weight), taps_of(axes_) * shape.back()});
  if (o.bias) parameters_.push_back({"bias", Tensor({o.out_channels}), 0});
}

Conv2d::Conv2d(const Conv2dOptions& options) : Conv(spelt_out(options)) {}

Shape Conv::output_shape(Shapes inputs) const {
  const ConvOptions& o = options_;
  const std::size_t rank = o.axes.size() + 2;
  if (inputs.size() != 1 || inputs[0].size() != rank || inputs[0].back() != o.in_channels) {
    constexpr std::string_view kAxes[] = {"width", "height, width", "depth, height, width"};
    throw Error(std::string(kind()) + ": expected one input [batch, " +
                std::string(kAxes[rank - 3]) + ", " + std::to_string(o.in_channels) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape& x = inputs[0];
  Shape y{x[0]};
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    const ConvAxis& a = o.axes[i];
    const std::int64_t room = (x[i + 1] - 1) * a.spread + a.pad_before + a.pad_after - a.reach();
    if (room < 0) {
      std::string kernel;
      for (const ConvAxis& axis : o.axes)
        kernel += (kernel.empty() ? "" : "x") + std::to_string(axis.reach() + 1);
      throw Error(std::string(kind()) + ": input " + to_string(x) + " is smaller than the kernel " +
                  kernel);
    }
    y.push_back(room / a.stride + 1);
  }
  y.push_back(o.out_channels);
  return y;
}

/// The padded sources that units make of the image and of the output's gradient, and the tables
/// that read them.
OperatorMemory Conv::memory(Shapes inputs) const {
  const Shape y = output_shape(inputs);
  const auto elements = [](const Windows& w) {
    const std::int64_t padded = w.padding.identity() ? 0 : padded_elements(w.padding);
    return padded + w.padding.outer * product(w.grid.count);
  };
  const ConvOptions& o = options_;
  const std::int64_t forward =
      elements(input_windows(axes_, o.in_channels / o.groups, inputs[0], y));
  const std::int64_t backward =
      elements(gradient_windows(axes_, o.out_channels / o.groups, inputs[0], y));
  return {forward, std::max(forward, backward), 0};
}

void Conv::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  const ConvOptions& o = options_;
  const Tensor& x = *inputs[0];            // [n, i.., in]
  const Tensor& w = parameters_[0].value;  // [out, k.., in / groups]
  const Shape& y = output.shape;           // [n, o.., out]
  const std::int64_t in = o.in_channels / o.groups, out = o.out_channels / o.groups;
  const std::int64_t k = parameters_[0].fan_in;
  const Windows windows = input_windows(axes_, in, x.shape, y);
  require_offsets(windows.padding);
  const unit::Gather a{windows.padding, corners(windows.padding, windows.grid),
                       taps(windows.padding, axes_)};
  const unit::Gather b = unit::Gather::matrix(out, k);
  call.numerics.product(call.step, {call.layer,
                                    GemmKind::fprop,
                                    y[0] * product(extents(y)),
                                    out,
                                    k,
                                    {&x, &a, Role::activation, {.inner = o.groups, .width = in}},
                                    {&w, &b, Role::weight, {.outer = o.groups, .width = in}},
                                    output.data.data(),
                                    {.inner = o.groups, .width = out}});
  if (o.bias) add_bias(call, parameters_[1].value, output);
}

void Conv::backward(const OpCall& call, const OpBackward& back) const {
  const ConvOptions& o = options_;
  const Tensor& x = *back.inputs[0];       // [n, i.., in]
  const Tensor& w = parameters_[0].value;  // [out, k.., in / groups]
  const Tensor& g = back.grad_output;      // [n, o.., out]
  const std::int64_t in = o.in_channels / o.groups, out = o.out_channels / o.groups;
  const std::int64_t positions = g.dim(0) * product(extents(g.shape));
  const std::int64_t k = parameters_[0].fan_in;
  if (o.bias) bias_gradient(g, back.grad_parameters[1]);
  if (!back.grad_parameters[0].empty()) {
    const Windows windows = input_windows(axes_, in, x.shape, g.shape);
    require_offsets(windows.padding);
    const unit::Gather a = unit::Gather::matrix(out, positions, true);
    const unit::Gather b{windows.padding, taps(windows.padding, axes_),
                         corners(windows.padding, windows.grid)};
    call.numerics.product(call.step,
                          {call.layer,
                           GemmKind::wgrad,
                           out,
                           k,
                           positions,
                           {&g, &a, Role::gradient, {.inner = o.groups, .width = out}, true},
                           {&x, &b, Role::activation, {.inner = o.groups, .width = in}, true},
                           back.grad_parameters[0].data.data(),
                           {.outer = o.groups, .width = k}});
  }
  if (!back.want_inputs) return;
  const Windows windows = gradient_windows(axes_, out, x.shape, g.shape);
  require_offsets(windows.padding);
  const unit::Gather a{windows.padding, corners(windows.padding, windows.grid),
                       taps(windows.padding, axes_)};
  const unit::Gather b = flipped(taps_of(axes_), out, in);
  call.numerics.product(call.step, {call.layer,
                                    GemmKind::dgrad,
                                    x.dim(0) * product(extents(x.shape)),
                                    in,
                                    taps_of(axes_) * out,
                                    {&g, &a, Role::gradient, {.inner = o.groups, .width = out}},
                                    {&w, &b, Role::weight, {.outer = o.groups, .width = k}, true},
                                    back.grad_inputs[0].data.data(),
                                    {.inner = o.groups, .width = in}});
}

}  // namespace numemu::net

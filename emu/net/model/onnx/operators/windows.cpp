// ONNX operators whose windows move over images of one to three axes, or sample them.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/sampling.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMost = 1 << 20, kMostPlaces = 1 << 24;

/// The attributes of windows, one number for each spatial axis.
struct Windows {
  Ints kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
};

/// Without auto_pad. `kernel` where the node gives none.
Windows windows_of(const OnnxNode& node, const OnnxValue& image, Ints kernel) {
  const std::size_t axes = image.rank() - 2;
  Windows w;
  w.kernel = integers_or(node, "kernel_shape", std::move(kernel));
  w.stride = integers_or(node, "strides", Ints(axes, 1));
  w.dilation = integers_or(node, "dilations", Ints(axes, 1));
  const Ints pads = integers_or(node, "pads", Ints(2 * axes, 0));
  if (w.kernel.size() != axes || w.stride.size() != axes || w.dilation.size() != axes ||
      pads.size() != 2 * axes)
    throw Error(fmt::format("expected windows over {} axes, as many as the image has", axes));
  for (const auto& [name, list] :
       {std::pair{"kernel_shape", &w.kernel}, {"strides", &w.stride}, {"dilations", &w.dilation}}) {
    for (const std::int64_t n : *list) {
      if (n < 1 || n > kMost)
        throw Error(fmt::format("expected {} from 1 to 2^20, found {}", name, n));
    }
  }
  for (const std::int64_t n : pads) {
    if (n < 0 || n > kMost) throw Error(fmt::format("expected pads from 0 to 2^20, found {}", n));
  }
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  return w;
}

enum class AutoPad { none, upper, lower, valid };

AutoPad auto_pad(const OnnxNode& node) {
  const std::string_view name = text_or(node, "auto_pad", "NOTSET");
  if (name == "NOTSET") return AutoPad::none;
  if (name == "SAME_UPPER") return AutoPad::upper;
  if (name == "SAME_LOWER") return AutoPad::lower;
  if (name == "VALID") return AutoPad::valid;
  throw Error("expected a known auto_pad");
}

/// Splits the pads of an axis; the odd one goes behind for `upper`, else before.
void split_pads(Windows& w, std::size_t axis, std::int64_t total, bool upper) {
  const std::int64_t less = total / 2, more = total - less;
  w.before[axis] = upper ? less : more;
  w.after[axis] = upper ? more : less;
}

/// The windows of a convolution or pooling, with auto_pad.
Windows padded_windows(const OnnxNode& node, const OnnxValue& image, Ints kernel) {
  Windows w = windows_of(node, image, std::move(kernel));
  const AutoPad automatic = auto_pad(node);
  for (std::size_t axis = 0; automatic != AutoPad::none && axis < w.axes(); ++axis) {
    const std::int64_t n = image.shapes[0][axis + 1];
    const std::int64_t out = (n + w.stride[axis] - 1) / w.stride[axis];
    const std::int64_t total =
        automatic == AutoPad::valid
            ? 0
            : std::max<std::int64_t>(
                  0, (out - 1) * w.stride[axis] + (w.kernel[axis] - 1) * w.dilation[axis] + 1 - n);
    split_pads(w, axis, total, automatic == AutoPad::upper);
  }
  return w;
}

/// A weight [out, in, k..] as [out, k.., in], or [groups in, out, k..] as [groups out, k.., in]
/// with the taps in opposite order. Taken by value: it need not live beside what is made of it.
Tensor channels_last(Tensor w, std::int64_t groups, bool transposed) {
  const std::int64_t rows = w.dim(0) / groups, columns = w.dim(1);
  const std::int64_t out = transposed ? columns : rows, in = transposed ? rows : columns;
  const std::int64_t taps = w.size() / (w.dim(0) * columns);
  Shape shape{groups * out};
  shape.insert(shape.end(), w.shape.begin() + 2, w.shape.end());
  shape.push_back(in);
  if (!transposed && (taps == 1 || in == 1)) {  // the same order
    w.shape = std::move(shape);
    return w;
  }
  Tensor turned(shape);
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        const std::int64_t row = g * rows + (transposed ? i : o);
        const float* const from = w.data.data() + (row * columns + (transposed ? o : i)) * taps;
        float* const to = turned.data.data() + (g * out + o) * taps * in + i;
        for (std::int64_t t = 0; t < taps; ++t) to[t * in] = from[transposed ? taps - 1 - t : t];
      }
    }
  }
  return turned;
}

/// The operator with its weight and, where the options have one, its bias (input 2).
OnnxValue add_conv(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                   const ConvOptions& options, Tensor weight, std::size_t input = 1) {
  auto op = std::make_unique<Conv>(options, std::move(weight));
  if (options.bias) set_parameter(*op, 1, weights_of(importer, node, 2, 1));
  return importer.add(importer.layer_name(node, input), std::move(op), {x}, true);
}

/// `w` is [out, in / groups, k..].
OnnxValue conv_of(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x, Tensor w,
                  std::size_t weight, bool bias) {
  const Ints kernel(w.shape.begin() + 2, w.shape.end());
  const Windows windows = padded_windows(node, x, kernel);
  if (windows.kernel != kernel) throw Error("expected kernel_shape to be that of the weight");
  ConvOptions o{.in_channels = x.shapes[0].back(),
                .out_channels = w.dim(0),
                .axes = {},
                .bias = bias,
                .groups = integer_or(node, "group", 1)};
  if (o.groups < 1 || o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    throw Error(
        fmt::format("expected a group that divides {} channels and {} of the result, found {}",
                    o.in_channels, o.out_channels, o.groups));
  if (o.in_channels / o.groups != w.dim(1))
    throw Error(fmt::format("expected {} input channels of the weight times its groups, found {}",
                            o.in_channels, w.dim(1)));
  for (std::size_t i = 0; i < windows.axes(); ++i)
    o.axes.push_back({windows.kernel[i], windows.stride[i], windows.dilation[i], windows.before[i],
                      windows.after[i]});
  Tensor turned = channels_last(std::move(w), o.groups, false);
  return add_conv(importer, node, x, o, std::move(turned), weight);
}

Values conv(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.value(node));
  return {conv_of(importer, node, x, weights_of(importer, node, 1, x.rank()), 1,
                  importer.has_input(node, 2))};
}

}  // namespace

OnnxValue integer_conv(OnnxImporter& importer, const OnnxNode& node, std::size_t zero,
                       std::size_t weight, std::size_t weight_zero) {
  const OnnxValue x = importer.to_image(without_zero_point(importer, node, zero));
  Tensor w = weights_of(importer, node, weight, x.rank());
  const std::vector<float> zeros = weight_zero_points(importer, node, weight_zero, w.dim(0));
  const std::size_t each = w.data.size() / zeros.size();
  for (std::size_t i = 0; i < w.data.size(); ++i) w.data[i] -= zeros[i / each];
  OnnxValue y = conv_of(importer, node, x, std::move(w), weight, false);
  y.integer = true;
  return y;
}

namespace {

Values conv_integer(OnnxImporter& importer, const OnnxNode& node) {
  return {integer_conv(importer, node, 2, 1, 3)};
}

/// A convolution over the input spread by the stride, its taps in opposite order.
Values conv_transpose(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.value(node));
  Tensor w = weights_of(importer, node, 1, x.rank());  // [in, out / groups, k..]
  const Ints kernel(w.shape.begin() + 2, w.shape.end());
  Windows windows = windows_of(node, x, kernel);
  if (windows.kernel != kernel) throw Error("expected kernel_shape to be that of the weight");
  const std::int64_t groups = integer_or(node, "group", 1);
  if (groups < 1 || groups > kMost || x.shapes[0].back() != w.dim(0) || w.dim(0) % groups != 0)
    throw Error(fmt::format("expected a weight of {} input channels in whole groups, found {}",
                            x.shapes[0].back(), w.dim(0)));
  const Ints more = integers_or(node, "output_padding", Ints(windows.axes(), 0));
  const Ints shape = integers_or(node, "output_shape", {});
  const AutoPad automatic = auto_pad(node);
  // Some exporters write the whole shape.
  const std::size_t skipped = shape.size() == windows.axes() + 2 ? 2 : 0;
  if (more.size() != windows.axes() || (!shape.empty() && shape.size() - skipped != windows.axes()))
    throw Error("expected an output_padding and an output_shape of as many axes as the image has");
  ConvOptions o{.in_channels = w.dim(0),
                .out_channels = w.dim(1) * groups,
                .axes = {},
                .bias = importer.has_input(node, 2),
                .groups = groups};
  for (std::size_t i = 0; i < windows.axes(); ++i) {
    if (more[i] < 0 || more[i] > kMost) throw Error("expected output_padding from 0 to 2^20");
    ConvAxis axis{
        .kernel = windows.kernel[i], .dilation = windows.dilation[i], .spread = windows.stride[i]};
    const std::int64_t n = x.shapes[0][i + 1], whole = (n - 1) * axis.spread + axis.reach() + 1;
    if (!shape.empty() || automatic == AutoPad::upper || automatic == AutoPad::lower) {
      const std::int64_t size = shape.empty() ? n * axis.spread : shape[i + skipped];
      if (size < 1 || size > kMostElements) throw Error("expected an output_shape of at least 1");
      const std::int64_t total = whole + more[i] - size;
      if (automatic == AutoPad::none && total < 0) {  // elements beyond the last window
        windows.before[i] = 0;
        windows.after[i] = total;
      } else {
        // Without auto_pad the odd one goes behind, too, as the specification has it.
        split_pads(windows, i, total, automatic == AutoPad::upper);
      }
    } else if (automatic == AutoPad::valid) {
      windows.before[i] = windows.after[i] = 0;
    }
    axis.pad_before = axis.reach() - windows.before[i];
    axis.pad_after = axis.reach() - windows.after[i] + more[i];
    o.axes.push_back(axis);
  }
  Tensor turned = channels_last(std::move(w), groups, true);
  return {add_conv(importer, node, x, o, std::move(turned))};
}

PoolOptions pool_options(const OnnxNode& node, const OnnxValue& image) {
  if (node.find("kernel_shape") == nullptr) throw Error("expected kernel_shape");
  Windows w = padded_windows(node, image, {});
  for (Ints* list : {&w.kernel, &w.stride, &w.dilation})
    list->insert(list->begin(), 3 - list->size(), 1);
  for (Ints* list : {&w.before, &w.after}) list->insert(list->begin(), 3 - list->size(), 0);
  PoolOptions o;
  o.kernel_depth = w.kernel[0], o.kernel_height = w.kernel[1], o.kernel_width = w.kernel[2];
  o.stride_depth = w.stride[0], o.stride_height = w.stride[1], o.stride_width = w.stride[2];
  o.pad_front = w.before[0], o.pad_top = w.before[1], o.pad_left = w.before[2];
  o.pad_back = w.after[0], o.pad_bottom = w.after[1], o.pad_right = w.after[2];
  o.dilation_depth = w.dilation[0], o.dilation_height = w.dilation[1];
  o.dilation_width = w.dilation[2];
  o.ceil_mode = integer_or(node, "ceil_mode", 0) != 0;
  o.count_include_pad = integer_or(node, "count_include_pad", 0) != 0;
  return o;
}

OnnxValue image_of(OnnxImporter& importer, const OnnxNode& node) {
  return importer.to_image(importer.value(node));
}

Values max_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = image_of(importer, node);
  const PoolOptions options = pool_options(node, x);
  Values out{importer.add<MaxPool>(node, {x}, true, options)};
  if (!importer.is_read(node, 1)) return out;
  refuse_batch(x, 0, "the places of maxima in");  // places count through all samples
  if (element_count(x.shapes[0]) > kMostPlaces)
    throw Error("expected at most 2^24 elements, whose places float32 holds");
  out.push_back(importer.add<MaxPoolPlaces>(node, {x}, true, options,
                                            integer_or(node, "storage_order", 0) != 0));
  out.back().integer = true;
  return out;
}

Values average_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = image_of(importer, node);
  return {importer.add<AveragePool>(node, {x}, true, pool_options(node, x))};
}

Values global_average_pool(OnnxImporter& importer, const OnnxNode& node) {
  return {importer.add<GlobalAveragePool>(node, {image_of(importer, node)}, true)};
}

Values global_max_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = image_of(importer, node);
  Ints size(x.shapes[0].begin() + 1, x.shapes[0].end() - 1);
  size.insert(size.begin(), 3 - size.size(), 1);
  PoolOptions o;
  o.kernel_depth = size[0], o.kernel_height = size[1], o.kernel_width = size[2];
  return {importer.add<MaxPool>(node, {x}, true, o)};
}

Values grid_sample(OnnxImporter& importer, const OnnxNode& node) {
  using Mode = GridSampleOptions::Mode;
  using Border = GridSampleOptions::Border;
  GridSampleOptions o;
  const std::string_view mode = text_or(node, "mode", "linear");
  const std::string_view border = text_or(node, "padding_mode", "zeros");
  if (mode == "nearest") {
    o.mode = Mode::nearest;
  } else if (mode != "linear" && mode != "bilinear") {
    throw Error(fmt::format("expected mode linear or nearest, found {}", printable(mode)));
  }
  if (border == "border") {
    o.border = Border::border;
  } else if (border == "reflection") {
    o.border = Border::reflection;
  } else if (border != "zeros") {
    throw Error("expected a known padding_mode");
  }
  o.align_corners = integer_or(node, "align_corners", 0) != 0;
  const OnnxValue grid = importer.to_plain(importer.value(node, 1));
  return {importer.add<GridSample>(node, {image_of(importer, node), grid}, true, o)};
}

}  // namespace

const OnnxHandlers& onnx_windows_handlers() {
  static const OnnxHandlers kHandlers = {
      {"AveragePool", average_pool},
      {"Conv", conv},
      {"ConvInteger", conv_integer},
      {"ConvTranspose", conv_transpose},
      {"GlobalAveragePool", global_average_pool},
      {"GlobalMaxPool", global_max_pool},
      {"GridSample", grid_sample},
      {"MaxPool", max_pool},
  };
  return kHandlers;
}

}  // namespace numemu::net

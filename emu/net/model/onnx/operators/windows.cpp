// ONNX operators whose windows move over images of one to three axes, or sample them.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/sampling.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kMost = 1 << 20, kMostPlaces = 1 << 24;

/// The attributes of windows, one number for each spatial axis.
struct Windows {
  Ints kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
};

/// Without auto_pad. `kernel` where the node gives none.
Windows windows_of(const NodeImport& node, const OnnxValue& image, Ints kernel) {
  const std::size_t axes = image.rank() - 2;
  Windows w;
  w.kernel = node->integers_or("kernel_shape", std::move(kernel));
  w.stride = node->integers_or("strides", Ints(axes, 1));
  w.dilation = node->integers_or("dilations", Ints(axes, 1));
  const Ints pads = node->integers_or("pads", Ints(2 * axes, 0));
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

AutoPad auto_pad(const NodeImport& node) {
  const std::string_view name = node->text_or("auto_pad", "NOTSET");
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
Windows padded_windows(const NodeImport& node, const OnnxValue& image, Ints kernel) {
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
OnnxValue add_conv(const NodeImport& node, const OnnxValue& x, const ConvOptions& options,
                   Tensor weight, std::size_t input = 1) {
  auto op = std::make_unique<Conv>(options, std::move(weight));
  if (options.bias) set_parameter(*op, 1, node.weights(2, 1));
  return node.add(node.layer_name(input), std::move(op), {x}, true);
}

/// `w` is [out, in / groups, k..].
OnnxValue conv_of(const NodeImport& node, const OnnxValue& x, Tensor w, std::size_t weight,
                  bool bias) {
  const Ints kernel(w.shape.begin() + 2, w.shape.end());
  const Windows windows = padded_windows(node, x, kernel);
  if (windows.kernel != kernel) throw Error("expected kernel_shape to be that of the weight");
  ConvOptions o{.in_channels = x.shapes[0].back(),
                .out_channels = w.dim(0),
                .axes = {},
                .bias = bias,
                .groups = node->integer_or("group", 1)};
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
  return add_conv(node, x, o, std::move(turned), weight);
}

OnnxValues conv(const NodeImport& node) {
  const OnnxValue x = node.image();
  return {conv_of(node, x, node.weights(1, x.rank()), 1, node.has_input(2))};
}

}  // namespace

OnnxValue integer_conv(const NodeImport& node, std::size_t zero, std::size_t weight,
                       std::size_t weight_zero) {
  const OnnxValue x = node.to_image(without_zero_point(node, zero));
  Tensor w = node.weights(weight, x.rank());
  const std::vector<float> zeros = weight_zero_points(node, weight_zero, w.dim(0));
  const std::size_t each = w.data.size() / zeros.size();
  for (std::size_t i = 0; i < w.data.size(); ++i) w.data[i] -= zeros[i / each];
  return as_whole(conv_of(node, x, std::move(w), weight, false));
}

namespace {

OnnxValues conv_integer(const NodeImport& node) { return {integer_conv(node, 2, 1, 3)}; }

/// A convolution over the input spread by the stride, its taps in opposite order.
OnnxValues conv_transpose(const NodeImport& node) {
  const OnnxValue x = node.image();
  Tensor w = node.weights(1, x.rank());  // [in, out / groups, k..]
  const Ints kernel(w.shape.begin() + 2, w.shape.end());
  Windows windows = windows_of(node, x, kernel);
  if (windows.kernel != kernel) throw Error("expected kernel_shape to be that of the weight");
  const std::int64_t groups = node->integer_or("group", 1);
  if (groups < 1 || groups > kMost || x.shapes[0].back() != w.dim(0) || w.dim(0) % groups != 0)
    throw Error(fmt::format("expected a weight of {} input channels in whole groups, found {}",
                            x.shapes[0].back(), w.dim(0)));
  const Ints more = node->integers_or("output_padding", Ints(windows.axes(), 0));
  const Ints shape = node->integers_or("output_shape", {});
  const AutoPad automatic = auto_pad(node);
  // Some exporters write the whole shape.
  const std::size_t skipped = shape.size() == windows.axes() + 2 ? 2 : 0;
  if (more.size() != windows.axes() || (!shape.empty() && shape.size() - skipped != windows.axes()))
    throw Error("expected an output_padding and an output_shape of as many axes as the image has");
  ConvOptions o{.in_channels = w.dim(0),
                .out_channels = w.dim(1) * groups,
                .axes = {},
                .bias = node.has_input(2),
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
  return {add_conv(node, x, o, std::move(turned))};
}

PoolOptions pool_options(const NodeImport& node, const OnnxValue& image) {
  if (node->find("kernel_shape") == nullptr) throw Error("expected kernel_shape");
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
  o.ceil_mode = node->integer_or("ceil_mode", 0) != 0;
  o.count_include_pad = node->integer_or("count_include_pad", 0) != 0;
  return o;
}

OnnxValues max_pool(const NodeImport& node) {
  const OnnxValue x = node.image();
  const PoolOptions options = pool_options(node, x);
  OnnxValues out{node.add<MaxPool>({x}, true, options)};
  if (!node.is_read(1)) return out;
  refuse_batch(x, 0, "the places of maxima in");  // places count through all samples
  if (element_count(x.shapes[0]) > kMostPlaces)
    throw Error("expected at most 2^24 elements, whose places float32 holds");
  out.push_back(
      node.add<MaxPoolPlaces>({x}, true, options, node->integer_or("storage_order", 0) != 0));
  out.back().integer = true;
  return out;
}

/// Zeros, with the elements at the places that MaxPool gave.
OnnxValues max_unpool(const NodeImport& node) {
  const OnnxValue x = node.plain(), places = node.plain(1);
  every_axis(x, "the places of maxima in");
  Shape shape = x.shapes[0];
  const Ints kernel = node->integers_or("kernel_shape", {});
  const std::size_t axes = kernel.size();
  const Ints stride = node->integers_or("strides", Ints(axes, 1)),
             pads = node->integers_or("pads", Ints(2 * axes, 0));
  if (shape.size() < 3 || axes + 2 != shape.size() || stride.size() != axes ||
      pads.size() != 2 * axes)
    throw Error("expected a kernel, strides and pads for each axis of the maps");
  const auto out_of_range = [](std::int64_t n) { return n < 0 || n > kMost; };
  for (const Ints& sizes : {shape, kernel, stride, pads})
    if (std::ranges::any_of(sizes, out_of_range))
      throw Error("expected sizes, strides and pads from 0 to 2^20");
  Shape own = shape;  // in which the places count
  for (std::size_t i = 0; i < axes; ++i)
    own[i + 2] = (shape[i + 2] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + axes];
  Shape target = own;
  if (node.has_input(2)) target = node.constant(2).integers();
  for (const Shape& maps : {own, target}) {
    if (maps.size() != shape.size() ||
        std::ranges::any_of(maps, [](std::int64_t n) { return n < 1 || n > kMost; }) ||
        element_count(maps) > kMostPlaces)
      throw Error("expected maps of 1 to 2^24 elements, whose places float32 holds");
  }
  const std::int64_t count = element_count(shape), total = element_count(own);
  node.hold(7 * total);
  const auto flat = [&](const OnnxValue& value) {
    return node.add<Reshape>({value}, false, Shape{count});
  };
  OnnxValue y = node.add<IndexedScatter>(
      {node.numbers(real_numbers({total}, [](std::int64_t) { return 0.0f; })), flat(places),
       flat(x)},
      false, IndexedOptions{.axis = 0}, false);
  y = node.add<Reshape>({y}, false, own);
  if (own == target) return {y};
  // A larger map has zeros behind.
  Ints behind;
  for (std::size_t i = 0; i < own.size(); ++i) behind.push_back(target[i] - own[i]);
  return {node.add<Pad>({y}, false, Ints(own.size(), 0), behind)};
}

OnnxValues average_pool(const NodeImport& node) {
  const OnnxValue x = node.image();
  return {node.add<AveragePool>({x}, true, pool_options(node, x))};
}

OnnxValues global_average_pool(const NodeImport& node) {
  return {node.add<GlobalAveragePool>({node.image()}, true)};
}

OnnxValues global_max_pool(const NodeImport& node) {
  const OnnxValue x = node.image();
  Ints size(x.shapes[0].begin() + 1, x.shapes[0].end() - 1);
  size.insert(size.begin(), 3 - size.size(), 1);
  PoolOptions o;
  o.kernel_depth = size[0], o.kernel_height = size[1], o.kernel_width = size[2];
  return {node.add<MaxPool>({x}, true, o)};
}

OnnxValues grid_sample(const NodeImport& node) {
  using Mode = GridSampleOptions::Mode;
  using Border = GridSampleOptions::Border;
  GridSampleOptions o;
  const std::string_view mode = node->text_or("mode", "linear");
  const std::string_view border = node->text_or("padding_mode", "zeros");
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
  o.align_corners = node->integer_or("align_corners", 0) != 0;
  const OnnxValue grid = node.plain(1);
  return {node.add<GridSample>({node.image(), grid}, true, o)};
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
      {"MaxUnpool", max_unpool},
  };
  return kHandlers;
}

}  // namespace numemu::net

// ONNX operators with weights, windows or statistics: convolution, Gemm, MatMul, pooling, norms.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/average_pool.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv2d.hpp"
#include "emu/net/ops/embedding.hpp"
#include "emu/net/ops/gather.hpp"
#include "emu/net/ops/global_average_pool.hpp"
#include "emu/net/ops/layer_norm.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/max_pool.hpp"
#include "emu/net/ops/transpose.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

Tensor tensor_of(OnnxImporter& importer, const OnnxNode& node, std::size_t index,
                 std::size_t rank) {
  Tensor tensor = importer.constant(node, index).tensor();
  if (tensor.shape.size() != rank)
    throw Error(fmt::format("expected input {} to have {} axes, found {}", index, rank,
                            to_string(tensor.shape)));
  if (tensor.empty()) throw Error(fmt::format("expected input {} to have elements", index));
  return tensor;
}

/// Sets a parameter of an operator that has just been made.
void set(Op& op, std::size_t index, Tensor value) {
  Parameter& parameter = op.parameters()[index];
  if (parameter.value.size() != value.size())
    throw Error(fmt::format("expected {} of shape {}, found {}", parameter.name,
                            to_string(parameter.value.shape), to_string(value.shape)));
  parameter.value.data = std::move(value.data);
}

/// [out, in, kh, kw] to [out, kh, kw, in].
Tensor channels_last(const Tensor& w) {
  const std::int64_t out = w.dim(0), in = w.dim(1), taps = w.dim(2) * w.dim(3);
  Tensor turned({out, w.dim(2), w.dim(3), in});
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t c = 0; c < in; ++c) {
      for (std::int64_t t = 0; t < taps; ++t)
        turned.data[(o * taps + t) * in + c] = w.data[(o * in + c) * taps + t];
    }
  }
  return turned;
}

Tensor transposed(const Tensor& w) {
  Tensor turned({w.dim(1), w.dim(0)});
  for (std::int64_t i = 0; i < w.dim(0); ++i) {
    for (std::int64_t j = 0; j < w.dim(1); ++j)
      turned.data[j * w.dim(0) + i] = w.data[i * w.dim(1) + j];
  }
  return turned;
}

/// Windows over the two axes of an image.
struct Windows {
  std::vector<std::int64_t> kernel, stride, dilation, pads;  // pads: top, left, bottom, right
};

Windows windows_of(const OnnxNode& node, const OnnxValue& image, std::vector<std::int64_t> kernel) {
  Windows w;
  w.kernel = integers_or(node, "kernel_shape", std::move(kernel));
  w.stride = integers_or(node, "strides", {1, 1});
  w.dilation = integers_or(node, "dilations", {1, 1});
  w.pads = integers_or(node, "pads", {0, 0, 0, 0});
  if (w.kernel.size() != 2 || w.stride.size() != 2 || w.dilation.size() != 2 || w.pads.size() != 4)
    throw Error("expected windows over two axes");
  constexpr std::int64_t kMost = 1 << 20;
  for (const auto* list : {&w.kernel, &w.stride, &w.dilation}) {
    for (const std::int64_t n : *list) {
      if (n < 1 || n > kMost) throw Error("expected sizes from 1 to 2^20");
    }
  }
  for (const std::int64_t n : w.pads) {
    if (n < 0 || n > kMost) throw Error("expected pads from 0 to 2^20");
  }
  const std::string_view automatic = text_or(node, "auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t n = image.shapes[0][axis + 1];
      const std::int64_t out = (n + w.stride[axis] - 1) / w.stride[axis];
      const std::int64_t total = std::max<std::int64_t>(
          0, (out - 1) * w.stride[axis] + (w.kernel[axis] - 1) * w.dilation[axis] + 1 - n);
      const std::int64_t less = total / 2, more = total - less;
      w.pads[axis] = automatic == "SAME_UPPER" ? less : more;
      w.pads[axis + 2] = total - w.pads[axis];
    }
  } else if (automatic == "VALID") {
    w.pads = {0, 0, 0, 0};
  } else if (automatic != "NOTSET") {
    throw Error("expected a known auto_pad");
  }
  return w;
}

Values conv(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.as_graph(importer.input(node, 0), ""));
  const Tensor w = tensor_of(importer, node, 1, 4);  // [out, in / groups, kh, kw]
  const Windows windows = windows_of(node, x, {w.dim(2), w.dim(3)});
  if (windows.kernel[0] != w.dim(2) || windows.kernel[1] != w.dim(3))
    throw Error("expected kernel_shape to be that of the weight");
  Conv2dOptions o;
  o.in_channels = x.shapes[0][3];
  o.out_channels = w.dim(0);
  o.kernel_height = w.dim(2);
  o.kernel_width = w.dim(3);
  o.groups = integer_or(node, "group", 1);
  if (o.groups < 1 || o.in_channels % o.groups != 0 || o.in_channels / o.groups != w.dim(1))
    throw Error(fmt::format("expected {} input channels of the weight times its groups, found {}",
                            o.in_channels, w.dim(1)));
  o.stride_height = windows.stride[0];
  o.stride_width = windows.stride[1];
  o.dilation_height = windows.dilation[0];
  o.dilation_width = windows.dilation[1];
  o.pad_top = windows.pads[0];
  o.pad_left = windows.pads[1];
  o.pad_bottom = windows.pads[2];
  o.pad_right = windows.pads[3];
  o.bias = importer.has_input(node, 2);
  auto op = std::make_unique<Conv2d>(o);
  set(*op, 0, channels_last(w));
  if (o.bias) set(*op, 1, tensor_of(importer, node, 2, 1));
  return {importer.add(importer.layer_name(node, 1), std::move(op), {x}, true)};
}

/// x times a constant matrix [in, out], with a bias where `bias_input` is one vector of `out`.
OnnxValue linear(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                 const Tensor& out_in, const Tensor* bias) {
  auto op = std::make_unique<Linear>(out_in.dim(1), out_in.dim(0), bias != nullptr);
  set(*op, 0, out_in);
  if (bias != nullptr) set(*op, 1, *bias);
  return importer.add(importer.layer_name(node, 1), std::move(op), {x}, false);
}

void scale(Tensor& tensor, float factor) {
  for (float& v : tensor.data) v *= factor;
}

Values gemm(OnnxImporter& importer, const OnnxNode& node) {
  if (integer_or(node, "transA", 0) != 0) throw Error("transA is not supported");
  const OnnxValue x = importer.to_plain(importer.as_graph(importer.input(node, 0), ""));
  Tensor w = tensor_of(importer, node, 1, 2);
  if (integer_or(node, "transB", 0) == 0) w = transposed(w);
  // Factors go into the constants, rounded once; exporters write 1.
  scale(w, number_or(node, "alpha", 1));
  if (!importer.has_input(node, 2)) return {linear(importer, node, x, w, nullptr)};
  Tensor bias = importer.constant(node, 2).tensor();
  scale(bias, number_or(node, "beta", 1));
  if (!bias.empty() && bias.size() != 1 && bias.shape.back() != bias.size())
    throw Error("expected one row to add, found " + to_string(bias.shape));
  if (bias.size() == 1 && w.dim(0) != 1) {
    const float value = bias.data[0];
    bias = Tensor({w.dim(0)}, value);
  }
  return {linear(importer, node, x, w, &bias)};
}

Values matmul(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue& b = importer.input(node, 1);
  if (b.is_constant() && b.rank() == 2 && !importer.input(node, 0).is_constant()) {
    const OnnxValue x = importer.to_plain(importer.input(node, 0));
    return {linear(importer, node, x, transposed(tensor_of(importer, node, 1, 2)), nullptr)};
  }
  const OnnxValue left = importer.to_plain(importer.as_graph(importer.input(node, 0), ""));
  const OnnxValue right = importer.to_plain(importer.as_graph(b, node.inputs[1]));
  return {importer.add(importer.node_name(node), std::make_unique<MatMul>(), {left, right}, false)};
}

PoolOptions pool_options(const OnnxNode& node, const OnnxValue& image) {
  if (node.find("kernel_shape") == nullptr) throw Error("expected kernel_shape");
  const Windows windows = windows_of(node, image, {});
  if (windows.dilation[0] != 1 || windows.dilation[1] != 1)
    throw Error("dilated pooling is not supported");
  PoolOptions o;
  o.kernel_height = windows.kernel[0];
  o.kernel_width = windows.kernel[1];
  o.stride_height = windows.stride[0];
  o.stride_width = windows.stride[1];
  o.pad_top = windows.pads[0];
  o.pad_left = windows.pads[1];
  o.pad_bottom = windows.pads[2];
  o.pad_right = windows.pads[3];
  o.ceil_mode = integer_or(node, "ceil_mode", 0) != 0;
  o.count_include_pad = integer_or(node, "count_include_pad", 0) != 0;
  return o;
}

Values max_pool(OnnxImporter& importer, const OnnxNode& node) {
  if (node.outputs.size() > 1 && !node.outputs[1].empty())
    throw Error("the positions of maxima are not supported");
  const OnnxValue x = importer.to_image(importer.as_graph(importer.input(node, 0), ""));
  return {importer.add(importer.node_name(node), std::make_unique<MaxPool>(pool_options(node, x)),
                       {x}, true)};
}

Values average_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.as_graph(importer.input(node, 0), ""));
  return {importer.add(importer.node_name(node),
                       std::make_unique<AveragePool>(pool_options(node, x)), {x}, true)};
}

Values global_average_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.as_graph(importer.input(node, 0), ""));
  return {importer.add(importer.node_name(node), std::make_unique<GlobalAveragePool>(), {x}, true)};
}

Values global_max_pool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_image(importer.as_graph(importer.input(node, 0), ""));
  PoolOptions o;
  o.kernel_height = x.shapes[0][1];
  o.kernel_width = x.shapes[0][2];
  return {importer.add(importer.node_name(node), std::make_unique<MaxPool>(o), {x}, true)};
}

/// The tensors of an operator over `size` channels, each of that many numbers.
std::vector<Tensor> per_channel(OnnxImporter& importer, const OnnxNode& node, std::int64_t size,
                                std::size_t count) {
  std::vector<Tensor> out;
  for (std::size_t i = 1; i <= count; ++i) {
    out.push_back(tensor_of(importer, node, i, 1));
    if (out.back().size() != size)
      throw Error(fmt::format("expected input {} to have {} numbers, found {}", i, size,
                              out.back().size()));
  }
  return out;
}

/// In training, too, the running statistics are those of the file; what ONNX would give as outputs
/// 1 and 2 is not there.
Values batch_norm(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  if (x.rank() == 4) x = importer.to_image(x);
  if (x.rank() != 4 && x.rank() != 2)
    throw Error("expected images or vectors, found " + std::to_string(x.rank()) + " axes");
  if (integer_or(node, "spatial", 1) != 1) throw Error("expected statistics of whole channels");
  std::vector<Tensor> tensors = per_channel(importer, node, x.shapes[0].back(), 4);
  const std::vector<float>& variance = tensors[3].data;
  const auto negative = std::ranges::find_if(variance, [](float v) { return v < 0; });
  if (negative != variance.end())
    throw Error(fmt::format("tensor '{}': element {}: expected a variance of at least 0, found {}",
                            printable(node.inputs[4]), negative - variance.begin(), *negative));
  auto op = std::make_unique<BatchNorm>(
      BatchNormOptions{.channels = x.shapes[0].back(),
                       .epsilon = number_or(node, "epsilon", 1e-5f),
                       // ONNX weighs the old statistics.
                       .momentum = 1 - double{number_or(node, "momentum", 0.9f)}});
  for (std::size_t i = 0; i < 4; ++i) set(*op, i, std::move(tensors[i]));
  return {importer.add(importer.layer_name(node, 1), std::move(op), {x}, x.image)};
}

Values layer_norm(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.as_graph(importer.input(node, 0), ""));
  if (axis_in(integer_or(node, "axis", -1), x.rank()) + 1 != static_cast<std::int64_t>(x.rank()))
    throw Error("expected the last axis alone");
  const std::int64_t size = x.shapes[0].back();
  const bool biased = importer.has_input(node, 2);
  std::vector<Tensor> tensors = per_channel(importer, node, size, biased ? 2 : 1);
  if (!biased) tensors.push_back(Tensor({size}));
  auto op = std::make_unique<LayerNorm>(size, number_or(node, "epsilon", 1e-5f));
  for (std::size_t i = 0; i < 2; ++i) set(*op, i, std::move(tensors[i]));
  return {importer.add(importer.layer_name(node, 1), std::move(op), {x}, false)};
}

Values gather(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue &data = importer.input(node, 0), &indices = importer.input(node, 1);
  const std::int64_t axis = axis_in(integer_or(node, "axis", 0), data.rank());
  if (data.is_constant()) {
    if (axis != 0) throw Error("expected rows of a table (axis 0)");
    const Tensor table = tensor_of(importer, node, 0, 2);
    auto op = std::make_unique<Embedding>(table.dim(0), table.dim(1));
    set(*op, 0, table);
    return {importer.add(importer.layer_name(node, 0), std::move(op), {importer.to_plain(indices)},
                         false)};
  }
  const OnnxConstant& index = importer.constant(node, 1);
  const OnnxValue x = importer.to_plain(data);
  refuse_batch(x, axis, "choosing along");
  importer.hold(static_cast<std::int64_t>(index.elements.size()));  // eight bytes each
  return {importer.add(importer.node_name(node),
                       std::make_unique<Gather>(axis, index.integers(), index.dims), {x}, false)};
}

}  // namespace

const OnnxHandlers& onnx_product_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Conv", conv},
      {"Gemm", gemm},
      {"MatMul", matmul},
      {"MaxPool", max_pool},
      {"AveragePool", average_pool},
      {"GlobalAveragePool", global_average_pool},
      {"GlobalMaxPool", global_max_pool},
      {"BatchNormalization", batch_norm},
      {"LayerNormalization", layer_norm},
      {"Gather", gather},
  };
  return kHandlers;
}

}  // namespace numemu::net

// QuantizeLinear and DequantizeLinear: pairs become one quantizer with fixed scales.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/reduce.hpp"
#include "formats/error.hpp"

namespace numemu::net {

/// What QuantizeLinear makes of its input, as the node that it may become.
struct OnnxQuantizer {
  std::string name;
  FixedQuantizerOptions options;
  Tensor scales, zeros;
};

OnnxValue quantized(OnnxImporter& importer, const OnnxValue& value) {
  OnnxValue x = value;
  const std::shared_ptr<const OnnxQuantizer> q = std::move(x.quantizer);
  x.quantizer = nullptr;
  OnnxValue y = importer.add(
      q->name, std::make_unique<FixedQuantizer>(q->options, q->scales, q->zeros), {x}, x.image);
  y.integer = true;
  return y;
}

namespace {

/// x less the zero point that is input `zero`.
OnnxValue shifted(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                  std::size_t zero) {
  if (!importer.has_input(node, zero)) return x;
  OnnxValue z = importer.input(node, zero);
  if (z.is_constant()) {
    const Tensor given = importer.constant(node, zero).tensor();
    if (given.size() != 1)
      throw Error(fmt::format("expected one zero point, found {}", to_string(given.shape)));
    if (given.data[0] == 0) return x;
    z = importer.number(given.data[0]);
  } else if (z.rank() > 0) {
    z = x.image ? importer.to_image(z) : importer.to_plain(z);
  }
  OnnxValue y = importer.add<Binary>(node, {x, z}, x.image, "subtract");
  y.integer = true;
  return y;
}

}  // namespace

OnnxValue without_zero_point(OnnxImporter& importer, const OnnxNode& node, std::size_t zero,
                             std::size_t index) {
  return shifted(importer, node, importer.value(node, index), zero);
}

std::vector<float> weight_zero_points(OnnxImporter& importer, const OnnxNode& node,
                                      std::size_t zero, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  if (!importer.has_input(node, zero)) return std::vector<float>(count, 0);
  std::vector<float> zeros = importer.constant(node, zero).tensor().data;
  if (zeros.size() == 1) zeros.assign(count, zeros[0]);
  if (zeros.size() != count)
    throw Error(
        fmt::format("expected one zero point of the weight or {}, found {}", count, zeros.size()));
  return zeros;
}

namespace {

using Values = std::vector<OnnxValue>;

/// Scales and zero points, inputs 1 and 2 of the node; `options.axis` is where they vary.
void read_scales(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                 OnnxQuantizer& q) {
  q.scales = importer.constant(node, 1).tensor();
  q.zeros = Tensor(q.scales.shape);
  if (importer.has_input(node, 2)) q.zeros = importer.constant(node, 2).tensor();
  if (q.zeros.size() != q.scales.size())
    throw Error(fmt::format("expected as many zero points as scales, found {} and {}",
                            q.zeros.size(), q.scales.size()));
  OnnxType type = importer.constant(node, 1).type;
  if (node.op_type == "QuantizeLinear")
    type = static_cast<OnnxType>(integer_or(node, "precision", static_cast<std::int64_t>(type)));
  if (type == OnnxType::float16) q.options.precision = &find_format("float16");
  if (type == OnnxType::bfloat16) q.options.precision = &find_format("bfloat16");
  if (q.scales.shape.size() > 1 && q.scales.size() != 1)
    throw Error("expected one scale, or a vector of them");
  if (q.scales.size() > 1) q.options.axis = stored_axis(x, integer_or(node, "axis", 1));
}

/// The range of a zero point's type; without one, of `otherwise`.
void read_range(OnnxImporter& importer, const OnnxNode& node, FixedQuantizerOptions& o) {
  OnnxType type = OnnxType::uint8;
  if (importer.has_input(node, 2)) {
    type = importer.constant(node, 2).type;
  } else if (const std::int64_t given = integer_or(node, "output_dtype", 0); given != 0) {
    type = static_cast<OnnxType>(given);
  }
  if (const std::string_view name = float8_format(type); !name.empty()) {
    if (integer_or(node, "saturate", 1) != 1) throw Error("expected saturate = 1");
    o.format = &find_format(name);
    o.high = static_cast<float>(largest_value(*o.format));
    o.low = -o.high;
    return;
  }
  const auto [low, high] = range_of(type);
  if (low == high || high > 65535)
    throw Error("expected integers of 4, 8 or 16 bits or floats of 8, found " + to_string(type));
  o.low = static_cast<float>(low);
  o.high = static_cast<float>(high);
}

Values quantize(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  OnnxQuantizer q;
  q.options.dequantizes = false;
  read_range(importer, node, q.options);
  read_scales(importer, node, x, q);
  q.name = importer.node_name(node);
  x.quantizer = std::make_shared<const OnnxQuantizer>(std::move(q));
  return {x};
}

/// Scales for blocks along an axis (operator set 21): products with the scales, each repeated.
OnnxValue blocks(OnnxImporter& importer, const OnnxNode& node, OnnxValue x) {
  x = importer.to_plain(x);
  const std::int64_t block = integer_or(node, "block_size", 0);
  const auto axis = static_cast<std::size_t>(axis_in(integer_or(node, "axis", 1), x.rank()));
  const auto spread = [&](std::size_t index) {
    const OnnxConstant& given = importer.constant(node, index);
    Shape dims = given.dims;
    if (dims.size() != x.rank() || block < 1 ||
        dims[axis] != (x.shapes[0][axis] + block - 1) / block)
      throw Error(fmt::format("expected a scale for every block of {} on axis {}, found {}", block,
                              axis, to_string(dims)));
    dims[axis] = x.shapes[0][axis];
    importer.hold(6 * element_count(dims));
    const Shape strides = strides_of(given.dims);
    OnnxValue out;
    out.constant = std::make_shared<OnnxConstant>(picked(given, dims, [&](const Shape& position) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < position.size(); ++i)
        at += (i == axis ? position[i] / block : position[i]) * strides[i];
      return at;
    }));
    return importer.as_graph(out, "");
  };
  const auto binary = [&](const char* kind, const OnnxValue& b) {
    return importer.add<Binary>(node, {x, b}, false, kind);
  };
  if (importer.has_input(node, 2)) x = binary("subtract", spread(2));
  return binary("multiply", spread(1));
}

/// (x - zero point) scale with a scale that the network computes: one number, or one for each
/// sample, as DynamicQuantizeLinear gives it.
OnnxValue dequantize_by_value(OnnxImporter& importer, const OnnxNode& node, OnnxValue x) {
  if (x.quantizer) x = quantized(importer, x);
  OnnxValue scale = importer.input(node, 1);
  const bool each =
      scale.rank() == x.rank() && std::ranges::all_of(scale.shapes, [](const Shape& shape) {
        return !shape.empty() && element_count(shape) == shape[0];
      });
  const bool one = !scale.has_batch() && element_count(scale.shapes[0]) == 1 && scale.rank() < 2;
  if (!each && !one) throw Error("expected constant scales, or the scale of DynamicQuantizeLinear");
  if (each) scale = x.image ? importer.to_image(scale) : importer.to_plain(scale);
  x = shifted(importer, node, x, 2);
  OnnxValue y = importer.add<Binary>(node, {x, scale}, x.image, "multiply");
  y.integer = false;
  return y;
}

Values dequantize(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  if (!importer.input(node, 1).is_constant()) return {dequantize_by_value(importer, node, x)};
  OnnxQuantizer q;
  q.options.quantizes = false;
  if (!x.quantizer && integer_or(node, "block_size", 0) != 0) return {blocks(importer, node, x)};
  read_scales(importer, node, x, q);
  if (const std::shared_ptr<const OnnxQuantizer> first = std::exchange(x.quantizer, nullptr)) {
    const bool same = first->scales.data == q.scales.data && first->zeros.data == q.zeros.data &&
                      first->options.precision == q.options.precision &&
                      (q.scales.size() == 1 || first->options.axis == q.options.axis);
    if (same) {
      q.options = first->options;
      q.options.dequantizes = true;
    } else {
      OnnxValue integers = x;
      integers.quantizer = first;
      x = quantized(importer, integers);
    }
  }
  OnnxValue y = importer.add<FixedQuantizer>(node, {x}, x.image, q.options, q.scales, q.zeros);
  y.integer = false;
  return {y};
}

/// DynamicQuantizeLinear by its formula: one scale for the tensor, or for each sample of a batch,
/// which is what ONNX defines for one sample. Numbers that are all zero have the scale 1.
Values dynamic_quantize(OnnxImporter& importer, const OnnxNode& node) {
  constexpr float kMost = 255, kInfinity = std::numeric_limits<float>::infinity();
  const OnnxValue x = importer.value(node);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (x.shapes[0][i] == x.shapes[1][i]) axes.push_back(static_cast<std::int64_t>(i));
  }
  const bool keep = !importer.one_sample();
  if (keep && axes.empty()) throw Error("expected samples with an axis of their own");
  const OnnxArithmetic make(importer, node, x.image), number(importer, node, x.image && keep);
  const OnnxValue least = number.clip(number.reduce("reduce_min", x, axes, keep), -kInfinity, 0);
  const OnnxValue most = number.clip(number.reduce("reduce_max", x, axes, keep), 0, kInfinity);
  OnnxValue scale = number.binary("divide", number.binary("subtract", most, least), kMost);
  scale = number.binary("add", scale, number.binary("equal", scale, 0));
  OnnxValue zero = number.unary(
      "round",
      number.clip(number.unary("negate", number.binary("divide", least, scale)), 0, kMost));
  OnnxValue y = make.unary("round", make.binary("divide", x, scale));
  y = make.clip(make.binary("add", y, zero), 0, kMost);
  zero.integer = y.integer = true;
  scale.integer = false;
  zero.type = y.type = OnnxType::uint8;
  return {y, scale, zero};
}

/// Sums of products of integers, times a number for each channel or for all, rounded halves to
/// even, moved by the zero point and held within its type. Input `first` is the scale of the
/// result, the next one its zero point.
OnnxValue requantized(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& sums,
                      const Tensor& scale, const Tensor& weight_scale, std::size_t first) {
  const Tensor result = importer.constant(node, first).tensor();
  if (scale.size() != 1 || result.size() != 1)
    throw Error("expected one scale of the input and one of the result");
  OnnxValue factors;
  OnnxConstant numbers{{weight_scale.size()}, false, {}};
  if (weight_scale.size() == 1) numbers.dims.clear();
  for (const float w : weight_scale.data)
    numbers.elements.push_back({scale.data[0] * w / result.data[0], {}});
  factors.constant = std::make_shared<OnnxConstant>(std::move(numbers));
  const OnnxConstant& zero = importer.constant(node, first + 1);
  if (zero.size() != 1) throw Error("expected one zero point of the result");
  const auto [low, high] = range_of(zero.type);
  const OnnxArithmetic make(importer, node, sums.image);
  OnnxValue y = make.binary("multiply", sums, importer.as_graph(factors, ""));
  y = make.binary("add", make.unary("round", y), zero.tensor().data[0]);
  y = make.clip(y, static_cast<float>(low), static_cast<float>(high));
  y.integer = true;
  y.type = zero.type;
  return y;
}

Values qlinear_matmul(OnnxImporter& importer, const OnnxNode& node) {
  const Tensor scale = importer.constant(node, 1).tensor(),
               weight_scale = importer.constant(node, 4).tensor();
  return {
      requantized(importer, node, integer_matmul(importer, node, 2, 3, 5), scale, weight_scale, 6)};
}

Values qlinear_conv(OnnxImporter& importer, const OnnxNode& node) {
  const Tensor scale = importer.constant(node, 1).tensor(),
               weight_scale = importer.constant(node, 4).tensor();
  OnnxValue sums = integer_conv(importer, node, 2, 3, 5);
  if (importer.has_input(node, 8)) {
    OnnxValue bias;  // channels are the last axis here
    bias.constant = std::make_shared<OnnxConstant>(importer.constant(node, 8));
    sums = OnnxArithmetic(importer, node, true).binary("add", sums, importer.as_graph(bias, ""));
  }
  return {requantized(importer, node, sums, scale, weight_scale, 6)};
}

}  // namespace

const OnnxHandlers& onnx_quantizers_handlers() {
  static const OnnxHandlers kHandlers = {
      {"DequantizeLinear", dequantize}, {"DynamicQuantizeLinear", dynamic_quantize},
      {"QLinearConv", qlinear_conv},    {"QLinearMatMul", qlinear_matmul},
      {"QuantizeLinear", quantize},
  };
  return kHandlers;
}

}  // namespace numemu::net

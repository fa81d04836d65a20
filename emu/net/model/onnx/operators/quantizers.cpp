// QuantizeLinear and DequantizeLinear: pairs become one quantizer with fixed scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
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
  auto op = std::make_unique<FixedQuantizer>(q->options, q->scales, q->zeros);
  return as_whole(importer.add(q->name, std::move(op), {x}, x.image));
}

namespace {

void require_integers(const NodeImport& node, std::size_t index) {
  const OnnxType type = node.constant(index).type;
  if (!is_integer(type))
    throw Error(fmt::format("expected input {} to be integers, found {}", index, to_string(type)));
}

/// x less the zero point that is input `zero`.
OnnxValue shifted(const NodeImport& node, const OnnxValue& x, std::size_t zero) {
  if (!node.has_input(zero)) return x;
  OnnxValue z = node.input(zero);
  if (z.is_constant()) {
    require_integers(node, zero);
    const Tensor given = node.constant(zero).tensor();
    if (given.size() != 1)
      throw Error(fmt::format("expected one zero point, found {}", to_string(given.shape)));
    if (given.data[0] == 0) return x;
    z = node.number(given.data[0]);
  } else if (z.rank() > 0) {
    z = x.image ? node.to_image(z) : node.to_plain(z);
  }
  return as_whole(node.binary("subtract", x, z));
}

}  // namespace

OnnxValue without_zero_point(const NodeImport& node, std::size_t zero, std::size_t index) {
  return shifted(node, node.value(index), zero);
}

std::vector<float> weight_zero_points(const NodeImport& node, std::size_t zero,
                                      std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  if (!node.has_input(zero)) return std::vector<float>(count, 0);
  require_integers(node, zero);
  std::vector<float> zeros = node.constant(zero).tensor().data;
  if (zeros.size() == 1) zeros.assign(count, zeros[0]);
  if (zeros.size() != count)
    throw Error(
        fmt::format("expected one zero point of the weight or {}, found {}", count, zeros.size()));
  return zeros;
}

namespace {

/// Scales and zero points, inputs 1 and 2 of the node; `options.axis` is where they vary.
void read_scales(const NodeImport& node, const OnnxValue& x, OnnxQuantizer& q) {
  q.scales = node.constant(1).tensor();
  q.zeros = Tensor(q.scales.shape);
  if (node.has_input(2)) q.zeros = node.constant(2).tensor();
  if (node->op_type == "QuantizeLinear") {
    for (const float scale : q.scales.data)
      if (!(scale > 0) || !std::isfinite(scale))
        throw Error(fmt::format("expected input 1 to be positive scales, found {}", scale));
  }
  if (q.zeros.size() != q.scales.size())
    throw Error(fmt::format("expected as many zero points as scales, found {} and {}",
                            q.zeros.size(), q.scales.size()));
  OnnxType type = node.constant(1).type;
  if (node->op_type == "QuantizeLinear")
    type = static_cast<OnnxType>(node->integer_or("precision", static_cast<std::int64_t>(type)));
  if (type == OnnxType::float16) q.options.precision = &find_format("float16");
  if (type == OnnxType::bfloat16) q.options.precision = &find_format("bfloat16");
  if (q.scales.shape.size() > 1 && q.scales.size() != 1)
    throw Error("expected one scale, or a vector of them");
  if (q.scales.size() > 1) q.options.axis = stored_axis(x, node->integer_or("axis", 1));
}

/// The range of a zero point's type; without one, of `otherwise`.
void read_range(const NodeImport& node, FixedQuantizerOptions& o) {
  OnnxType type = OnnxType::uint8;
  if (node.has_input(2)) {
    type = node.constant(2).type;
  } else if (const std::int64_t given = node->integer_or("output_dtype", 0); given != 0) {
    type = static_cast<OnnxType>(given);
  }
  if (const std::string_view name = float8_format(type); !name.empty()) {
    if (node->integer_or("saturate", 1) != 1) throw Error("expected saturate = 1");
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

OnnxValues quantize(const NodeImport& node) {
  OnnxValue x = node.value();
  OnnxQuantizer q;
  q.options.dequantizes = false;
  read_range(node, q.options);
  read_scales(node, x, q);
  q.name = node.name();
  x.quantizer = std::make_shared<const OnnxQuantizer>(std::move(q));
  return {x};
}

/// Scales for blocks along an axis (operator set 21): products with the scales, each repeated.
OnnxValue blocks(const NodeImport& node, OnnxValue x) {
  x = node.to_plain(x);
  const std::int64_t block = node->integer_or("block_size", 0);
  const auto axis = static_cast<std::size_t>(axis_in(node->integer_or("axis", 1), x.rank()));
  const auto spread = [&](std::size_t index) {
    const OnnxConstant& given = node.constant(index);
    Shape dims = given.dims;
    if (dims.size() != x.rank() || block < 1 ||
        dims[axis] != (x.shapes[0][axis] + block - 1) / block)
      throw Error(fmt::format("expected a scale for every block of {} on axis {}, found {}", block,
                              axis, to_string(dims)));
    dims[axis] = x.shapes[0][axis];
    node.hold(6 * element_count(dims));
    const Shape strides = strides_of(given.dims);
    return node.numbers(picked(given, dims, [&](const Shape& position) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < position.size(); ++i)
        at += (i == axis ? position[i] / block : position[i]) * strides[i];
      return at;
    }));
  };
  if (node.has_input(2)) x = node.binary("subtract", x, spread(2));
  return node.binary("multiply", x, spread(1));
}

/// (x - zero point) scale with a scale that the network computes: one number, or one for each
/// sample, as DynamicQuantizeLinear gives it.
OnnxValue dequantize_by_value(const NodeImport& node, OnnxValue x) {
  if (x.quantizer) x = quantized(node.importer(), x);
  OnnxValue scale = node.input(1);
  const bool each =
      scale.rank() == x.rank() && std::ranges::all_of(scale.shapes, [](const Shape& shape) {
        return !shape.empty() && element_count(shape) == shape[0];
      });
  const bool one = !scale.has_batch() && element_count(scale.shapes[0]) == 1 && scale.rank() < 2;
  if (!each && !one) throw Error("expected constant scales, or the scale of DynamicQuantizeLinear");
  if (each) scale = x.image ? node.to_image(scale) : node.to_plain(scale);
  x = shifted(node, x, 2);
  return as_whole(node.binary("multiply", x, scale), false);
}

OnnxValues dequantize(const NodeImport& node) {
  OnnxValue x = node.value();
  if (!node.input(1).is_constant()) return {dequantize_by_value(node, x)};
  OnnxQuantizer q;
  q.options.quantizes = false;
  if (!x.quantizer && node->integer_or("block_size", 0) != 0) return {blocks(node, x)};
  read_scales(node, x, q);
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
      x = quantized(node.importer(), integers);
    }
  }
  return {as_whole(node.add<FixedQuantizer>({x}, x.image, q.options, q.scales, q.zeros), false)};
}

/// DynamicQuantizeLinear by its formula: one scale for the tensor, or for each sample of a batch,
/// which is what ONNX defines for one sample. Numbers that are all zero have the scale 1.
OnnxValues dynamic_quantize(const NodeImport& node) {
  constexpr float kMost = 255, kInfinity = std::numeric_limits<float>::infinity();
  const OnnxValue x = node.value();
  Ints axes = ascending(x.rank());
  std::erase_if(axes, [&](std::int64_t axis) { return x.has_batch(axis); });
  const bool keep = !node.one_sample();
  if (keep && axes.empty()) throw Error("expected samples with an axis of their own");
  const OnnxValue least = node.clip(node.reduce("reduce_min", x, axes, keep), -kInfinity, 0);
  const OnnxValue most = node.clip(node.reduce("reduce_max", x, axes, keep), 0, kInfinity);
  OnnxValue scale = node.binary("divide", node.binary("subtract", most, least), kMost);
  scale = node.binary("add", scale, node.binary("equal", scale, 0));
  OnnxValue zero = node.unary(
      "round", node.clip(node.unary("negate", node.binary("divide", least, scale)), 0, kMost));
  OnnxValue y = node.unary("round", node.binary("divide", x, scale));
  y = node.clip(node.binary("add", y, zero), 0, kMost);
  zero.integer = y.integer = true;
  scale.integer = false;
  zero.type = y.type = OnnxType::uint8;
  return {y, scale, zero};
}

/// A constant input of one number; `otherwise` where it is left out.
float one_number(const NodeImport& node, std::size_t index, float otherwise) {
  if (!node.has_input(index)) return otherwise;
  const Tensor numbers = node.constant(index).tensor();
  if (numbers.size() != 1)
    throw Error(fmt::format("expected input {} to be one number, found {}", index,
                            to_string(numbers.shape)));
  return numbers.data[0];
}

/// Scale of an activation.
float one_scale(const NodeImport& node, std::size_t index) {
  const float scale = one_number(node, index, 0);
  if (!(scale > 0) || !std::isfinite(scale))
    throw Error(fmt::format("expected input {} to be a positive scale, found {}", index, scale));
  return scale;
}

/// The type of integers by their zero point; uint8 without.
OnnxType integers_of(const NodeImport& node, std::size_t zero) {
  const OnnxType type = node.has_input(zero) ? node.constant(zero).type : OnnxType::uint8;
  if (type != OnnxType::uint8 && type != OnnxType::int8)
    throw Error("expected integers of 8 bits, found " + to_string(type));
  return type;
}

/// y held within the integers of a type.
OnnxValue held_within(const NodeImport& node, const OnnxValue& y, OnnxType type) {
  const auto [low, high] = range_of(type);
  OnnxValue q = as_whole(node.clip(y, static_cast<float>(low), static_cast<float>(high)));
  q.type = type;
  return q;
}

/// Sums of products of integers, times a number for each channel or for all, rounded halves to
/// even, moved by the zero point and held within its type. Input `first` is the scale of the
/// result, the next one its zero point.
OnnxValue requantized(const NodeImport& node, const OnnxValue& sums, float scale,
                      const Tensor& weight_scale, std::size_t first) {
  const float result = one_scale(node, first);
  if (const auto bad =
          std::ranges::find_if_not(weight_scale.data, [](float w) { return std::isfinite(w); });
      bad != weight_scale.data.end())
    throw Error(fmt::format("expected finite scales of the weight, found {}", *bad));
  const std::int64_t count = weight_scale.size();
  OnnxConstant factors = real_numbers(count == 1 ? Shape{} : Shape{count}, [&](std::int64_t i) {
    return scale * weight_scale.data[static_cast<std::size_t>(i)] / result;
  });
  const OnnxType type = integers_of(node, first + 1);
  OnnxValue y = node.binary("multiply", sums, node.numbers(std::move(factors)));
  y = node.binary("add", node.unary("round", y), one_number(node, first + 1, 0));
  return held_within(node, y, type);
}

OnnxValues qlinear_matmul(const NodeImport& node) {
  const float scale = one_scale(node, 1);
  const Tensor weight_scale = node.constant(4).tensor();
  return {requantized(node, integer_matmul(node, 2, 3, 5), scale, weight_scale, 6)};
}

OnnxValues qlinear_conv(const NodeImport& node) {
  const float scale = one_scale(node, 1);
  const Tensor weight_scale = node.constant(4).tensor();
  OnnxValue sums = integer_conv(node, 2, 3, 5);
  if (node.has_input(8)) {
    require_integers(node, 8);
    // Channels are the last axis here.
    sums = node.binary("add", sums, node.numbers(node.constant(8)));
  }
  return {requantized(node, sums, scale, weight_scale, 6)};
}

// Quantized operators of ONNX Runtime (domain com.microsoft), with its results:
// contrib_ops/cpu/quantization and mlas/lib of github.com/microsoft/onnxruntime say which float32
// operations give the integers.

/// The numbers that the integers of input `first` stand for; the next two are scale and zero point.
OnnxValue numbers_of(const NodeImport& node, std::size_t first) {
  const OnnxValue x = node.value(first);
  FixedQuantizerOptions options;
  options.quantizes = false;
  integers_of(node, first + 2);
  return as_whole(
      node.add<FixedQuantizer>({x}, x.image, options, Tensor({1}, one_scale(node, first + 1)),
                               Tensor({1}, one_number(node, first + 2, 0))),
      false);
}

/// The integers of the result, whose scale is input `first` and its zero point the next one.
OnnxValue integers(const NodeImport& node, const OnnxValue& y, std::size_t first) {
  const OnnxType type = integers_of(node, first + 1);
  const auto [low, high] = range_of(type);
  FixedQuantizerOptions options;
  options.dequantizes = false;
  options.low = static_cast<float>(low);
  options.high = static_cast<float>(high);
  OnnxValue q = node.add<FixedQuantizer>({y}, y.image, options, Tensor({1}, one_scale(node, first)),
                                         Tensor({1}, one_number(node, first + 1, 0)));
  q.integer = true;
  q.type = type;
  return q;
}

/// y, which has the zero point, rounded and held within the type of input `zero`.
OnnxValue held_integers(const NodeImport& node, const OnnxValue& y, std::size_t zero) {
  const OnnxType type = integers_of(node, zero);
  return held_within(node, node.unary("round", y), type);
}

/// Operands (integers, scale, zero point) twice, then scale and zero point of the result.
struct TwoOperands {
  OnnxValue a, b;
  float a_scale, a_zero, b_scale, b_zero, scale, zero;
};
constexpr std::size_t kResultZero = 7;

TwoOperands two_operands(const NodeImport& node) {
  OnnxValues operands{node.input(0), node.input(3)};
  align(node, operands);
  for (const std::size_t zero : {std::size_t{2}, std::size_t{5}, kResultZero})
    integers_of(node, zero);
  return {operands[0],        operands[1],
          one_scale(node, 1), one_number(node, 2, 0),
          one_scale(node, 4), one_number(node, 5, 0),
          one_scale(node, 6), one_number(node, kResultZero, 0)};
}

/// mlas/lib/intrinsics/avx2/qladd_avx2.cpp: two fused multiply-adds of the integers themselves.
OnnxValues qlinear_add(const NodeImport& node) {
  const TwoOperands x = two_operands(node);
  const float a = x.a_scale / x.scale, b = x.b_scale / x.scale;
  const float fixed = x.zero - (a * x.a_zero + b * x.b_zero);
  const bool image = x.a.image || x.b.image;
  const auto fused = [&](const OnnxValue& v, float scale, const OnnxValue& sum) {
    return node.add<MultiplyAdd>({v, node.number(scale), sum}, image);
  };
  return {held_integers(node, fused(x.a, a, fused(x.b, b, node.number(fixed))), kResultZero)};
}

/// mlas/lib/qlmul.cpp: the exact product of integers, times a number, plus the zero point.
OnnxValues qlinear_multiply(const NodeImport& node) {
  const TwoOperands x = two_operands(node);
  const OnnxValue y = node.binary("multiply", node.binary("subtract", x.a, x.a_zero),
                                  node.binary("subtract", x.b, x.b_zero));
  return {held_integers(
      node, node.binary("add", node.binary("multiply", y, x.a_scale * x.b_scale / x.scale), x.zero),
      kResultZero)};
}

/// An operator of one input on the numbers of the integers: inputs x, its scale and zero point,
/// those of the result.
template <const char* kOperator>
OnnxValues around(const NodeImport& node) {
  if (node->integer_or("channels_last", 0) != 0) throw Error("expected channels_last = 0");
  const OnnxValues y = node.as_operator(kOperator, {numbers_of(node, 0)});
  return {integers(node, y.at(0), 3)};
}
constexpr char kAveragePool[] = "AveragePool", kLeakyRelu[] = "LeakyRelu", kSigmoid[] = "Sigmoid";

/// mlas/lib/qlgavgpool.cpp: the sum of integers times one number.
OnnxValues qlinear_global_average_pool(const NodeImport& node) {
  if (node->integer_or("channels_last", 0) != 0) throw Error("expected channels_last = 0");
  OnnxValue x = node.value();
  if (x.rank() < 3) throw Error("expected an input with axes behind its channels");
  x = node.to_image(x);
  Ints axes;
  std::int64_t size = 1;
  for (std::size_t i = 1; i + 1 < x.rank(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    refuse_batch(x, axes.back(), "averages over");
    size *= x.shapes[0][i];
  }
  integers_of(node, 2);
  const float factor = one_scale(node, 1) / (one_scale(node, 3) * static_cast<float>(size));
  const OnnxValue sums =
      node.reduce("reduce_sum", node.binary("subtract", x, one_number(node, 2, 0)), axes);
  const OnnxValue y = node.binary("add", node.unary("round", node.binary("multiply", sums, factor)),
                                  one_number(node, 4, 0));
  return {held_integers(node, y, 4)};
}

/// Scale and zero point of the result, then three inputs for each operand.
OnnxValues qlinear_concat(const NodeImport& node) {
  if (node->inputs.size() < 5 || node->inputs.size() % 3 != 2)
    throw Error("expected three inputs for each operand");
  OnnxValues operands;
  for (std::size_t i = 2; i < node->inputs.size(); i += 3) operands.push_back(numbers_of(node, i));
  return {integers(node, node.as_operator("Concat", operands).at(0), 0)};
}

/// contrib_ops/cpu/quantization/qlinear_softmax.cc: the share of the exponentials' sum times the
/// whole part of the inverse scale.
OnnxValues qlinear_softmax(const NodeImport& node) {
  constexpr std::int64_t kSinceAxis = 13;
  if (node->integer_or("opset", kSinceAxis) < kSinceAxis)
    throw Error("expected opset of at least 13, where softmax runs along one axis");
  const OnnxValue y = node.as_operator("Softmax", {numbers_of(node, 0)}).at(0);
  const float inverse = std::floor(1 / one_scale(node, 3));
  return {held_integers(node,
                        node.binary("add", node.unary("round", node.binary("multiply", y, inverse)),
                                    one_number(node, 4, 0)),
                        4)};
}

/// Inputs: a condition, two operands of three inputs each, scale and zero point of the result.
OnnxValues qlinear_where(const NodeImport& node) {
  const OnnxValues y =
      node.as_operator("Where", {node.input(0), numbers_of(node, 1), numbers_of(node, 4)});
  return {integers(node, y.at(0), 7)};
}

OnnxValue optional_input(const NodeImport& node, std::size_t index) {
  return node.has_input(index) ? node.input(index) : OnnxValue();
}

/// The sums of a product of integers, times both scales, plus the bias.
OnnxValue scaled_product(const NodeImport& node, const OnnxValues& operands,
                         const OnnxValue& a_scale, std::size_t b_scale, std::size_t bias) {
  const OnnxValue sums = node.as_operator("MatMulInteger", operands).at(0);
  const OnnxValue scale =
      node.as_operator("Mul", {as_whole(a_scale, false), node.input(b_scale)}).at(0);
  OnnxValue y = node.as_operator("Mul", {as_whole(sums, false), scale}).at(0);
  if (node.has_input(bias)) y = node.as_operator("Add", {y, node.input(bias)}).at(0);
  return as_whole(y, false);
}

OnnxValues matmul_integer_to_float(const NodeImport& node) {
  return {scaled_product(
      node, {node.input(0), node.input(1), optional_input(node, 4), optional_input(node, 5)},
      node.input(2), 3, 6)};
}

OnnxValues dynamic_quantize_matmul(const NodeImport& node) {
  const OnnxValues a = dynamic_quantize(node);
  return {scaled_product(node, {a[0], node.input(1), a[2], optional_input(node, 3)}, a[1], 2, 4)};
}

/// a, b and c with alpha: integers of a result, or its float32 numbers where it has no scale.
OnnxValues qgemm(const NodeImport& node) {
  if (node->integer_or("transA", 0) != 0 || node->integer_or("transB", 0) != 0)
    throw Error("expected operands that are not transposed");
  const Tensor weight_scale = node.constant(4).tensor();
  const float scale = one_scale(node, 1) * node->number_or("alpha", 1);
  OnnxValue sums = integer_matmul(node, 2, 3, 5);
  if (node.has_input(6)) sums = node.add<Binary>({sums, node.value(6)}, sums.image, "add");
  if (node.has_input(7)) return {requantized(node, sums, scale, weight_scale, 7)};
  const OnnxValue factors = node.numbers(real_numbers({weight_scale.size()}, [&](std::int64_t i) {
    return scale * weight_scale.data[static_cast<std::size_t>(i)];
  }));
  return {as_whole(node.binary("multiply", sums, factors), false)};
}

}  // namespace

const OnnxHandlers& onnx_quantizers_handlers() {
  static const OnnxHandlers kHandlers = {
      {"DequantizeLinear", dequantize},
      {"DynamicQuantizeLinear", dynamic_quantize},
      {"QLinearConv", qlinear_conv},
      {"QLinearMatMul", qlinear_matmul},
      {"QuantizeLinear", quantize},
      {"com.microsoft.DequantizeLinear", dequantize},
      {"com.microsoft.DynamicQuantizeMatMul", dynamic_quantize_matmul},
      {"com.microsoft.MatMulIntegerToFloat", matmul_integer_to_float},
      {"com.microsoft.QGemm", qgemm},
      {"com.microsoft.QLinearAdd", qlinear_add},
      {"com.microsoft.QLinearAveragePool", around<kAveragePool>},
      {"com.microsoft.QLinearConcat", qlinear_concat},
      {"com.microsoft.QLinearGlobalAveragePool", qlinear_global_average_pool},
      {"com.microsoft.QLinearLeakyRelu", around<kLeakyRelu>},
      {"com.microsoft.QLinearMul", qlinear_multiply},
      {"com.microsoft.QLinearSigmoid", around<kSigmoid>},
      {"com.microsoft.QLinearSoftmax", qlinear_softmax},
      {"com.microsoft.QLinearWhere", qlinear_where},
      {"com.microsoft.QuantizeLinear", quantize},
  };
  return kHandlers;
}

}  // namespace numemu::net

// QuantizeLinear and DequantizeLinear: pairs become one quantizer with fixed scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

void require_integers(OnnxImporter& importer, const OnnxNode& node, std::size_t index) {
  const OnnxType type = importer.constant(node, index).type;
  if (!is_integer(type))
    throw Error(fmt::format("expected input {} to be integers, found {}", index, to_string(type)));
}

/// x less the zero point that is input `zero`.
OnnxValue shifted(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x,
                  std::size_t zero) {
  if (!importer.has_input(node, zero)) return x;
  OnnxValue z = importer.input(node, zero);
  if (z.is_constant()) {
    require_integers(importer, node, zero);
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
  require_integers(importer, node, zero);
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
  if (node.op_type == "QuantizeLinear") {
    for (const float scale : q.scales.data)
      if (!(scale > 0) || !std::isfinite(scale))
        throw Error(fmt::format("expected input 1 to be positive scales, found {}", scale));
  }
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

/// A constant input of one number; `otherwise` where it is left out.
float one_number(OnnxImporter& importer, const OnnxNode& node, std::size_t index, float otherwise) {
  if (!importer.has_input(node, index)) return otherwise;
  const Tensor numbers = importer.constant(node, index).tensor();
  if (numbers.size() != 1)
    throw Error(fmt::format("expected input {} to be one number, found {}", index,
                            to_string(numbers.shape)));
  return numbers.data[0];
}

/// Scale of an activation.
float one_scale(OnnxImporter& importer, const OnnxNode& node, std::size_t index) {
  const float scale = one_number(importer, node, index, 0);
  if (!(scale > 0) || !std::isfinite(scale))
    throw Error(fmt::format("expected input {} to be a positive scale, found {}", index, scale));
  return scale;
}

/// The type of integers by their zero point; uint8 without.
OnnxType integers_of(OnnxImporter& importer, const OnnxNode& node, std::size_t zero) {
  const OnnxType type =
      importer.has_input(node, zero) ? importer.constant(node, zero).type : OnnxType::uint8;
  if (type != OnnxType::uint8 && type != OnnxType::int8)
    throw Error("expected integers of 8 bits, found " + to_string(type));
  return type;
}

/// Sums of products of integers, times a number for each channel or for all, rounded halves to
/// even, moved by the zero point and held within its type. Input `first` is the scale of the
/// result, the next one its zero point.
OnnxValue requantized(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& sums,
                      float scale, const Tensor& weight_scale, std::size_t first) {
  const float result = one_scale(importer, node, first);
  if (const auto bad =
          std::ranges::find_if_not(weight_scale.data, [](float w) { return std::isfinite(w); });
      bad != weight_scale.data.end())
    throw Error(fmt::format("expected finite scales of the weight, found {}", *bad));
  OnnxValue factors;
  OnnxConstant numbers{{weight_scale.size()}, false, {}};
  if (weight_scale.size() == 1) numbers.dims.clear();
  for (const float w : weight_scale.data) numbers.elements.push_back({scale * w / result, {}});
  factors.constant = std::make_shared<OnnxConstant>(std::move(numbers));
  const OnnxType type = integers_of(importer, node, first + 1);
  const auto [low, high] = range_of(type);
  const OnnxArithmetic make(importer, node, sums.image);
  OnnxValue y = make.binary("multiply", sums, importer.as_graph(factors, ""));
  y = make.binary("add", make.unary("round", y), one_number(importer, node, first + 1, 0));
  y = make.clip(y, static_cast<float>(low), static_cast<float>(high));
  y.integer = true;
  y.type = type;
  return y;
}

Values qlinear_matmul(OnnxImporter& importer, const OnnxNode& node) {
  const float scale = one_scale(importer, node, 1);
  const Tensor weight_scale = importer.constant(node, 4).tensor();
  return {
      requantized(importer, node, integer_matmul(importer, node, 2, 3, 5), scale, weight_scale, 6)};
}

Values qlinear_conv(OnnxImporter& importer, const OnnxNode& node) {
  const float scale = one_scale(importer, node, 1);
  const Tensor weight_scale = importer.constant(node, 4).tensor();
  OnnxValue sums = integer_conv(importer, node, 2, 3, 5);
  if (importer.has_input(node, 8)) {
    require_integers(importer, node, 8);
    OnnxValue bias;  // channels are the last axis here
    bias.constant = std::make_shared<OnnxConstant>(importer.constant(node, 8));
    sums = OnnxArithmetic(importer, node, true).binary("add", sums, importer.as_graph(bias, ""));
  }
  return {requantized(importer, node, sums, scale, weight_scale, 6)};
}

// Quantized operators of ONNX Runtime (domain com.microsoft), with its results:
// contrib_ops/cpu/quantization and mlas/lib of github.com/microsoft/onnxruntime say which float32
// operations give the integers.

/// The numbers that the integers of input `first` stand for; the next two are scale and zero point.
OnnxValue numbers_of(OnnxImporter& importer, const OnnxNode& node, std::size_t first) {
  const OnnxValue x = importer.value(node, first);
  FixedQuantizerOptions options;
  options.quantizes = false;
  integers_of(importer, node, first + 2);
  OnnxValue y = importer.add<FixedQuantizer>(node, {x}, x.image, options,
                                             Tensor({1}, one_scale(importer, node, first + 1)),
                                             Tensor({1}, one_number(importer, node, first + 2, 0)));
  y.integer = false;
  return y;
}

/// The integers of the result, whose scale is input `first` and its zero point the next one.
OnnxValue integers(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& y,
                   std::size_t first) {
  const OnnxType type = integers_of(importer, node, first + 1);
  const auto [low, high] = range_of(type);
  FixedQuantizerOptions options;
  options.dequantizes = false;
  options.low = static_cast<float>(low);
  options.high = static_cast<float>(high);
  OnnxValue q = importer.add<FixedQuantizer>(node, {y}, y.image, options,
                                             Tensor({1}, one_scale(importer, node, first)),
                                             Tensor({1}, one_number(importer, node, first + 1, 0)));
  q.integer = true;
  q.type = type;
  return q;
}

/// y, which has the zero point, rounded and held within the type of input `zero`.
OnnxValue held_integers(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& y,
                        std::size_t zero) {
  const OnnxType type = integers_of(importer, node, zero);
  const auto [low, high] = range_of(type);
  const OnnxArithmetic make(importer, node, y.image);
  OnnxValue q =
      make.clip(make.unary("round", y), static_cast<float>(low), static_cast<float>(high));
  q.integer = true;
  q.type = type;
  return q;
}

/// Operands (integers, scale, zero point) twice, then scale and zero point of the result.
struct TwoOperands {
  OnnxValue a, b;
  float a_scale, a_zero, b_scale, b_zero, scale, zero;
};
constexpr std::size_t kResultZero = 7;

TwoOperands two_operands(OnnxImporter& importer, const OnnxNode& node) {
  std::vector<OnnxValue> operands{importer.input(node, 0), importer.input(node, 3)};
  align(importer, node, operands);
  for (const std::size_t zero : {std::size_t{2}, std::size_t{5}, kResultZero})
    integers_of(importer, node, zero);
  return {operands[0],
          operands[1],
          one_scale(importer, node, 1),
          one_number(importer, node, 2, 0),
          one_scale(importer, node, 4),
          one_number(importer, node, 5, 0),
          one_scale(importer, node, 6),
          one_number(importer, node, kResultZero, 0)};
}

/// mlas/lib/intrinsics/avx2/qladd_avx2.cpp: two fused multiply-adds of the integers themselves.
Values qlinear_add(OnnxImporter& importer, const OnnxNode& node) {
  const TwoOperands x = two_operands(importer, node);
  const float a = x.a_scale / x.scale, b = x.b_scale / x.scale;
  const float fixed = x.zero - (a * x.a_zero + b * x.b_zero);
  const bool image = x.a.image || x.b.image;
  const auto fused = [&](const OnnxValue& v, float scale, const OnnxValue& sum) {
    return importer.add<MultiplyAdd>(node, {v, importer.number(scale), sum}, image);
  };
  return {held_integers(importer, node, fused(x.a, a, fused(x.b, b, importer.number(fixed))),
                        kResultZero)};
}

/// mlas/lib/qlmul.cpp: the exact product of integers, times a number, plus the zero point.
Values qlinear_multiply(OnnxImporter& importer, const OnnxNode& node) {
  const TwoOperands x = two_operands(importer, node);
  const OnnxArithmetic make(importer, node, x.a.image || x.b.image);
  const OnnxValue y = make.binary("multiply", make.binary("subtract", x.a, x.a_zero),
                                  make.binary("subtract", x.b, x.b_zero));
  return {held_integers(
      importer, node,
      make.binary("add", make.binary("multiply", y, x.a_scale * x.b_scale / x.scale), x.zero),
      kResultZero)};
}

/// An operator of one input on the numbers of the integers: inputs x, its scale and zero point,
/// those of the result.
template <const char* kOperator>
Values around(OnnxImporter& importer, const OnnxNode& node) {
  if (integer_or(node, "channels_last", 0) != 0) throw Error("expected channels_last = 0");
  const Values y = importer.as_operator(node, kOperator, {numbers_of(importer, node, 0)});
  return {integers(importer, node, y.at(0), 3)};
}
constexpr char kAveragePool[] = "AveragePool", kLeakyRelu[] = "LeakyRelu", kSigmoid[] = "Sigmoid";

/// mlas/lib/qlgavgpool.cpp: the sum of integers times one number.
Values qlinear_global_average_pool(OnnxImporter& importer, const OnnxNode& node) {
  if (integer_or(node, "channels_last", 0) != 0) throw Error("expected channels_last = 0");
  OnnxValue x = importer.value(node);
  if (x.rank() < 3) throw Error("expected an input with axes behind its channels");
  x = importer.to_image(x);
  std::vector<std::int64_t> axes;
  std::int64_t size = 1;
  for (std::size_t i = 1; i + 1 < x.rank(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    refuse_batch(x, axes.back(), "averages over");
    size *= x.shapes[0][i];
  }
  integers_of(importer, node, 2);
  const float factor =
      one_scale(importer, node, 1) / (one_scale(importer, node, 3) * static_cast<float>(size));
  const OnnxArithmetic make(importer, node, true);
  const OnnxValue sums =
      make.reduce("reduce_sum", make.binary("subtract", x, one_number(importer, node, 2, 0)), axes);
  const OnnxValue y = make.binary("add", make.unary("round", make.binary("multiply", sums, factor)),
                                  one_number(importer, node, 4, 0));
  return {held_integers(importer, node, y, 4)};
}

/// Scale and zero point of the result, then three inputs for each operand.
Values qlinear_concat(OnnxImporter& importer, const OnnxNode& node) {
  if (node.inputs.size() < 5 || node.inputs.size() % 3 != 2)
    throw Error("expected three inputs for each operand");
  std::vector<OnnxValue> operands;
  for (std::size_t i = 2; i < node.inputs.size(); i += 3)
    operands.push_back(numbers_of(importer, node, i));
  return {integers(importer, node, importer.as_operator(node, "Concat", operands).at(0), 0)};
}

/// contrib_ops/cpu/quantization/qlinear_softmax.cc: the share of the exponentials' sum times the
/// whole part of the inverse scale.
Values qlinear_softmax(OnnxImporter& importer, const OnnxNode& node) {
  constexpr std::int64_t kSinceAxis = 13;
  if (integer_or(node, "opset", kSinceAxis) < kSinceAxis)
    throw Error("expected opset of at least 13, where softmax runs along one axis");
  const OnnxValue y = importer.as_operator(node, "Softmax", {numbers_of(importer, node, 0)}).at(0);
  const OnnxArithmetic make(importer, node, y.image);
  const float inverse = std::floor(1 / one_scale(importer, node, 3));
  return {held_integers(importer, node,
                        make.binary("add", make.unary("round", make.binary("multiply", y, inverse)),
                                    one_number(importer, node, 4, 0)),
                        4)};
}

/// Inputs: a condition, two operands of three inputs each, scale and zero point of the result.
Values qlinear_where(OnnxImporter& importer, const OnnxNode& node) {
  const Values y = importer.as_operator(
      node, "Where",
      {importer.input(node, 0), numbers_of(importer, node, 1), numbers_of(importer, node, 4)});
  return {integers(importer, node, y.at(0), 7)};
}

OnnxValue optional_input(OnnxImporter& importer, const OnnxNode& node, std::size_t index) {
  return importer.has_input(node, index) ? importer.input(node, index) : OnnxValue();
}

/// The sums of a product of integers, times both scales, plus the bias.
OnnxValue scaled_product(OnnxImporter& importer, const OnnxNode& node, const Values& operands,
                         const OnnxValue& a_scale, std::size_t b_scale, std::size_t bias) {
  const OnnxValue sums = importer.as_operator(node, "MatMulInteger", operands).at(0);
  const auto as_float = [](OnnxValue value) {
    value.integer = false;
    return value;
  };
  Values scales{as_float(a_scale), importer.input(node, b_scale)};
  const OnnxValue scale = importer.as_operator(node, "Mul", scales).at(0);
  OnnxValue y = importer.as_operator(node, "Mul", {as_float(sums), scale}).at(0);
  if (importer.has_input(node, bias))
    y = importer.as_operator(node, "Add", {y, importer.input(node, bias)}).at(0);
  return as_float(y);
}

Values matmul_integer_to_float(OnnxImporter& importer, const OnnxNode& node) {
  return {scaled_product(importer, node,
                         {importer.input(node, 0), importer.input(node, 1),
                          optional_input(importer, node, 4), optional_input(importer, node, 5)},
                         importer.input(node, 2), 3, 6)};
}

Values dynamic_quantize_matmul(OnnxImporter& importer, const OnnxNode& node) {
  const Values a = dynamic_quantize(importer, node);
  return {scaled_product(importer, node,
                         {a[0], importer.input(node, 1), a[2], optional_input(importer, node, 3)},
                         a[1], 2, 4)};
}

/// a, b and c with alpha: integers of a result, or its float32 numbers where it has no scale.
Values qgemm(OnnxImporter& importer, const OnnxNode& node) {
  if (integer_or(node, "transA", 0) != 0 || integer_or(node, "transB", 0) != 0)
    throw Error("expected operands that are not transposed");
  const Tensor weight_scale = importer.constant(node, 4).tensor();
  const float scale = one_scale(importer, node, 1) * number_or(node, "alpha", 1);
  OnnxValue sums = integer_matmul(importer, node, 2, 3, 5);
  const OnnxArithmetic make(importer, node, sums.image);
  if (importer.has_input(node, 6)) sums = make.binary("add", sums, importer.value(node, 6));
  if (importer.has_input(node, 7))
    return {requantized(importer, node, sums, scale, weight_scale, 7)};
  Tensor whole(weight_scale.shape);
  for (std::int64_t i = 0; i < whole.size(); ++i)
    whole.data[static_cast<std::size_t>(i)] =
        scale * weight_scale.data[static_cast<std::size_t>(i)];
  OnnxValue factors;
  OnnxConstant numbers{{whole.size()}, false, {}};
  for (const float w : whole.data) numbers.elements.push_back({w, {}});
  factors.constant = std::make_shared<OnnxConstant>(std::move(numbers));
  OnnxValue y = make.binary("multiply", sums, importer.as_graph(factors, ""));
  y.integer = false;
  return {y};
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

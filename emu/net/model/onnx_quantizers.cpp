// QuantizeLinear and DequantizeLinear: pairs become one quantizer with fixed scales.
#include <fmt/format.h>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
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
  if (q.scales.shape.size() > 1 && q.scales.size() != 1)
    throw Error("expected one scale, or a vector of them");
  if (q.scales.size() > 1) q.options.axis = stored_axis(x, integer_or(node, "axis", 1));
}

/// The range of a zero point's type; without one, of `otherwise`.
void read_range(const OnnxImporter& importer, const OnnxNode& node, FixedQuantizerOptions& o) {
  OnnxType type = OnnxType::uint8;
  if (importer.has_input(node, 2)) {
    const OnnxValue& zero = importer.input(node, 2);
    if (!zero.is_constant()) throw Error("expected a constant zero point");
    type = zero.constant->type;
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
  OnnxValue x = importer.as_graph(importer.input(node, 0), "");
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
    return importer.add(importer.node_name(node), std::make_unique<Binary>(kind), {x, b}, false);
  };
  if (importer.has_input(node, 2)) x = binary("subtract", spread(2));
  return binary("multiply", spread(1));
}

Values dequantize(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  OnnxQuantizer q;
  q.options.quantizes = false;
  if (!x.quantizer && integer_or(node, "block_size", 0) != 0) return {blocks(importer, node, x)};
  read_scales(importer, node, x, q);
  if (const std::shared_ptr<const OnnxQuantizer> first = std::exchange(x.quantizer, nullptr)) {
    const bool same = first->scales.data == q.scales.data && first->zeros.data == q.zeros.data &&
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
  OnnxValue y =
      importer.add(importer.node_name(node),
                   std::make_unique<FixedQuantizer>(q.options, q.scales, q.zeros), {x}, x.image);
  y.integer = false;
  return {y};
}

}  // namespace

const OnnxHandlers& onnx_quantizer_handlers() {
  static const OnnxHandlers kHandlers = {
      {"DequantizeLinear", dequantize},
      {"QuantizeLinear", quantize},
  };
  return kHandlers;
}

}  // namespace numemu::net

#include "emu/net/model/onnx/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/memory_plan.hpp"
#include "emu/net/model/onnx/operand_writer.hpp"
#include "emu/net/model/onnx/writer.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/masks.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"

namespace numemu::net {

std::optional<OnnxType> storage_type(const Format& format) {
  if (format.kind == Kind::integer) {
    if (format.bits <= 4) return format.is_signed ? OnnxType::int4 : OnnxType::uint4;
    if (format.bits <= 8) return format.is_signed ? OnnxType::int8 : OnnxType::uint8;
    if (format.bits <= 16) return format.is_signed ? OnnxType::int16 : OnnxType::uint16;
    return std::nullopt;
  }
  constexpr OnnxType kFloats[] = {OnnxType::float8_e4m3fn, OnnxType::float8_e4m3fnuz,
                                  OnnxType::float8_e5m2, OnnxType::float8_e5m2fnuz};
  for (const OnnxType type : kFloats) {
    if (format.name == float8_format(type)) return type;
  }
  if (format.bits > 8 || format.kind == Kind::codebook) return std::nullopt;
  for (const OnnxType type : {OnnxType::float8_e4m3fn, OnnxType::float8_e5m2}) {
    const std::vector<double> all = finite_values(find_format(float8_format(type)));
    const auto holds = [&](double value) { return std::ranges::binary_search(all, value); };
    if (std::ranges::all_of(finite_values(format), holds)) return type;
  }
  return std::nullopt;
}

std::int32_t integer_of(const Format& format, std::uint32_t code) {
  const auto unused = 32 - format.bits;
  return format.is_signed ? static_cast<std::int32_t>(code << unused) >> unused
                          : static_cast<std::int32_t>(code << unused >> unused);
}

std::string stored_codes(const Format& format, OnnxType type,
                         const std::vector<std::uint16_t>& codes) {
  std::string out;
  if (format.kind != Kind::integer) {
    const Format& stored = find_format(float8_format(type));
    // As they are: a conversion would saturate infinity.
    if (format.name == stored.name) return {codes.begin(), codes.end()};
    const float* const table = decode_table(format);
    std::vector<float> values;
    for (const std::uint16_t code : codes) values.push_back(table[code & 255]);
    std::vector<std::uint8_t> bytes(values.size());
    quantize_codes(Conversion{.format = &stored}, values.data(),
                   static_cast<std::int64_t>(values.size()), 1, bytes.data());
    return {bytes.begin(), bytes.end()};
  }
  const bool packed = type == OnnxType::int4 || type == OnnxType::uint4,
             wide = type == OnnxType::int16 || type == OnnxType::uint16;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    // Two's complement, widened.
    const std::int32_t code = integer_of(format, codes[i]);
    if (packed) {
      if (i % 2 == 0) out += '\0';
      out.back() = static_cast<char>(out.back() | static_cast<char>((code & 15) << (i % 2 * 4)));
      continue;
    }
    out += static_cast<char>(code & 255);
    if (wide) out += static_cast<char>(code >> 8 & 255);
  }
  return out;
}

namespace {

using Longs = std::vector<std::int64_t>;

/// A value of the graph in the file: its name, and whether its channels come first there.
struct Value {
  std::string name;
  Shape shape;  ///< of the graph: channels last, one sample
  bool first = false;
  bool whole = false;  ///< int64: rows of tables

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  bool image() const { return rank() >= 3 && rank() <= 5; }
};

/// A list by axis of the graph, in the file's order.
Longs by_axis(const Value& value, Longs list) {
  if (value.first) {
    list.insert(list.begin() + 1, list.back());
    list.pop_back();
  }
  return list;
}

std::int64_t axis_in_file(const Value& value, std::int64_t axis) {
  if (axis < 0) axis += value.rank();
  if (!value.first || axis == 0) return axis;
  return axis == value.rank() - 1 ? 1 : axis + 1;
}

/// [n, k.., c] as [n, c, k..].
Shape channels_first(const Shape& shape) {
  Shape out = shape;
  std::rotate(out.begin() + 1, out.end() - 1, out.end());
  return out;
}

class Exporter {
 public:
  Exporter(const Graph& graph, const OnnxLayers& layers) : graph_(graph), layers_(layers) {}

  std::string run() {
    require_operators();
    const std::vector<bool> rows = read_as_rows();
    std::vector<Shape> samples;
    const bool images = std::ranges::any_of(graph_.nodes, [](const Node& node) {
      return node.op->kind().starts_with("conv") || node.op->kind().ends_with("pool");
    });
    for (const GraphInput& input : graph_.inputs) {
      Shape shape = input.shape;
      shape.insert(shape.begin(), 1);
      samples.push_back(shape);
      const std::string name = input.name.empty() ? "input" : input.name;
      values_.push_back({name, shape, images && shape.size() >= 3 && shape.size() <= 5});
      const Shape stored = values_.back().first ? channels_first(shape) : shape;
      values_.back().whole = rows[samples.size() - 1];
      writer_.input(name, {stored.begin() + 1, stored.end()},
                    values_.back().whole ? OnnxType::int64 : OnnxType::float32);
    }
    shapes_ = value_shapes(graph_, samples);
    for (const Node& node : graph_.nodes) {
      Value value = (this->*handler(*node.op))(node);
      const auto layer = layers_.find(node.name);
      if (layer != layers_.end() && layer->second.result)
        value.name = operands_.activation(*layer->second.result, node.name, node.name + ".result",
                                          value.name);
      values_.push_back(std::move(value));
    }
    const Value last = plain(values_.back());
    writer_.output(last.name, {last.shape.begin() + 1, last.shape.end()});
    return writer_.model(graph_.name, std::max(opset_, operands_.opset()), operands_.domains());
  }

 private:
  using Handler = Value (Exporter::*)(const Node&);

  static Handler handler(const Op& op) {
    struct Row {
      std::string_view kind;
      Handler write;
    };
    /// Beside these, what the tables of elementwise operators have a name of ONNX for.
    static constexpr Row kRows[] = {{"average_pool", &Exporter::pool},
                                    {"batch_norm", &Exporter::batch_norm},
                                    {"causal_mask", &Exporter::causal_mask},
                                    {"conv1d", &Exporter::conv},
                                    {"conv2d", &Exporter::conv},
                                    {"conv3d", &Exporter::conv},
                                    {"embedding", &Exporter::embedding},
                                    {"flatten", &Exporter::flatten},
                                    {"gelu", &Exporter::gelu},
                                    {"global_average_pool", &Exporter::global_pool},
                                    {"layer_norm", &Exporter::layer_norm},
                                    {"linear", &Exporter::linear},
                                    {"matmul", &Exporter::matmul},
                                    {"max_pool", &Exporter::pool},
                                    {"pad", &Exporter::pad},
                                    {"position_embedding", &Exporter::position_embedding},
                                    {"reshape", &Exporter::reshape},
                                    {"slice", &Exporter::slice},
                                    {"softmax", &Exporter::softmax},
                                    {"transpose", &Exporter::transpose}};
    for (const Row& row : kRows) {
      if (row.kind == op.kind()) return row.write;
    }
    if (const auto* pointwise = dynamic_cast<const Pointwise*>(&op))
      return pointwise->rule().onnx.empty() ? nullptr : &Exporter::pointwise;
    if (const auto* binary = dynamic_cast<const Binary*>(&op))
      return binary->rule().onnx.empty() ? nullptr : &Exporter::binary;
    return nullptr;
  }

  void require_operators() const {
    std::map<std::string, std::pair<int, std::string>> missing;
    for (const Node& node : graph_.nodes) {
      if (handler(*node.op) != nullptr) continue;
      auto& [count, first] = missing[std::string(node.op->kind())];
      if (count++ == 0) first = node.name;
    }
    std::string text;
    for (const auto& [kind, found] : missing)
      text += fmt::format("{}{} ({}: '{}'{})", text.empty() ? "" : ", ", kind, found.first,
                          found.second, found.first > 1 ? ", ..." : "");
    if (!text.empty()) throw Error("operators that are not exported: " + text);
  }

  /// Of every value, whether all that read it are tables, or views whose result is such.
  std::vector<bool> read_as_rows() const {
    std::vector<bool> read(graph_.value_count()), rows(graph_.value_count(), true);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      const auto value = static_cast<std::size_t>(graph_.value_of(i));
      const bool table = dynamic_cast<const Embedding*>(node.op.get()) != nullptr,
                 view = passes_whole(*node.op) && read[value] && rows[value];
      for (const int input : node.inputs) {
        const auto at = static_cast<std::size_t>(input);
        read[at] = true;
        rows[at] = rows[at] && (table || view);
      }
    }
    for (std::size_t v = 0; v < rows.size(); ++v) rows[v] = rows[v] && read[v];
    return rows;
  }
  /// Operators whose form in the file takes int64 as it takes float32.
  static bool passes_whole(const Op& op) {
    const std::string_view kind = op.kind();
    return kind == "transpose" || kind == "reshape" || kind == "flatten" || kind == "slice";
  }

  const Value& read(const Node& node, std::size_t i = 0) const {
    return values_[static_cast<std::size_t>(node.inputs[i])];
  }
  /// The node's result, of the graph's shape.
  Value result(const Node& node, bool first) const {
    return {node.name, shapes_[values_.size()], first, passes_whole(*node.op) && read(node).whole};
  }

  Value turned(const Value& value, bool first) {
    if (value.first == first || !value.image()) return value;
    Value out{value.name + (first ? "_nchw" : "_nhwc"), value.shape, first, value.whole};
    if (!turned_.insert({out.name, true}).second) return out;
    Longs order;
    for (std::int64_t i = 0; i < value.rank(); ++i) order.push_back(i);
    if (first) {
      std::rotate(order.begin() + 1, order.end() - 1, order.end());
    } else {
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    }
    writer_.value("Transpose", out.name, {value.name}, {{"perm", order}});
    return out;
  }
  Value plain(const Value& value) { return turned(value, false); }
  Value image(const Value& value) { return turned(value, true); }

  /// The value that a product reads: quantized and back where the layer has a quantizer.
  Value activation(const Node& node, Value x) {
    x.name = operand(node, 0, x.name);
    return x;
  }

  /// That value by name, of the left operand (0) or the right one.
  std::string operand(const Node& node, std::size_t side, const std::string& x) {
    const auto layer = layers_.find(node.name);
    if (layer == layers_.end()) return x;
    const std::optional<OnnxOperand>& how =
        side == 0 ? layer->second.activation : layer->second.second;
    if (!how) return x;
    return operands_.activation(*how, node.name, node.name + (side == 0 ? ".input" : ".second"), x);
  }

  /// The weight's name: an initializer, or what is dequantized.
  std::string weight(const Node& node) {
    const Parameter& parameter = std::as_const(*node.op).parameters()[0];
    const Shape& shape = parameter.value.shape;
    const WeightOrder order =
        shape.size() > 2 ? order_of_conv(shape) : order_of_matrix(shape[0], shape[1]);
    const auto layer = layers_.find(node.name);
    if (layer == layers_.end() || !layer->second.weight)
      return writer_.constant(
          parameter.name, order.dims,
          in_order<float>(order, {parameter.value.data.begin(), parameter.value.data.end()}));
    const OnnxOperand& operand = *layer->second.weight;
    if (operand.blocks) {
      operands_.blocks(operand, node.name, parameter.name, order);
    } else {
      operands_.weight(operand, node.name, parameter.name, order.dims, 0,
                       in_order(order, operand.codes));
    }
    return parameter.name;
  }

  std::string parameter(const Node& node, std::size_t i) {
    const Parameter& p = std::as_const(*node.op).parameters()[i];
    return writer_.constant(p.name, p.value.shape, {p.value.data.begin(), p.value.data.end()});
  }

  /// The node's result by one node of the file; `first`: its channels come first there.
  Value written(std::string_view op, const Node& node, const std::vector<std::string>& inputs,
                const std::vector<OnnxNodeAttribute>& attributes = {}, bool first = false) {
    writer_.value(op, node.name, inputs, attributes);
    return result(node, first);
  }

  Value conv(const Node& node) {
    const ConvOptions& o = dynamic_cast<const Conv&>(*node.op).options();
    Longs kernel, strides, dilations, before, after;
    for (const ConvAxis& axis : o.axes) {
      if (axis.spread != 1 || axis.pad_before < 0 || axis.pad_after < 0)
        throw Error(node.name + ": a transposed convolution is not exported");
      kernel.push_back(axis.kernel);
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation);
      before.push_back(axis.pad_before);
      after.push_back(axis.pad_after);
    }
    before.insert(before.end(), after.begin(), after.end());
    const std::vector<OnnxNodeAttribute> attributes = {{"kernel_shape", kernel},
                                                       {"strides", strides},
                                                       {"dilations", dilations},
                                                       {"pads", before},
                                                       {"group", o.groups}};
    Value x = image(read(node));
    if (write_codes(node, x, attributes)) return result(node, true);
    x = activation(node, x);
    std::vector<std::string> inputs = {x.name, weight(node)};
    if (o.bias) inputs.push_back(parameter(node, 1));
    return written("Conv", node, inputs, attributes, true);
  }

  /// Whether the product is one of codes, which is then written.
  bool write_codes(const Node& node, const Value& x,
                   const std::vector<OnnxNodeAttribute>& attributes = {}) {
    const auto layer = layers_.find(node.name);
    if (layer == layers_.end() || !layer->second.weight) return false;
    const auto parameters = std::as_const(*node.op).parameters();
    const Shape& shape = parameters[0].value.shape;
    OnnxProduct product;
    if (in_integers(layer->second)) {
      product = operands_.integers(layer->second, node.name, x.name, x.rank(), false, shape);
      product.attributes = attributes;
    } else if (in_n_bits(*layer->second.weight, shape)) {
      product = operands_.n_bits(*layer->second.weight, parameters[0].name, shape);
      product.inputs.insert(product.inputs.begin(), activation(node, x).name);
    } else {
      return false;
    }
    product.write(writer_, parameters.size() > 1 ? parameter(node, 1) : "", node.name);
    return true;
  }

  Value linear(const Node& node) {
    Value x = plain(read(node));
    if (write_codes(node, x)) return result(node, false);
    x = activation(node, x);
    const bool bias = std::as_const(*node.op).parameters().size() > 1;
    const std::string w = weight(node);
    if (x.rank() == 2) {
      std::vector<std::string> inputs = {x.name, w};
      if (bias) inputs.push_back(parameter(node, 1));
      return written("Gemm", node, inputs, {{"transB", std::int64_t{1}}});
    }
    const std::string turned =
        writer_.value("Transpose", w + "_transposed", {w}, {{"perm", Longs{1, 0}}});
    const std::string product = node.name + ".product";
    writer_.node("MatMul", node.name, {x.name, turned}, bias ? product : node.name);
    if (bias) writer_.node("Add", product, {product, parameter(node, 1)}, node.name);
    return result(node, false);
  }

  Value batch_norm(const Node& node) {
    const Value x = image(read(node));
    const auto& op = dynamic_cast<const BatchNorm&>(*node.op);
    std::vector<std::string> inputs = {x.name};
    for (std::size_t i = 0; i < 4; ++i) inputs.push_back(parameter(node, i));
    return written("BatchNormalization", node, inputs,
                   {{"epsilon", static_cast<float>(op.options().epsilon)},
                    {"momentum", static_cast<float>(1 - op.options().momentum)}},
                   x.first);
  }

  Value pointwise(const Node& node) {
    const auto& op = dynamic_cast<const Pointwise&>(*node.op);
    std::vector<std::string> inputs = {read(node).name};
    std::vector<OnnxNodeAttribute> attributes;
    for (std::size_t i = 0; i < op.rule().parameters.size(); ++i) {
      const PointwiseParameter& p = op.rule().parameters[i];
      if (p.onnx == nullptr) continue;
      if (op.rule().onnx != "Clip") {
        attributes.push_back({p.onnx, op.numbers()[i]});
        continue;
      }
      inputs.push_back(writer_.constant(node.name + "." + p.name, op.numbers()[i]));
    }
    return written(op.rule().onnx, node, inputs, attributes, read(node).first);
  }

  Value binary(const Node& node) {
    Value a = read(node), b = read(node, 1);
    const bool first = (a.first || b.first) && a.rank() == b.rank();
    a = turned(a, first);
    b = turned(b, first);
    return written(dynamic_cast<const Binary&>(*node.op).rule().onnx, node, {a.name, b.name}, {},
                   first);
  }

  Value pool(const Node& node) {
    const Value x = image(read(node));
    const bool average = node.op->kind() == "average_pool";
    const PoolOptions& o = average ? dynamic_cast<const AveragePool&>(*node.op).options()
                                   : dynamic_cast<const MaxPool&>(*node.op).options();
    Longs kernel = {o.kernel_depth, o.kernel_height, o.kernel_width},
          strides = {o.stride_depth, o.stride_height, o.stride_width},
          before = {o.pad_front, o.pad_top, o.pad_left},
          after = {o.pad_back, o.pad_bottom, o.pad_right};
    for (Longs* list : {&kernel, &strides, &before, &after})
      list->erase(list->begin(), list->end() - (x.rank() - 2));
    before.insert(before.end(), after.begin(), after.end());
    std::vector<OnnxNodeAttribute> attributes = {{"kernel_shape", kernel},
                                                 {"strides", strides},
                                                 {"pads", before},
                                                 {"ceil_mode", std::int64_t{o.ceil_mode}}};
    if (average) attributes.push_back({"count_include_pad", std::int64_t{o.count_include_pad}});
    return written(average ? "AveragePool" : "MaxPool", node, {x.name}, attributes, true);
  }

  Value global_pool(const Node& node) {
    return written("GlobalAveragePool", node, {image(read(node)).name}, {}, true);
  }

  Value flatten(const Node& node) {
    Value x = read(node);
    const bool points = x.first && element_count(x.shape) == x.shape.back();
    if (!points) x = plain(x);
    return written("Flatten", node, {x.name}, {{"axis", std::int64_t{1}}});
  }

  Value slice(const Node& node) {
    const Value& x = read(node);
    Longs starts, ends, axes, steps;
    for (const SliceRange& range : dynamic_cast<const Slice&>(*node.op).ranges()) {
      starts.push_back(range.start);
      ends.push_back(range.end);
      axes.push_back(axis_in_file(x, range.axis));
      steps.push_back(range.step);
    }
    std::vector<std::string> inputs = {x.name};
    for (const auto& [name, list] :
         {std::pair(".starts", &starts), {".ends", &ends}, {".axes", &axes}, {".steps", &steps}}) {
      inputs.push_back(writer_.constant(node.name + name, *list));
    }
    return written("Slice", node, inputs, {}, x.first);
  }

  Value pad(const Node& node) {
    const Value& x = read(node);
    const auto& op = dynamic_cast<const Pad&>(*node.op);
    Longs pads = by_axis(x, op.before());
    const Longs after = by_axis(x, op.after());
    pads.insert(pads.end(), after.begin(), after.end());
    return written("Pad", node,
                   {x.name, writer_.constant(node.name + ".pads", pads),
                    writer_.constant(node.name + ".value", op.value())},
                   {}, x.first);
  }

  Value transpose(const Node& node) {
    return written("Transpose", node, {plain(read(node)).name},
                   {{"perm", dynamic_cast<const Transpose&>(*node.op).permutation()}});
  }

  Value reshape(const Node& node) {
    const Shape& target = dynamic_cast<const Reshape&>(*node.op).target();
    return written("Reshape", node,
                   {plain(read(node)).name, writer_.constant(node.name + ".shape", target)});
  }

  /// Gather of the table by the input, behind a Cast unless that is int64.
  Value embedding(const Node& node) {
    const Value x = plain(read(node));
    std::string rows = x.name;
    if (!x.whole)
      rows = writer_.value("Cast", node.name + ".rows", {x.name},
                           {{"to", static_cast<std::int64_t>(OnnxType::int64)}});
    return written("Gather", node, {parameter(node, 0), rows}, {{"axis", std::int64_t{0}}});
  }

  Value position_embedding(const Node& node) {
    return written("Add", node, {plain(read(node)).name, parameter(node, 0)});
  }

  Value layer_norm(const Node& node) {
    constexpr std::int64_t kOpset = 17;
    const Value x = plain(read(node));
    const double epsilon = dynamic_cast<const LayerNorm&>(*node.op).epsilon();
    opset_ = std::max(opset_, kOpset);
    return written("LayerNormalization", node, {x.name, parameter(node, 0), parameter(node, 1)},
                   {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(epsilon)}});
  }

  Value gelu(const Node& node) {
    constexpr std::int64_t kOpset = 20;
    opset_ = std::max(opset_, kOpset);
    return written("Gelu", node, {plain(read(node)).name});
  }

  /// [b, t, heads d] as [b, heads, t, d], or with `turned` as [b, heads, d, t].
  std::string split(const std::string& name, const Value& x, std::int64_t heads, bool turned) {
    const std::string shape =
        writer_.constant(name + ".shape", Longs{0, 0, heads, x.shape.back() / heads});
    return writer_.value("Transpose", name,
                         {writer_.value("Reshape", name + ".parts", {x.name, shape})},
                         {{"perm", turned ? Longs{0, 2, 3, 1} : Longs{0, 2, 1, 3}}});
  }

  Value matmul(const Node& node) {
    const MatMulOptions& o = dynamic_cast<const MatMul&>(*node.op).options();
    const bool scores = o.heads > 0 && o.transpose_b, gathers = o.heads > 0 && !o.transpose_b;
    const Value left = plain(read(node, 0)), right = plain(read(node, 1));
    std::string a = left.name, b = right.name;
    if (scores) a = split(node.name + ".a", left, o.heads, false);
    if (o.heads > 0) {
      b = split(node.name + ".b", right, o.heads, scores);
    } else if (o.transpose_b) {
      Longs order;
      for (std::int64_t i = 0; i < right.rank(); ++i) order.push_back(i);
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      b = writer_.value("Transpose", node.name + ".b", {right.name}, {{"perm", order}});
    }
    a = operand(node, 0, a);
    b = operand(node, 1, b);
    const bool factor = o.alpha != 1;
    std::string last =
        writer_.value("MatMul", gathers || factor ? node.name + ".product" : node.name, {a, b});
    if (gathers) {
      last =
          writer_.value("Transpose", node.name + ".turned", {last}, {{"perm", Longs{0, 2, 1, 3}}});
      last = writer_.value(
          "Reshape", factor ? node.name + ".merged" : node.name,
          {last, writer_.constant(node.name + ".shape", Longs{0, 0, right.shape.back()})});
    }
    if (factor)
      writer_.value("Mul", node.name, {last, writer_.constant(node.name + ".alpha", o.alpha)});
    return result(node, false);
  }

  /// Add of a constant of 0 and -inf.
  Value causal_mask(const Node& node) {
    const Value x = plain(read(node));
    const std::int64_t length = x.shape.back();
    std::vector<float> mask(static_cast<std::size_t>(length * length));
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t j = i + 1; j < length; ++j)
        mask[static_cast<std::size_t>(i * length + j)] = -std::numeric_limits<float>::infinity();
    }
    return written("Add", node,
                   {x.name, writer_.constant(node.name + ".mask", {length, length}, mask)});
  }

  Value softmax(const Node& node) {
    return written("Softmax", node, {plain(read(node)).name},
                   {{"axis", dynamic_cast<const Softmax&>(*node.op).axis()}});
  }

  const Graph& graph_;
  const OnnxLayers& layers_;
  OnnxWriter writer_;
  OperandWriter operands_{writer_};
  std::vector<Value> values_;
  std::vector<Shape> shapes_;
  std::map<std::string, bool> turned_;
  std::int64_t opset_ = 13;
};

}  // namespace

std::string export_onnx(const Graph& graph, const OnnxLayers& layers) {
  return Exporter(graph, layers).run();
}

}  // namespace numemu::net

// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/model/onnx/quantized_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "emu/net/memory_plan.hpp"
#include "emu/net/model/onnx/constant.hpp"
#include "emu/net/model/onnx/operand_writer.hpp"
#include "emu/net/model/onnx/operator_sets.hpp"
#include "emu/net/model/onnx/wire.hpp"
#include "emu/net/ops/conv.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Fields of ModelProto and GraphProto.
constexpr std::uint32_t kIrVersionField = 1, kGraphField = 7, kOpsetField = 8;
constexpr std::uint32_t kNodeField = 1, kInitializerField = 5;

/// Where the elements of a layer's weight lie in the file's tensor.
struct WeightOrder {
  Shape dims;             ///< of the file
  std::int64_t axis = 0;  ///< of the output channels; -1: no axis has them all
  /// The element of the graph's weight that is element i of the file's.
  std::function<std::int64_t(std::int64_t i)> from;
};

/// Of a matrix [out, in] that the file has as [in, out].
WeightOrder turned(std::int64_t out, std::int64_t in) {
  return {{in, out}, 1, [out, in](std::int64_t i) { return i % out * in + i / out; }};
}

/// Of the weight [out, k.., in / groups] of a convolution, which the file has as [out, in / groups,
/// k..].
WeightOrder of_conv(const Shape& shape) {
  Shape dims = shape;
  std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  const std::int64_t in = shape.back(), taps = element_count(shape) / (shape.front() * in);
  return {std::move(dims), 0, [in, taps](std::int64_t i) {
            const std::int64_t o = i / (in * taps), c = i / taps % in, t = i % taps;
            return (o * taps + t) * in + c;
          }};
}

/// Of a transposed one, which the file has as [in, out / groups, k..] with its taps in the opposite
/// order.
WeightOrder of_conv_transpose(const Shape& shape, std::int64_t groups) {
  const std::int64_t in = shape.back(), taps = element_count(shape) / (shape.front() * in),
                     out = shape.front() / groups;
  Shape dims = {in * groups, out};
  dims.insert(dims.end(), shape.begin() + 1, shape.end() - 1);
  return {std::move(dims), groups == 1 ? 1 : -1, [in, taps, out](std::int64_t i) {
            const std::int64_t row = i / (out * taps), o = i / taps % out, t = i % taps;
            const std::int64_t group = row / in, c = row % in;
            return ((group * out + o) * taps + taps - 1 - t) * in + c;
          }};
}

template <class T>
std::vector<T> in_order(const WeightOrder& order, const std::vector<T>& values) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = values[static_cast<std::size_t>(order.from(static_cast<std::int64_t>(i)))];
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::vector<float> elements(const Parameter& parameter) {
  return {parameter.value.data.begin(), parameter.value.data.end()};
}

class QuantizedFile {
 public:
  QuantizedFile(const ImportedFile& file, const Graph& graph, const OnnxLayers& layers)
      : file_(file.model), imported_(file.imported), graph_(graph), layers_(layers) {
    for (const OnnxTensor& tensor : file_.graph.initializers) {
      initializers_[tensor.name] = &tensor;
      names_.emplace(tensor.name);
    }
    for (const OnnxValueInfo& info : file_.graph.inputs) names_.emplace(info.name);
    for (const OnnxNode& node : file_.graph.nodes) {
      changes_.push_back(
          {{node.inputs.begin(), node.inputs.end()}, {node.outputs.begin(), node.outputs.end()}});
      names_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  std::string run() {
    std::map<std::string_view, const Node*> now;
    for (const Node& node : graph_.nodes) now[node.name] = &node;
    std::map<int, std::vector<std::size_t>> made;  // nodes of the graph by the file's node
    for (std::size_t i = 0; i < imported_.graph.nodes.size(); ++i) {
      const auto found = now.find(imported_.graph.nodes[i].name);
      nodes_.push_back(found == now.end() ? nullptr : found->second);
      if (nodes_.back() == nullptr) {
        remove(i);
      } else {
        made[imported_.sources[i]].push_back(i);
      }
    }
    require_layers(made);
    for (std::size_t i = 0; i < file_.graph.nodes.size(); ++i) {
      for (const std::size_t node : made[static_cast<int>(i)]) write_layer(i, *nodes_[node]);
      for (const std::size_t node : made[static_cast<int>(i)]) write_parameters(i, node);
      pieces_.push_back(std::exchange(writer_, OnnxWriter()));
    }
    return model();
  }

 private:
  /// What becomes of a node of the file.
  struct Change {
    std::vector<std::string> inputs, outputs;
    std::set<std::string, std::less<>> dropped = {};  ///< attributes
    std::set<std::size_t> written = {};               ///< inputs that hold a parameter of this file
    bool removed = false;
    OnnxWriter after = {};  ///< what follows the node
  };

  /// A batch normalisation that was folded into the product before it, whose result takes its name.
  void remove(std::size_t made) {
    const Node& norm = imported_.graph.nodes[made];
    const int at = imported_.sources[made],
              before = norm.inputs.at(0) - static_cast<int>(imported_.graph.inputs.size()),
              from = before < 0 ? -1 : imported_.sources[static_cast<std::size_t>(before)];
    const bool known = norm.op->kind() == "batch_norm" && at >= 0 && from >= 0;
    Change* const product = known ? &changes_[static_cast<std::size_t>(from)] : nullptr;
    if (!known || product->outputs.size() != 1 ||
        product->outputs[0] != file_.graph.nodes[static_cast<std::size_t>(at)].inputs[0])
      throw Error(
          fmt::format("{}: expected the network that this file was imported to, found none "
                      "of its node '{}'",
                      file_.path, norm.name));
    product->outputs = {changes_[static_cast<std::size_t>(at)].outputs.at(0)};
    changes_[static_cast<std::size_t>(at)].removed = true;
  }

  /// Every layer is a node of the graph that the file's graph has.
  void require_layers(const std::map<int, std::vector<std::size_t>>& made) const {
    std::set<std::string_view> known;
    for (const auto& [source, nodes] : made) {
      for (const std::size_t node : nodes)
        if (source >= 0) known.insert(nodes_[node]->name);
    }
    for (const auto& [name, layer] : layers_) {
      const bool quantized = layer.weight || layer.activation || layer.second;
      if (quantized && !known.contains(name))
        throw Error(name +
                    ": quantized operands within a recurrent operator or a branch cannot be "
                    "exported; leave the layer in float32 (docs/recipes.md, layers)");
    }
  }

  [[noreturn]] void refuse(std::size_t at, const std::string& layer, const char* what) const {
    throw Error(
        fmt::format("{}: {} of {} cannot be exported", layer, what, file_.graph.nodes[at].op_type));
  }

  /// A name that no value has, for it and what begins with it.
  std::string free_name(std::string wanted) {
    const auto taken = [&](const std::string& name) {
      const auto next = names_.lower_bound(name);
      return next != names_.end() && next->starts_with(name);
    };
    while (taken(wanted)) wanted += '_';
    names_.insert(wanted);
    return wanted;
  }

  /// The input of the file's node that has the weight of its layer, and in which order. Nothing
  /// where the node is none of those whose weights the file can have as codes.
  std::optional<std::pair<std::size_t, WeightOrder>> weight_of(const OnnxNode& node, const Op& op) {
    if (std::as_const(op).parameters().empty()) return std::nullopt;
    const Shape& shape = std::as_const(op).parameters()[0].value.shape;
    const auto* const conv = dynamic_cast<const Conv*>(&op);
    if (node.op_type == "Conv" && conv != nullptr) return std::pair(1, of_conv(shape));
    if (node.op_type == "ConvTranspose" && conv != nullptr)
      return std::pair(1, of_conv_transpose(shape, conv->options().groups));
    if (op.kind() != "linear" || shape.size() != 2) return std::nullopt;
    const WeightOrder as_it_is{shape, 0, [](std::int64_t i) { return i; }};
    if (node.op_type == "Gemm")
      return std::pair(1,
                       integer_or(node, "transB", 0) != 0 ? as_it_is : turned(shape[0], shape[1]));
    if (node.op_type != "MatMul") return std::nullopt;
    const bool left = initializers_.contains(node.inputs[0]);
    return std::pair<std::size_t, WeightOrder>(left ? 0 : 1,
                                               left ? as_it_is : turned(shape[0], shape[1]));
  }

  void quantize_input(std::size_t at, std::size_t input, const OnnxOperand& how,
                      const std::string& layer, const char* suffix) {
    std::string& x = changes_[at].inputs[input];
    x = operands_.activation(how, layer, free_name(layer + suffix), x);
  }

  void write_layer(std::size_t at, const Node& made) {
    const auto found = layers_.find(made.name);
    if (found == layers_.end()) return;
    const OnnxLayer& layer = found->second;
    const OnnxNode& node = file_.graph.nodes[at];
    if (!layer.weight && !layer.activation && !layer.second) return;
    const bool product = node.op_type == "Conv" || node.op_type == "ConvTranspose" ||
                         node.op_type == "Gemm" || node.op_type == "MatMul" ||
                         (node.op_type == "Einsum" && node.inputs.size() == 2);
    if (!product || !node.domain.empty()) refuse(at, made.name, "a quantized operand");
    const auto weight = weight_of(node, *made.op);
    const bool has_weight = !std::as_const(*made.op).parameters().empty();
    if (layer.weight) {
      if (!weight) refuse(at, made.name, "a quantized weight");
      write_weight(at, weight->first, weight->second, *layer.weight, made.name);
    }
    const std::size_t left = weight && weight->first == 0 ? 1 : 0;
    if (layer.activation) {
      // Which operand of an Einsum is constant decides which one is the layer's input.
      const bool swapped = node.op_type == "Einsum" && initializers_.contains(node.inputs[0]);
      quantize_input(at, swapped ? 1 : left, *layer.activation, made.name, ".input");
    }
    if (layer.second && !has_weight) quantize_input(at, 1, *layer.second, made.name, ".second");
  }

  /// alpha and beta are in the numbers of the graph.
  void drop_factor(std::size_t at, std::size_t input) {
    if (file_.graph.nodes[at].op_type == "Gemm")
      changes_[at].dropped.insert(input == 1 ? "alpha" : "beta");
  }

  void write_weight(std::size_t at, std::size_t input, const WeightOrder& order,
                    const OnnxOperand& how, const std::string& layer) {
    const std::string name = free_name(layer + ".weight");
    const std::vector<std::uint16_t> codes = in_order(order, how.codes);
    if (how.scales.size() > 1 && order.axis < 0) {
      // No axis of the file has the channels of all groups: their scales are a factor of its own.
      OnnxOperand whole = how;
      whole.scales = {1};
      operands_.weight(whole, layer, name + "_whole", order.dims, 0, codes);
      const std::int64_t channels = std::ssize(how.scales), each = std::ssize(codes) / channels;
      Shape dims(order.dims.size(), 1);
      dims[0] = order.dims[0], dims[1] = order.dims[1];
      const std::int64_t taps = std::ssize(codes) / (dims[0] * dims[1]);
      std::vector<float> scales;
      for (std::int64_t i = 0; i < std::ssize(codes); i += taps)
        scales.push_back(how.scales[static_cast<std::size_t>(order.from(i) / each)]);
      writer_.constant(name + "_scales", dims, scales);
      writer_.node("Mul", name, {name + "_whole", name + "_scales"}, name);
    } else {
      operands_.weight(how, layer, name, order.dims, order.axis, codes);
    }
    changes_[at].inputs[input] = name;
    changes_[at].written.insert(input);
    drop_factor(at, input);
  }

  void write_constant(std::size_t at, std::size_t input, const std::string& name, const Shape& dims,
                      const std::vector<float>& values) {
    changes_[at].inputs[input] = free_name(name);
    writer_.constant(changes_[at].inputs[input], dims, values);
    changes_[at].written.insert(input);
    drop_factor(at, input);
  }

  /// The parameters of a node of the graph that are no longer the file's.
  void write_parameters(std::size_t at, std::size_t made) {
    const Op& op = *nodes_[made]->op;
    const auto now = std::as_const(op).parameters();
    const auto before = std::as_const(*imported_.graph.nodes[made].op).parameters();
    const OnnxNode& node = file_.graph.nodes[at];
    const auto weight = weight_of(node, op);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::vector<float> values = elements(now[i]);
      if (i >= before.size()) {
        write_bias(at, now[i].name, values);
        continue;
      }
      const std::vector<float> own = elements(before[i]);
      const bool is_weight = i == 0 && weight.has_value();
      if (is_weight && changes_[at].written.contains(weight->first)) continue;
      const bool absent = std::ranges::any_of(node.inputs, [&](std::string_view name) {
        const auto found = initializers_.find(name);
        return found != initializers_.end() && found->second->absent &&
               found->second->elements == now[i].value.size();
      });
      if (same_bits(values, own) && !absent) continue;
      if (is_weight) {
        write_constant(at, weight->first, now[i].name, weight->second.dims,
                       in_order(weight->second, values));
      } else {
        const auto [input, dims] = input_of(at, now[i], own, absent);
        write_constant(at, input, now[i].name, dims, values);
      }
    }
  }

  /// Of a product that has none in the file: folding gave it.
  void write_bias(std::size_t at, const std::string& name, const std::vector<float>& values) {
    const OnnxNode& node = file_.graph.nodes[at];
    Change& change = changes_[at];
    const Shape dims{std::ssize(values)};
    if (node.op_type != "MatMul") {
      change.inputs.resize(3);
      return write_constant(at, 2, name, dims, values);
    }
    const std::string sum = change.outputs[0], bias = free_name(name);
    change.outputs[0] = free_name(sum + ".product");
    change.after.constant(bias, dims, values);
    change.after.node("Add", bias + "_added", {change.outputs[0], bias}, sum);
  }

  /// The input whose initializer holds these numbers in this order, and its shape.
  std::pair<std::size_t, Shape> input_of(std::size_t at, const Parameter& parameter,
                                         const std::vector<float>& own, bool absent) {
    const OnnxNode& node = file_.graph.nodes[at];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto found = initializers_.find(node.inputs[i]);
      if (found == initializers_.end() || changes_[at].written.contains(i)) continue;
      const OnnxTensor& tensor = *found->second;
      if (tensor.elements != std::ssize(own) || is_integer(tensor.type)) continue;
      if (tensor.absent ? absent : same_bits(to_floats(tensor), own)) {
        return {i, tensor.dims};
      }
    }
    throw Error(fmt::format(
        "{}: this parameter was changed, and no initializer of node '{}' ({}) holds it: export to "
        ".safetensors",
        parameter.name, node.name, node.op_type));
  }

  /// Nodes that are still read, directly or through others, among those that were.
  std::vector<bool> live(bool changed) const {
    std::set<std::string_view> read;
    for (const OnnxValueInfo& info : file_.graph.outputs) read.insert(info.name);
    std::vector<bool> out(changes_.size());
    for (std::size_t i = changes_.size(); i-- > 0;) {
      const OnnxNode& node = file_.graph.nodes[i];
      const auto is_read = [&](std::string_view name) { return read.contains(name); };
      out[i] = std::ranges::any_of(node.outputs, is_read) ||
               (changed && std::ranges::any_of(changes_[i].outputs, is_read)) ||
               (changed && !changes_[i].after.body().empty());
      if (!out[i] || (changed && changes_[i].removed)) continue;
      if (changed) {
        read.insert(changes_[i].inputs.begin(), changes_[i].inputs.end());
        // What quantizers of the operands read is what the file's node read.
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
          if (!changes_[i].written.contains(k)) read.insert(node.inputs[k]);
      } else {
        read.insert(node.inputs.begin(), node.inputs.end());
      }
      // Values that a subgraph reads by name: everything stays.
      for (const OnnxAttribute& each : node.attributes)
        if (each.type == OnnxAttributeType::graph) return std::vector<bool>(changes_.size(), true);
    }
    return out;
  }

  std::string model() {
    const std::vector<bool> before = live(false), after = live(true);
    const std::int64_t opset = std::max(file_.opset, operands_.opset());
    const std::string_view whole(reinterpret_cast<const char*>(file_.bytes.data()),
                                 static_cast<std::size_t>(file_.bytes.size()));
    std::string out;
    WireReader fields(file_.path, whole);
    bool versioned = false;
    for (WireField field; fields.next(field);) {
      if (field.number == kIrVersionField) {
        const auto least = static_cast<std::int64_t>(OnnxWriter::ir_version(opset));
        put_number(out, kIrVersionField,
                   static_cast<std::uint64_t>(std::max(file_.ir_version, least)));
      } else if (field.number == kOpsetField && opset != file_.opset) {
        write_opset(out, fields.message(field, "an opset"), field, opset);
      } else if (field.number == kGraphField) {
        put_bytes(out, kGraphField,
                  graph(fields.message(field, "the graph"), before, after, opset));
      } else {
        put_field(out, field);
      }
      versioned = versioned || field.number == kIrVersionField;
    }
    if (!versioned) put_number(out, kIrVersionField, OnnxWriter::ir_version(opset));
    return out;
  }

  static void write_opset(std::string& out, WireReader message, const WireField& whole,
                          std::int64_t opset) {
    std::string domain;
    for (WireField field; message.next(field);)
      if (field.number == 1) domain = message.text(field, "the domain of an opset");
    if (!domain.empty() && domain != "ai.onnx") return put_field(out, whole);
    std::string set;
    put_bytes(set, 1, domain);
    put_number(set, 2, static_cast<std::uint64_t>(opset));
    put_bytes(out, kOpsetField, set);
  }

  std::string graph(WireReader parts, const std::vector<bool>& before,
                    const std::vector<bool>& after, std::int64_t opset) {
    OnnxWriter nodes;
    std::string others, initializers;
    std::size_t at = 0, tensor = 0;
    std::set<std::string, std::less<>> read;
    for (const OnnxValueInfo& info : file_.graph.outputs) read.emplace(info.name);
    std::vector<std::pair<WireField, const OnnxTensor*>> tensors;
    for (WireField part; parts.next(part);) {
      if (part.number == kNodeField) {
        const std::size_t i = at++;
        if (changes_[i].removed || (before[i] && !after[i])) continue;
        const OnnxNode& node = file_.graph.nodes[i];
        read.insert(changes_[i].inputs.begin(), changes_[i].inputs.end());
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
          if (!changes_[i].written.contains(k)) read.emplace(node.inputs[k]);
        nodes.append(pieces_[i]);
        if (opset == file_.opset && std::ranges::equal(changes_[i].inputs, node.inputs) &&
            std::ranges::equal(changes_[i].outputs, node.outputs) && changes_[i].dropped.empty()) {
          nodes.node(part.bytes);
        } else {
          raise_node(
              {node, parts.message(part, "a node"), changes_[i].inputs, changes_[i].outputs,
               changes_[i].dropped, rank_of(i)},
              file_.opset, opset, [this](std::string name) { return free_name(name); }, nodes);
        }
        nodes.append(changes_[i].after);
      } else if (part.number == kInitializerField) {
        tensors.emplace_back(part, &file_.graph.initializers[tensor++]);
      } else {
        put_field(others, part);
      }
    }
    // Subgraphs read by name.
    const bool all = std::ranges::any_of(file_.graph.nodes, [](const OnnxNode& node) {
      return std::ranges::any_of(node.attributes, [](const OnnxAttribute& each) {
        return each.type == OnnxAttributeType::graph;
      });
    });
    for (const auto& [part, info] : tensors) {
      if (!all && !read.contains(info->name)) continue;
      if (info->absent)
        throw Error(fmt::format("{}: weight '{}' is neither in the file nor a parameter",
                                file_.path, info->name));
      if (info->external.file.empty()) {
        put_field(initializers, part);
      } else {
        OnnxWriter inlined;
        inlined.constant(info->name, info->type, info->dims, info->data);
        initializers += inlined.body();
      }
    }
    return nodes.body() + initializers + others;
  }

  /// Axes of the result of the one node of the graph that the file's node became; 0: there are
  /// several, or none.
  std::size_t rank_of(std::size_t at) {
    if (ranks_.empty()) {
      std::vector<Shape> samples;
      for (const GraphInput& input : imported_.graph.inputs) {
        samples.push_back(input.shape);
        samples.back().insert(samples.back().begin(), 1);
      }
      const std::vector<Shape> shapes = value_shapes(imported_.graph, samples);
      ranks_.resize(changes_.size());
      std::vector<int> count(changes_.size());
      for (std::size_t i = 0; i < imported_.sources.size(); ++i) {
        const int source = imported_.sources[i];
        if (source < 0) continue;
        ++count[static_cast<std::size_t>(source)];
        ranks_[static_cast<std::size_t>(source)] =
            shapes[static_cast<std::size_t>(imported_.graph.value_of(i))].size();
      }
      for (std::size_t i = 0; i < count.size(); ++i)
        if (count[i] != 1) ranks_[i] = 0;
    }
    return ranks_[at];
  }

  const OnnxModel& file_;
  const ImportedModel& imported_;
  const Graph& graph_;
  const OnnxLayers& layers_;
  std::map<std::string_view, const OnnxTensor*> initializers_;
  std::set<std::string, std::less<>> names_;
  std::vector<Change> changes_;     ///< by node of the file
  std::vector<OnnxWriter> pieces_;  ///< what goes before each node
  OnnxWriter writer_;
  OperandWriter operands_{writer_};
  std::vector<const Node*> nodes_;  ///< of the graph, by the imported ones; null: folded
  std::vector<std::size_t> ranks_;
};

}  // namespace

std::string quantized_file(const ImportedFile& file, const Graph& graph, const OnnxLayers& layers) {
  return QuantizedFile(file, graph, layers).run();
}

}  // namespace numemu::net

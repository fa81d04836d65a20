#include "emu/net/model/onnx/quantized_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/onnx/constant.hpp"
#include "emu/net/model/onnx/operand_writer.hpp"
#include "emu/net/model/onnx/operator_sets.hpp"
#include "emu/net/model/onnx/weight_order.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::vector<float> elements(const Parameter& parameter) {
  return {parameter.value.data.begin(), parameter.value.data.end()};
}

bool has_subgraph(const OnnxNode& node) {
  return std::ranges::any_of(node.attributes, [](const OnnxAttribute& each) {
    return each.type == OnnxAttributeType::graph;
  });
}

/// Nodes that multiply codes.
bool is_quantized(const OnnxNode& node) {
  return node.op_type.starts_with("QLinear") || node.op_type.ends_with("Integer") ||
         node.op_type == "MatMulNBits";
}

bool has_operands(const OnnxLayer& layer) {
  return layer.weight || layer.activation || layer.second;
}

class QuantizedFile {
 public:
  QuantizedFile(const ImportedFile& file, const Graph& graph, const OnnxLayers& layers)
      : file_(file.model), imported_(file.imported), graph_(graph), layers_(layers) {
    for (const OnnxTensor& tensor : file_.graph.initializers) {
      initializers_[tensor.name] = &tensor;
      names_.emplace(tensor.name);
    }
    for (const OnnxValueInfo& info : file_.graph.inputs) {
      names_.emplace(info.name);
      if (!initializers_.contains(info.name)) live_.insert(info.name);
    }
    for (const OnnxNode& node : file_.graph.nodes) {
      const bool reads_live =
          std::ranges::any_of(node.inputs, [&](std::string_view x) { return live_.contains(x); });
      // What a subgraph reads by name may be anything.
      if (reads_live || has_subgraph(node)) live_.insert(node.outputs.begin(), node.outputs.end());
      changes_.push_back({&node,
                          {node.inputs.begin(), node.inputs.end()},
                          {node.outputs.begin(), node.outputs.end()}});
      names_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  std::string run() {
    for (const std::vector<std::string>& names : tied_groups(graph_))
      tied_.insert(names.begin(), names.end());
    std::map<std::string_view, const Node*> now;
    for (const Node& node : graph_.nodes) now[node.name] = &node;
    for (std::size_t i = 0; i < imported_.graph.nodes.size(); ++i) {
      const auto found = now.find(imported_.graph.nodes[i].name);
      nodes_.push_back(found == now.end() ? nullptr : found->second);
      if (nodes_.back() == nullptr) {
        remove(i);
      } else if (Change* const change = change_of(i)) {
        change->made.push_back(i);
      }
    }
    require_layers();
    for (Change& change : changes_) {
      const auto write_those = [&](bool constants) {
        for (const std::size_t node : change.made)
          if ((nodes_[node]->op->kind() == "constant") == constants) write_parameters(change, node);
      };
      write_those(true);  // quantizers read them
      for (const std::size_t node : change.made) write_layer(change, node);
      write_result(change);
      write_recurrent(change);
      write_those(false);
      change.before = std::exchange(writer_, OnnxWriter());
    }
    return model();
  }

 private:
  /// The operator set whose quantizers have an axis, and the first with those and Clip as written.
  static constexpr std::int64_t kAxes = 13, kQuantizers = 11;

  bool keeps_set() const {
    return file_.opset >= kQuantizers && file_.opset < kAxes &&
           std::ranges::any_of(file_.graph.nodes, has_subgraph);
  }

  /// What becomes of a node of the file.
  struct Change {
    const OnnxNode* node = nullptr;
    std::vector<std::string> inputs, outputs;
    std::vector<std::size_t> made = {};  ///< of the imported graph, those that are left
    std::set<std::string, std::less<>> dropped = {};  ///< attributes
    std::set<std::size_t> written = {};               ///< inputs that hold a parameter of this file
    bool removed = false;
    OnnxWriter before = {};                 ///< what goes before the node
    OnnxWriter after = {};                  ///< what follows it
    OnnxWriter rounded = {};                ///< and what then rounds its result
    std::optional<OnnxProduct> codes = {};  ///< stands in place of the node
  };

  /// Of the file's node that a node of the imported graph was made for; null where there is none.
  Change* change_of(std::size_t made) {
    const int source = imported_.sources[made];
    return source < 0 ? nullptr : &changes_[static_cast<std::size_t>(source)];
  }

  /// A batch normalisation that was folded into the product before it, whose result takes its name.
  void remove(std::size_t made) {
    const Node& norm = imported_.graph.nodes[made];
    const int before = norm.inputs.at(0) - static_cast<int>(imported_.graph.inputs.size());
    Change* const own = change_of(made);
    Change* const product = before < 0 ? nullptr : change_of(static_cast<std::size_t>(before));
    if (norm.op->kind() != "batch_norm" || own == nullptr || product == nullptr ||
        product->outputs.size() != 1 || product->outputs[0] != own->node->inputs[0])
      throw Error(
          fmt::format("{}: expected the network that this file was imported to, found none "
                      "of its node '{}'",
                      file_.path, norm.name));
    product->outputs = {own->outputs.at(0)};
    own->removed = true;
  }

  /// Every layer is a node of the graph that the file's graph has.
  void require_layers() const {
    std::set<std::string> known;
    for (const Change& change : changes_)
      for (const std::size_t node : change.made)
        for (const OpProduct& product : nodes_[node]->op->products())
          known.insert(nodes_[node]->name + product.suffix);
    for (const auto& [name, layer] : layers_) {
      if (has_operands(layer) && !known.contains(name))
        throw Error(name +
                    ": quantized operands within a branch cannot be exported; leave the layer in "
                    "float32 (docs/recipes.md, layers)");
    }
  }

  [[noreturn]] void refuse(const Change& change, const std::string& layer, const char* what) const {
    throw Error(fmt::format("{}: {} of {} cannot be exported", layer, what, change.node->op_type));
  }

  /// nullptr for other values.
  const OnnxTensor* initializer(std::string_view name) const {
    const auto found = initializers_.find(name);
    return found == initializers_.end() ? nullptr : found->second;
  }

  /// Whether an initializer lacks its data, and has as many elements as that (0: any number).
  bool is_absent(std::string_view name, std::int64_t elements = 0) const {
    const OnnxTensor* const tensor = initializer(name);
    return tensor != nullptr && tensor->absent && (elements == 0 || tensor->elements == elements);
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

  /// The number of the file's operand that the layer has on its left.
  std::size_t left_of(const Node& product) const {
    return imported_.swapped.contains(product.name) ? 1 : 0;
  }

  /// The input of the file's node that has the weight of its layer, and in which order. Nothing
  /// where the node is none of those whose weights the file can have as codes.
  std::optional<WeightInput> weight_of(const OnnxNode& node, const Node& made) const {
    const std::size_t constant = 1 - left_of(made);
    const OnnxTensor* const tensor =
        constant < node.inputs.size() ? initializer(node.inputs[constant]) : nullptr;
    return weight_input(node, *made.op, constant, tensor == nullptr ? Shape() : tensor->dims);
  }

  /// Whether an operator of that kind belongs to the file's node beside its product.
  bool has_beside(const Change& change, std::string_view kind) const {
    return std::ranges::any_of(
        change.made, [&](std::size_t i) { return imported_.graph.nodes[i].op->kind() == kind; });
  }

  void quantize_input(Change& change, std::size_t input, const OnnxOperand& how,
                      const std::string& layer, const char* suffix) {
    const OnnxNode& node = *change.node;
    const bool whole = one_scale_for_all(change, input, how, layer);
    // The graph has the samples first in recurrent layers.
    const std::size_t samples = is_recurrent(node) && node.integer_or("layout", 0) == 0 ? 1 : 0;
    std::string& x = change.inputs[input];
    x = operands_.activation(how, layer, free_name(layer + suffix), x, whole, samples);
  }

  static bool is_recurrent(const OnnxNode& node) {
    return node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN";
  }

  /// Whether no axis of the operand is that of samples. Refuses one that is not the first, but for
  /// recurrent layers.
  bool one_scale_for_all(const Change& change, std::size_t input, const OnnxOperand& how,
                         const std::string& layer) const {
    const bool whole = imported_.inputs.at(0).batch_axis == kNoBatch ||
                       !live_.contains(std::string_view(change.inputs[input]));
    if (how.scale_of == OnnxScaleOf::sample && !whole && !is_recurrent(*change.node) &&
        layers_across_samples(imported_.graph).contains(layer))
      refuse(change, layer,
             "an operand with a scale for each sample, whose axis is not the first,");
    return whole;
  }

  void write_layer(Change& change, std::size_t index) {
    const Node& made = *nodes_[index];
    const OnnxLayer* const found = layer_of(made.name);
    const OnnxNode& node = *change.node;
    if (found == nullptr || !has_operands(*found) || is_quantized(node)) return;
    const OnnxLayer& layer = *found;
    const bool product = node.op_type == "Conv" || node.op_type == "ConvTranspose" ||
                         node.op_type == "Gemm" || node.op_type == "MatMul" ||
                         (node.op_type == "Einsum" && node.inputs.size() == 2);
    // A sum before the product is what the layer quantizes.
    if (!product || !node.domain.empty() || has_beside(change, "reduce_sum"))
      refuse(change, made.name, "a quantized operand");
    const auto weight = weight_of(node, made);
    const bool has_weight = !std::as_const(*made.op).parameters().empty();
    const std::size_t left = left_of(made);
    if (layer.weight && !weight) refuse(change, made.name, "a quantized weight");
    const bool rows = layer.activation && layer.activation->scale_of == OnnxScaleOf::row,
               turned = node.op_type == "Gemm" && node.integer_or("transA", 0) != 0;
    // Rows of the layer are rows of the file's left matrix alone.
    if (rows && (left != 0 || turned || (node.op_type != "Gemm" && node.op_type != "MatMul")))
      refuse(change, made.name, "an operand with a scale for each row");
    if (layer.weight && left == 0 && weight->input == 1 && write_codes(change, index, layer))
      return;
    if (layer.weight) write_weight(change, *weight, *layer.weight, made.name);
    if (layer.activation) quantize_input(change, left, *layer.activation, made.name, ".input");
    if (layer.second && !has_weight)
      quantize_input(change, 1 - left, *layer.second, made.name, ".second");
  }

  /// Quantizes the result of the file's node and back, where the one of its nodes that is rounded
  /// gives it.
  void write_result(Change& change) {
    const OnnxLayer* rounded = nullptr;
    for (const std::size_t index : change.made) {
      const Node& node = *nodes_[index];
      const OnnxLayer* const own = layer_of(node.name);
      if (rounded != nullptr && node.op->result() != ResultKind::view)
        refuse(change, nodes_[change.made[0]]->name, "a rounded result within the node");
      if (own != nullptr && own->result) rounded = own;
    }
    if (rounded == nullptr) return;
    if (change.outputs.size() != 1)
      refuse(change, nodes_[change.made[0]]->name, "a rounded result of several");
    const std::string result = change.outputs[0], own = free_name(result + ".rounded");
    change.outputs[0] = free_name(result + ".float32");
    OnnxWriter before = std::exchange(writer_, OnnxWriter());
    operands_.activation(*rounded->result, nodes_[change.made[0]]->name, own, change.outputs[0]);
    writer_.node("Identity", own + "_result", {own}, result);
    change.rounded = std::exchange(writer_, std::move(before));
  }

  /// Whether an operator of codes has the product, whose weight is the file's right operand: it
  /// then stands in place of the node.
  bool write_codes(Change& change, std::size_t index, const OnnxLayer& layer) {
    const Node& made = *nodes_[index];
    const OnnxNode& node = *change.node;
    const bool conv = node.op_type == "Conv", gemm = node.op_type == "Gemm";
    // alpha is in the numbers of the graph, beta only where its bias is written.
    if (!(conv || gemm || node.op_type == "MatMul") || has_beside(change, "multiply") ||
        (gemm && (node.integer_or("transA", 0) != 0 || node.number_or("beta", 1) != 1)) ||
        node.text_or("auto_pad", "NOTSET") != "NOTSET")
      return false;
    const Shape& shape = std::as_const(*made.op).parameters()[0].value.shape;
    const std::size_t rank = shape_of(index).size();
    if (shape.size() != (conv ? rank : 2) || rank < 2) return false;
    const std::string x = change.inputs[0];
    if (in_integers(layer)) {
      const bool whole = one_scale_for_all(change, 0, *layer.activation, made.name);
      change.codes = operands_.integers(layer, free_name(made.name + ".codes"), x,
                                        static_cast<std::int64_t>(rank), whole, shape);
    } else if (!conv && in_n_bits(*layer.weight, shape)) {
      if (layer.activation) quantize_input(change, 0, *layer.activation, made.name, ".input");
      change.codes = operands_.n_bits(*layer.weight, free_name(made.name + ".weight"), shape);
      change.codes->inputs.insert(change.codes->inputs.begin(), change.inputs[0]);
    } else {
      return false;
    }
    for (const OnnxAttribute& each : node.attributes) {
      if (conv && each.name == "group") change.codes->attributes.push_back({"group", each.integer});
      if (conv && each.type == OnnxAttributeType::integers)
        change.codes->attributes.push_back({std::string(each.name), each.integers});
    }
    change.inputs[1] = change.codes->inputs[1];
    change.written.insert(1);
    return true;
  }

  /// alpha and beta are in the numbers of the graph.
  void drop_factor(Change& change, std::size_t input) {
    // Where the importer multiplies by them, they are not.
    if (change.node->op_type == "Gemm" && !has_beside(change, "multiply"))
      change.dropped.insert(input == 1 ? "alpha" : "beta");
  }

  void write_weight(Change& change, const WeightInput& weight, const OnnxOperand& how,
                    const std::string& layer) {
    change.inputs[weight.input] = written_codes(weight.order, how, layer);
    change.written.insert(weight.input);
    drop_factor(change, weight.input);
  }

  /// The name of a value: codes in the order of the file, times their scales.
  std::string written_codes(const WeightOrder& order, const OnnxOperand& how,
                            const std::string& layer) {
    const std::string name = free_name(layer + ".weight");
    if (how.blocks) {
      operands_.blocks(how, layer, name, order);
      return name;
    }
    const std::vector<std::uint16_t> codes = in_order(order, how.codes);
    const std::int64_t channels = std::ssize(how.scales), axis = order.axis(channels);
    OnnxOperand there = how;
    if (channels == 1 || (axis >= 0 && operands_.opset() >= kAxes)) {
      if (channels > 1) there.scales = order.scales(how.scales);
      operands_.weight(there, layer, name, order.dims, axis, codes);
      return name;
    }
    // No axis of the file has all channels, or none is known there: their scales are a factor.
    there.scales = {1};
    operands_.weight(there, layer, name + "_whole", order.dims, 0, codes);
    writer_.constant(name + "_scales", order.scale_dims, order.scales(how.scales));
    writer_.value("Mul", name, {name + "_whole", name + "_scales"});
    return name;
  }

  /// How a product of the graph's node is quantized; null where it is not.
  const OnnxLayer* layer_of(const std::string& name) const {
    const auto found = layers_.find(name);
    return found == layers_.end() ? nullptr : &found->second;
  }

  /// The weights, biases and the input of a recurrent node, whose directions are nodes of the
  /// graph.
  void write_recurrent(Change& change) {
    std::vector<std::size_t> cells;
    for (const std::size_t node : change.made)
      if (dynamic_cast<const Recurrent*>(nodes_[node]->op.get()) != nullptr) cells.push_back(node);
    if (cells.empty()) return;
    bool changed = std::ranges::any_of(change.node->inputs,
                                       [&](std::string_view name) { return is_absent(name); });
    for (const std::size_t cell : cells) {
      const auto now = std::as_const(*nodes_[cell]->op).parameters(),
                 before = std::as_const(*imported_.graph.nodes[cell].op).parameters();
      for (std::size_t i = 0; i < now.size(); ++i)
        changed = changed || !same_bits(elements(now[i]), elements(before[i]));
    }
    write_matrix(change, cells, 1, &RecurrentBlocks::input, changed);
    write_matrix(change, cells, 2, &RecurrentBlocks::recurrent, changed);
    const std::string& first = nodes_[cells[0]]->name;
    if (changed) {
      std::vector<float> bias;
      for (const std::size_t cell : cells) {
        const std::vector<float> more = recurrent_bias(*nodes_[cell]->op);
        bias.insert(bias.end(), more.begin(), more.end());
      }
      std::vector<std::string>& inputs = change.inputs;
      inputs.resize(std::max<std::size_t>(inputs.size(), 4));
      const std::int64_t directions = std::ssize(cells);
      write_constant(change, 3, first + ".bias", {directions, std::ssize(bias) / directions}, bias);
    }
    const OnnxLayer* const input = layer_of(first + ".input");
    for (const std::size_t cell : cells) {
      const OnnxLayer* const other = layer_of(nodes_[cell]->name + ".input");
      const bool one = input != nullptr && input->activation,
                 two = other != nullptr && other->activation;
      if (one != two || (one && !same_scale(*input->activation, *other->activation)))
        refuse(change, nodes_[cell]->name, "an input quantized in one direction otherwise");
    }
    if (input != nullptr && input->activation)
      quantize_input(change, 0, *input->activation, first, ".input");
  }

  static bool same_scale(const OnnxOperand& a, const OnnxOperand& b) {
    return a.format == b.format && a.scales == b.scales && a.zero_point == b.zero_point;
  }

  /// W or R, [directions, rows, columns], where an operand of it is quantized or numbers changed.
  void write_matrix(Change& change, const std::vector<std::size_t>& cells, std::size_t input,
                    std::vector<RecurrentBlock> RecurrentBlocks::*which, bool changed) {
    const auto layer = [&](std::size_t cell, const RecurrentBlock& block) {
      return layer_of(nodes_[cell]->name + block.product);
    };
    std::vector<std::vector<RecurrentBlock>> blocks;
    bool written = changed;
    for (const std::size_t cell : cells) {
      blocks.push_back(recurrent_blocks(*nodes_[cell]->op).*which);
      for (const RecurrentBlock& block : blocks.back())
        written = written || (layer(cell, block) != nullptr && layer(cell, block)->weight);
    }
    if (!written) return;
    std::vector<std::string> directions;
    for (std::size_t d = 0; d < cells.size(); ++d) {
      std::vector<std::string> parts;
      for (const RecurrentBlock& block : blocks[d]) {
        const std::string name = nodes_[cells[d]]->name + block.product;
        const OnnxLayer* const how = layer(cells[d], block);
        if (how != nullptr && how->weight) {
          parts.push_back(written_codes(block.order, *how->weight, name));
          continue;
        }
        parts.push_back(free_name(name + ".weight"));
        const Op& op = *nodes_[cells[d]]->op;
        writer_.constant(
            parts.back(), block.order.dims,
            in_order(block.order, elements(std::as_const(op).parameters()[block.parameter])));
      }
      directions.push_back(joined(parts, 1));
    }
    change.inputs[input] = joined(directions, 0);
    change.written.insert(input);
  }

  std::string joined(const std::vector<std::string>& parts, std::int64_t axis) {
    if (parts.size() == 1) return parts[0];
    const std::string name = free_name(parts[0] + ".joined");
    writer_.node("Concat", name, parts, name, {{"axis", axis}});
    return name;
  }

  void write_constant(Change& change, std::size_t input, const std::string& name, const Shape& dims,
                      const std::vector<float>& values) {
    change.inputs[input] = free_name(name);
    writer_.constant(change.inputs[input], dims, values);
    change.written.insert(input);
    drop_factor(change, input);
  }

  /// write_constant() of a parameter: once for all that are one with it in the same order.
  void write_parameter(Change& change, std::size_t input, const Parameter& parameter,
                       const Shape& dims, const std::vector<float>& values) {
    const auto key = std::pair(std::string(trained_for(parameter)), dims);
    const auto known = shared_.find(key);
    if (known != shared_.end() && same_bits(known->second.values, values)) {
      change.inputs[input] = known->second.name;
      change.written.insert(input);
      return drop_factor(change, input);
    }
    write_constant(change, input, parameter.name, dims, values);
    if (tied_.contains(parameter.name)) shared_[key] = {change.inputs[input], values};
  }

  /// The parameters of a node of the graph that are no longer the file's.
  void write_parameters(Change& change, std::size_t made) {
    const Op& op = *nodes_[made]->op;
    if (dynamic_cast<const Recurrent*>(&op) != nullptr) return;
    const auto now = std::as_const(op).parameters();
    const auto before = std::as_const(*imported_.graph.nodes[made].op).parameters();
    const OnnxNode& node = *change.node;
    const auto weight = weight_of(node, *nodes_[made]);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::vector<float> values = elements(now[i]);
      if (i >= before.size()) {
        write_bias(change, now[i].name, values);
        continue;
      }
      const std::vector<float> own = elements(before[i]);
      const bool is_weight = i == 0 && weight.has_value();
      if (is_weight && change.written.contains(weight->input)) continue;
      const bool absent = std::ranges::any_of(
          node.inputs, [&](std::string_view name) { return is_absent(name, now[i].value.size()); });
      if (same_bits(values, own) && !absent) continue;
      if (is_weight) {
        write_parameter(change, weight->input, now[i], weight->order.dims,
                        in_order(weight->order, values));
      } else {
        const auto [input, dims] = input_of(change, now[i], own, absent);
        write_parameter(change, input, now[i], dims, values);
        if (op.kind() == "constant") write_readers(change, input, made);
      }
    }
  }

  /// The initializer that a name is, through nodes that repeat it.
  std::string_view original(std::string_view name) const {
    for (std::size_t i = file_.graph.nodes.size(); i-- > 0;) {
      const OnnxNode& node = file_.graph.nodes[i];
      if (node.op_type == "Identity" && !node.outputs.empty() && node.outputs[0] == name)
        name = node.inputs.at(0);
    }
    return name;
  }

  /// A constant that several nodes read has one new initializer, that input of the changed node.
  void write_readers(Change& change, std::size_t input, std::size_t made) {
    const Graph& graph = imported_.graph;
    const std::string_view own = original(change.node->inputs[input]);
    for (std::size_t i = made; i < graph.nodes.size(); ++i) {
      Change* const reader = change_of(i);
      if (reader == nullptr || reader == &change ||
          std::ranges::find(graph.nodes[i].inputs, graph.value_of(made)) ==
              graph.nodes[i].inputs.end())
        continue;
      for (std::size_t k = 0; k < reader->node->inputs.size(); ++k) {
        if (original(reader->node->inputs[k]) != own) continue;
        reader->inputs[k] = change.inputs[input];
        reader->written.insert(k);
      }
    }
  }

  /// Of a product that has none in the file: folding gave it.
  void write_bias(Change& change, const std::string& name, const std::vector<float>& values) {
    const OnnxNode& node = *change.node;
    const Shape dims{std::ssize(values)};
    if (node.op_type != "MatMul") {
      change.inputs.resize(3);
      return write_constant(change, 2, name, dims, values);
    }
    const std::string sum = change.outputs[0], bias = free_name(name);
    change.outputs[0] = free_name(sum + ".product");
    change.after.constant(bias, dims, values);
    change.after.node("Add", bias + "_added", {change.outputs[0], bias}, sum);
  }

  /// The input whose initializer holds these numbers in this order, and its shape.
  std::pair<std::size_t, Shape> input_of(Change& change, const Parameter& parameter,
                                         const std::vector<float>& own, bool absent) {
    const OnnxNode& node = *change.node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const OnnxTensor* const tensor = initializer(node.inputs[i]);
      if (tensor == nullptr || change.written.contains(i) || tensor->elements != std::ssize(own) ||
          is_integer(tensor->type))
        continue;
      if (tensor->absent ? absent : same_bits(to_floats(*tensor), own)) return {i, tensor->dims};
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
      const Change& change = changes_[i];
      const OnnxNode& node = *change.node;
      const auto is_read = [&](std::string_view name) { return read.contains(name); };
      out[i] = std::ranges::any_of(node.outputs, is_read) ||
               (changed && (std::ranges::any_of(change.outputs, is_read) ||
                            !change.after.body().empty() || !change.rounded.body().empty()));
      if (!out[i] || (changed && change.removed)) continue;
      if (changed) read.insert(change.inputs.begin(), change.inputs.end());
      // What quantizers of the operands read is what the file's node read.
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (!changed || !change.written.contains(k)) read.insert(node.inputs[k]);
      // Values that a subgraph reads by name: everything stays.
      if (has_subgraph(node)) return std::vector<bool>(changes_.size(), true);
    }
    return out;
  }

  std::string model() {
    const std::vector<bool> before = live(false), after = live(true);
    const std::int64_t opset = std::max(file_.opset, operands_.opset());
    const auto least = static_cast<std::int64_t>(OnnxWriter::ir_version(opset));
    const auto version = static_cast<std::uint64_t>(std::max(file_.ir_version, least));
    std::string out;
    WireReader fields(file_.path, file_.text());
    bool versioned = false;
    std::set<std::string> domains = operands_.domains();
    for (WireField field; fields.next(field);) {
      if (field.number == model_field::kIrVersion) {
        put_number(out, field.number, version);
      } else if (field.number == model_field::kOpset) {
        write_opset(out, fields.message(field, "an opset"), field, opset, domains);
      } else if (field.number == model_field::kGraph) {
        put_bytes(out, model_field::kGraph,
                  graph(fields.message(field, "the graph"), before, after, opset));
      } else {
        put_field(out, field);
      }
      versioned = versioned || field.number == model_field::kIrVersion;
    }
    if (!versioned) put_number(out, model_field::kIrVersion, version);
    for (const std::string& domain : domains)
      put_bytes(out, model_field::kOpset, OnnxWriter::operator_set(domain, 1));
    return out;
  }

  /// `domains` are those that the file needs and had not before.
  void write_opset(std::string& out, WireReader message, const WireField& whole, std::int64_t opset,
                   std::set<std::string>& domains) const {
    std::string domain;
    for (WireField field; message.next(field);)
      if (field.number == opset_field::kDomain)
        domain = message.text(field, "the domain of an opset");
    domains.erase(domain);
    if (opset == file_.opset || (!domain.empty() && domain != "ai.onnx"))
      return put_field(out, whole);
    put_bytes(out, model_field::kOpset, OnnxWriter::operator_set(domain, opset));
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
      if (part.number == graph_field::kNode) {
        const std::size_t i = at++;
        Change& change = changes_[i];
        if (change.removed || (before[i] && !after[i])) continue;
        const OnnxNode& node = *change.node;
        read.insert(change.inputs.begin(), change.inputs.end());
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
          if (!change.written.contains(k)) read.emplace(node.inputs[k]);
        nodes.append(change.before);
        if (change.codes) {
          const std::vector<std::string>& now = change.inputs;
          change.codes->write(nodes, now.size() > 2 ? now[2] : "", change.outputs[0]);
        } else if (opset == file_.opset && std::ranges::equal(change.inputs, node.inputs) &&
                   std::ranges::equal(change.outputs, node.outputs) && change.dropped.empty()) {
          nodes.node(part.bytes);
        } else {
          raise_node(
              {file_, node, parts.message(part, "a node"), change.inputs, change.outputs,
               change.dropped, rank_of(change)},
              file_.opset, opset, [this](std::string name) { return free_name(name); }, nodes);
        }
        nodes.append(change.after);
        nodes.append(change.rounded);
      } else if (part.number == graph_field::kInitializer) {
        tensors.emplace_back(part, &file_.graph.initializers[tensor++]);
      } else {
        put_field(others, part);
      }
    }
    // Subgraphs read by name.
    const bool all = std::ranges::any_of(file_.graph.nodes, has_subgraph);
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

  /// Of every value of the imported graph, one sample.
  const std::vector<Shape>& shapes() {
    if (shapes_.empty()) {
      std::vector<Shape> samples;
      for (const GraphInput& input : imported_.graph.inputs) {
        samples.push_back(input.shape);
        samples.back().insert(samples.back().begin(), 1);
      }
      shapes_ = value_shapes(imported_.graph, samples);
    }
    return shapes_;
  }
  /// Of the result of a node of the imported graph.
  const Shape& shape_of(std::size_t made) {
    return shapes()[static_cast<std::size_t>(imported_.graph.value_of(made))];
  }

  /// Axes of the result of the one node of the graph that the file's node became; 0: there are
  /// several, or none.
  std::size_t rank_of(const Change& change) {
    return change.made.size() == 1 ? shape_of(change.made[0]).size() : 0;
  }

  const OnnxModel& file_;
  const ImportedModel& imported_;
  const Graph& graph_;
  const OnnxLayers& layers_;
  std::map<std::string_view, const OnnxTensor*> initializers_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string_view> live_;  ///< values of the file that depend on its inputs
  std::vector<Change> changes_;      ///< by node of the file
  OnnxWriter writer_;
  /// Nodes with subgraphs are not raised.
  OperandWriter operands_{writer_, keeps_set() ? file_.opset : kAxes};
  std::vector<const Node*> nodes_;  ///< of the graph, by the imported ones; null: folded
  std::vector<Shape> shapes_;
  struct Written {
    std::string name;
    std::vector<float> values;
  };
  std::set<std::string, std::less<>> tied_;  ///< parameters that are one with others
  std::map<std::pair<std::string, Shape>, Written> shared_;
};

/// The bytes of a model in which every node has a name of its own, as ONNX Runtime expects.
std::string with_own_names(const std::string& path, const std::string& model) {
  std::set<std::string, std::less<>> names;
  const auto write = [&](const WireField& field, std::string& node) {
    std::string name(field.bytes);
    while (!name.empty() && !names.insert(name).second) name += "_";
    put_bytes(node, field.number, name);
  };
  const WireReader reader(path, model);
  return with_graph_fields(
      reader, graph_field::kNode, [&](const WireField& field, std::string& graph) {
        put_bytes(graph, field.number,
                  with_fields(reader.message(field, "a node"), node_field::kName, write));
      });
}

}  // namespace

std::vector<std::string> quantized_already(const ImportedFile& file, const OnnxLayers& layers) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < file.imported.sources.size(); ++i) {
    const int source = file.imported.sources[i];
    const auto found = layers.find(file.imported.graph.nodes[i].name);
    if (source >= 0 && found != layers.end() &&
        is_quantized(file.model.graph.nodes[static_cast<std::size_t>(source)]))
      out.push_back(found->first);
  }
  return out;
}

std::vector<std::string> states_in_float32(const Graph& graph, const OnnxLayers& layers) {
  std::vector<std::string> out;
  for (const Node& node : graph.nodes) {
    if (dynamic_cast<const Recurrent*>(node.op.get()) == nullptr) continue;
    for (const OpProduct& product : node.op->products()) {
      const auto found = layers.find(node.name + product.suffix);
      const bool input = std::string_view(product.suffix) == ".input";
      if (!input && found != layers.end() && found->second.activation) out.push_back(found->first);
    }
  }
  return out;
}

std::string quantized_file(const ImportedFile& file, const Graph& graph, const OnnxLayers& layers) {
  const std::string model = QuantizedFile(file, graph, layers).run();
  std::set<std::string_view> names;
  const bool twice = std::ranges::any_of(file.model.graph.nodes, [&](const OnnxNode& node) {
    return !node.name.empty() && !names.insert(node.name).second;
  });
  return twice ? with_own_names(file.model.path, model) : model;
}

}  // namespace numemu::net

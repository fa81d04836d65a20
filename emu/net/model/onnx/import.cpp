// The importer: inputs, nodes in file order, outputs.
#include "emu/net/model/onnx/import.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "emu/net/memory.hpp"
#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/views.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/joined.hpp"

namespace numemu::net {

#define NUMEMU_ONNX_OPERATORS(stem) const OnnxHandlers& onnx_##stem##_handlers();
#include "emu/net/model/onnx/operators/table.inc"
#undef NUMEMU_ONNX_OPERATORS

namespace {

/// Bytes that constants may take for one of the file, and in any case. A loader may take 64;
/// initializers of bytes take 24 as they are held and 8 while they are read.
constexpr std::int64_t kBytesPerByte = 16, kBytes = std::int64_t{8} << 20;
/// Elements that may be folded in all: a bound of time.
constexpr std::int64_t kFoldedPerByte = 16, kFolded = std::int64_t{1} << 23;

/// Whole numbers up to here, and results up to here, are exact in the operators of the graph.
constexpr float kExact = 0x1p24f;

#define NUMEMU_ONNX_OPERATORS(stem) onnx_##stem##_handlers,
constexpr const OnnxHandlers& (*kTables[])() = {
#include "emu/net/model/onnx/operators/table.inc"
};
#undef NUMEMU_ONNX_OPERATORS

/// Of an operator of ONNX's own domain by its name, of another one by "DOMAIN.NAME".
const OnnxHandler* find_handler(std::string_view domain, std::string_view own) {
  const std::string op = domain.empty() ? std::string(own) : fmt::format("{}.{}", domain, own);
  for (const auto& table : kTables) {
    for (const auto& [name, handler] : table()) {
      if (name == op) return &handler;
    }
  }
  return nullptr;
}

/// Real initializers of at least so many elements stay in the file until an operator holds them.
constexpr std::int64_t kStoredElements = 4096;

/// Of the file and of weights whose data a checkpoint has.
std::int64_t bytes_of(const OnnxModel& model) {
  std::int64_t bytes = model.size();
  for (const OnnxTensor& tensor : model.graph.initializers) {
    if (tensor.absent) bytes += tensor.elements * static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

/// Of the elements as they are held.
std::int64_t bytes_of(const OnnxConstant& constant) {
  return static_cast<std::int64_t>(constant.elements.size() * sizeof(Folded));
}

/// Operators that only ever work on constants here.
bool is_folded_only(const OnnxNode& node) {
  // Graphs inside a node take its place.
  return node.domain.empty() &&
         (node.op_type == "Constant" || !inner_graphs(node).empty() || is_selection(node.op_type));
}

/// Runs where a scope is left, by an error too.
template <class F>
struct AtExit {
  F run;
  ~AtExit() { run(); }
};
template <class F>
AtExit(F) -> AtExit<F>;

/// The error with the place of the node.
Error at_node(const OnnxModel& model, const OnnxNode& node, const Error& error) {
  return Error(fmt::format("{}: byte {}: node '{}' ({}): {}", model.path, node.offset,
                           printable(node.name), printable(node.op_type), error.what()),
               error.kind());
}

/// At most what a node computes: for a product, its multiply-adds.
double work_of(const Op& op, const std::vector<Shape>& inputs, std::int64_t results) {
  const auto out = static_cast<double>(results);
  if (op.result() == ResultKind::product) {
    const auto parameters = op.parameters();
    const bool weighs = !parameters.empty() && !parameters[0].value.shape.empty();
    if (!weighs) return inputs.empty() ? 0 : out * static_cast<double>(inputs[0].back());
    const Tensor& weight = parameters[0].value;
    return out * static_cast<double>(weight.size() / std::max<std::int64_t>(1, weight.dim(0)));
  }
  if (op.kind().ends_with("pool") && !inputs.empty())
    return out * static_cast<double>(element_count(inputs[0]));
  return out;
}

}  // namespace

OnnxImporter::OnnxImporter(const OnnxModel& model, const ImportOptions& options,
                           OnnxModel* consumed)
    : model_(model),
      consumed_(consumed),
      options_(options),
      bytes_left_(std::min(kBytesPerByte * bytes_of(model) + kBytes, memory_left())),
      folder_(kFoldedPerByte * model.size() + kFolded) {}

void OnnxImporter::hold_bytes(std::int64_t bytes) {
  if (bytes > bytes_left_) {
    throw memory_error(
        fmt::format("constants exceed the memory allowed for this file size or left by --memory: "
                    "{} more needed, {} left",
                    bytes_text(bytes), bytes_text(bytes_left_)));
  }
  bytes_left_ -= bytes;
}

bool OnnxImporter::has_convolutions() const {
  return std::any_of(model_.graph.nodes.begin(), model_.graph.nodes.end(),
                     [](const OnnxNode& node) {
                       return node.op_type.starts_with("Conv") || node.op_type.ends_with("Pool");
                     });
}

/// A constant whose elements stay in the file. With a model that is consumed, its last reader gives
/// their memory back.
ConstantRef OnnxImporter::stored(const OnnxTensor& tensor) const {
  auto constant =
      std::make_unique<OnnxConstant>(OnnxConstant{tensor.dims, false, {}, tensor.type, &tensor});
  if (consumed_ == nullptr) return constant;
  return {constant.release(), [](const OnnxConstant* used) {
            discard_pages(used->stored->data);
            delete used;
          }};
}

/// Makes an initializer's constant when it is first read.
void OnnxImporter::load(std::string_view name) {
  const auto found = initializers_.find(name);
  if (found == initializers_.end() || values_.contains(name)) return;
  OnnxValue value;
  value.tensor = found->first;
  if (!is_integer(found->second->type) && found->second->elements >= kStoredElements) {
    value.constant = stored(*found->second);
  } else {
    value.constant = std::make_shared<OnnxConstant>(constant_of(*found->second));
    const std::vector<Folded>& elements = value.constant->elements;
    const auto nan =
        std::ranges::find_if(elements, [](const Folded& e) { return std::isnan(e.real); });
    if (nan != elements.end())
      throw Error(fmt::format("tensor '{}': element {}: expected a number, found NaN",
                              printable(name), nan - elements.begin()));
  }
  values_[name] = std::move(value);
}

/// After a read: forgets a constant that none will follow.
void OnnxImporter::release(std::string_view name) {
  const auto read = reads_.find(name);
  if (read == reads_.end() || --read->second > 0) return;
  const auto found = values_.find(name);
  if (found == values_.end() || !found->second.is_constant()) return;
  if (found->second.counted && found->second.constant.use_count() == 1)
    bytes_left_ += bytes_of(*found->second.constant);
  values_.erase(found);
}

OnnxValues OnnxImporter::results_of(const OnnxNode& node) {
  bool all_constant = true;
  for (std::size_t i = 0; i < node.inputs.size() && all_constant; ++i)
    all_constant = !has_input(node, i) || input(node, i).is_constant();
  // Shapes that depend on the batch are for the graph.
  const std::size_t shape =
      node.op_type == "Expand" || node.op_type == "Range" || node.op_type == "Tile" ? 1
      : node.op_type == "ConstantOfShape"                                           ? 0
                                                                                    : 9;
  const bool open = all_constant && has_input(node, shape) &&
                    input(node, shape).constant->integer &&
                    std::ranges::any_of(input(node, shape).constant->elements,
                                        [](const Folded& e) { return e.whole.per_batch; });
  if (all_constant && !open) {
    // Exporters write Identity where two layers share a weight.
    if (node.op_type == "Identity" && has_input(node, 0)) return {input(node, 0)};
    const Section section(SectionKind::data, "", "constants");
    folder_.allow(bytes_left_ / static_cast<std::int64_t>(sizeof(Folded)));
    OnnxValues results;
    const auto keep = [&](OnnxConstant constant) {
      if (constant.dims.size() > kMostAxes)
        throw Error(
            fmt::format("expected at most {} axes, found {}", kMostAxes, constant.dims.size()));
      hold_bytes(bytes_of(constant));
      results.push_back(value_of(std::move(constant)));
      results.back().counted = true;
    };
    if (std::optional<OnnxConstant> folded = folder_.fold(node, constants(node)))
      keep(std::move(*folded));
    if (auto folded = fold_selection(node, constants(node), folder_))
      for (OnnxConstant& constant : *folded) keep(std::move(constant));
    if (!results.empty()) return results;
  }
  const OnnxHandler* handler = find_handler(node.domain, node.op_type);
  if (handler != nullptr && all_constant && !open) return computed(node, *handler);
  if (options_.one_sample && !all_constant && !open) return results_in_run(node);
  if (handler != nullptr) return (*handler)({*this, node});
  throw Error(fmt::format("operator {} is not supported on values that are not constant",
                          printable(node.op_type)));
}

OnnxValues OnnxImporter::as_operator(const OnnxNode& like, std::string_view op,
                                     const OnnxValues& inputs) {
  OnnxNode node = like;
  node.op_type = op;
  node.domain = {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool absent = inputs[i].is_constant() && inputs[i].constant == nullptr;
    names.push_back(absent ? std::string() : fmt::format("\n{}", i));
  }
  node.inputs.assign(names.begin(), names.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!names[i].empty()) values_[node.inputs[i]] = inputs[i];
  }
  const AtExit gone{[&] {
    for (const std::string& name : names) values_.erase(name);
  }};
  return (*find_handler({}, op))({*this, node});
}

/// Nodes of the graph; where it cannot have the operator, what the operator makes of the values
/// that the arrays of the run decide.
OnnxValues OnnxImporter::results_in_run(const OnnxNode& node) {
  Error refused(fmt::format("operator {} is not supported on values that are not constant",
                            printable(node.op_type)));
  const std::size_t first = graph_.nodes.size();
  const std::int64_t bytes_left = bytes_left_;
  if (const OnnxHandler* handler = find_handler(node.domain, node.op_type)) {
    try {
      return (*handler)({*this, node});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::memory) throw;
      refused = error;
      forget_nodes(first);
      bytes_left_ = bytes_left;
    }
  }
  OnnxValues results;
  try {
    std::map<std::string_view, OnnxValue> live;
    const AtExit back{[&] {
      for (auto& [name, value] : live) values_[name] = std::move(value);
    }};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!has_input(node, i) || input(node, i).is_constant()) continue;
      settle(node.inputs[i]);
      OnnxValue& value = values_.find(node.inputs[i])->second;
      OnnxValue constant = decided(value);
      live.emplace(node.inputs[i], std::exchange(value, std::move(constant)));
    }
    results = results_of(node);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::memory) throw;
    throw refused;
  }
  by_values_.push_back(printable(node.name.empty() ? node.op_type : node.name));
  return results;
}

/// The nodes from that one on, which a node that is refused has left.
void OnnxImporter::forget_nodes(std::size_t first) {
  const int value = graph_.value_of(first);
  graph_.nodes.resize(first);
  std::erase_if(turned_, [&](const auto& entry) { return entry.second.number >= value; });
  std::erase_if(nodes_of_constants_,
                [&](const auto& entry) { return entry.second.second.number >= value; });
  std::erase_if(evaluated_, [&](const auto& entry) { return entry.first >= value; });
  std::erase_if(decided_, [&](const auto& entry) { return entry.first >= value; });
}

/// Constants from a node whose inputs are constants: by the operators that it would become in the
/// graph, in one of its own.
OnnxValues OnnxImporter::computed(const OnnxNode& node, OnnxHandler handler) {
  Graph graph = std::exchange(graph_, {});
  auto turned = std::exchange(turned_, {});
  auto nodes_of_constants = std::exchange(nodes_of_constants_, {});
  auto names = std::exchange(names_, {});
  const std::int64_t bytes_left = bytes_left_;
  OnnxValues results;
  {
    const AtExit back{[&] {
      computes_ = false;
      graph_ = std::move(graph);
      turned_ = std::move(turned);
      nodes_of_constants_ = std::move(nodes_of_constants);
      names_ = std::move(names);
      bytes_left_ = bytes_left;
    }};
    computes_ = true;
    results = computed_apart(node, handler);
  }
  for (const OnnxValue& result : results) {
    if (result.counted) hold_bytes(bytes_of(*result.constant));
  }
  return results;
}

/// In graph_, which is empty.
OnnxValues OnnxImporter::computed_apart(const OnnxNode& node, OnnxHandler handler) {
  const auto require_exact = [&](double value) {
    if (std::fabs(value) > kExact)
      throw Error("whole numbers beyond 2^24 cannot be folded by this operator");
  };
  for (const ConstantRef& input : constants(node)) {
    // Its whole numbers are rounded to float32 by definition.
    if (!input || !input->integer || node.op_type == "DequantizeLinear") continue;
    for (const Folded& element : input->elements)
      require_exact(static_cast<double>(element.whole.value));
  }
  OnnxValues results = handler({*this, node});
  for (OnnxValue& result : results) {
    if (result.quantizer) result = quantized(*this, result);
    if (!result.is_constant()) result = to_plain(result);
  }

  const FloatGuard guard;
  Numerics numerics;
  std::vector<Tensor> values;
  for (const Node& made : graph_.nodes) {
    std::vector<const Tensor*> inputs;
    std::vector<Shape> shapes;
    for (const int v : made.inputs) {
      inputs.push_back(&values[static_cast<std::size_t>(v)]);
      shapes.push_back(inputs.back()->shape);
    }
    const Shape shape = made.op->output_shape(shapes);
    folder_.count(element_count(shape));
    hold(element_count(shape));
    work_left_ -= work_of(*made.op, shapes, element_count(shape));
    if (work_left_ < 0) throw Error("products of constants are too large to be folded");
    Tensor output(shape);
    made.op->forward({.layer = made.name, .numerics = numerics}, inputs, output);
    values.push_back(std::move(output));
  }
  for (OnnxValue& result : results) {
    if (result.is_constant()) continue;
    const Tensor& tensor = values[static_cast<std::size_t>(result.number)];
    OnnxConstant made{tensor.shape, result.integer, {}};
    made.elements.reserve(tensor.data.size());
    for (const float value : tensor.data) {
      if (made.integer) require_exact(value);
      made.elements.push_back(made.integer ? Folded{0, {static_cast<std::int64_t>(value)}}
                                           : Folded{value, {}});
    }
    result = {};
    result.constant = std::make_shared<OnnxConstant>(std::move(made));
    result.counted = true;
  }
  return results;
}

/// The value of a name that something other than a DequantizeLinear reads; nullptr without.
const OnnxValue* OnnxImporter::settled(std::string_view name) {
  load(name);
  settle(name);
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

/// Integers that something other than a DequantizeLinear reads become a node.
void OnnxImporter::settle(std::string_view name) {
  const auto found = values_.find(name);
  if (found != values_.end() && found->second.quantizer)
    found->second = quantized(*this, found->second);
}

/// All operators of the model that this program lacks, in one line: the first with a node.
void OnnxImporter::require_operators() const {
  // Files name hundreds of operators only to deceive; exporters use less than fifty.
  constexpr std::size_t kNamed = 130, kListed = 1500, kLongest = 36, kLongestPart = 24;  // bytes
  const auto cut = [](std::string text, std::size_t longest) {
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  };
  std::map<std::string, std::vector<const OnnxNode*>> missing;
  for (const OnnxNode& node : model_.graph.nodes) {
    if (is_folded_only(node) || find_handler(node.domain, node.op_type) != nullptr) continue;
    const std::string op = cut(printable(node.op_type), kLongest);
    missing[node.domain.empty() ? op : cut(printable(node.domain), kLongestPart) + "." + op]
        .push_back(&node);
  }
  if (missing.empty()) return;
  std::string list;
  std::size_t left = missing.size();
  for (const auto& [name, nodes] : missing) {
    if (list.size() > kListed) break;
    list += fmt::format("{}{} ({}", list.empty() ? "" : ", ", name, nodes.size());
    if (list.size() < kNamed) {
      list += fmt::format(": '{}' at byte {}{}", cut(printable(nodes[0]->name), kLongestPart),
                          nodes[0]->offset, nodes.size() > 1 ? ", ..." : "");
    }
    list += ")";
    --left;
  }
  throw Error(fmt::format("{}: operators that are not supported: {}{}", model_.path, list,
                          left > 0 ? fmt::format(" and {} more", left) : ""));
}

/// Throws Error where the node makes a value that is there already.
void OnnxImporter::note_outputs(const OnnxNode& node) {
  for (const std::string_view name : node.outputs) {
    if (!name.empty() && !made_.insert(name).second)
      throw Error(fmt::format("value '{}' is defined twice", printable(name)));
  }
}

void OnnxImporter::import_node(const OnnxNode& node) {
  if (branches_.contains(&node)) return import_branch(node);
  note_outputs(node);
  for (const std::string_view name : node.inputs) {
    load(name);
    if (node.op_type != "DequantizeLinear") settle(name);
  }
  OnnxValues results = results_of(node);
  for (OnnxValue& result : results) note_origin(node, result);
  if (!results.empty()) note_roles(node, results[0]);
  for (const std::string_view name : node.inputs) release(name);
  for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = results[i];
  }
}

/// The value of an output of the file, in the graph, and the axis of its samples in ONNX.
OnnxValue OnnxImporter::output_value(const OnnxValueInfo& info, int& batch) {
  const OnnxValue* const found = settled(info.name);
  if (found == nullptr) throw Error("is not the output of any node");
  OnnxValue value = as_graph(*found, info.name);
  if (options_.one_sample) {
    value = to_plain(value);
    Shape shape = value.shapes[0];
    shape.insert(shape.begin(), 1);
    batch = kNoBatch;
    return add(free_name(printable(info.name) + ".sample"),
               std::make_unique<Reshape>(std::move(shape)), {value}, false);
  }
  // Arrays of a user turn only four axes.
  if (value.image && value.rank() != 4) value = to_plain(value);
  std::tie(value, batch) = batch_first(value, printable(info.name));
  return value;
}

ImportedModel OnnxImporter::finish() {
  ImportedModel out;
  OnnxValue first;
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    OnnxValue value;
    int batch = 0;
    at(fmt::format("{}: output '{}'", model_.path, printable(info.name)),
       [&] { value = output_value(info, batch); });
    if (out.outputs.empty()) first = value;
    out.outputs.push_back({printable(info.name), value.number, value.image, batch});
  }
  if (out.outputs.empty()) throw Error(model_.path + ": expected a graph with an output");
  // The first output must be the last value: a view of it is, where it is not.
  if (static_cast<std::size_t>(first.number) + 1 != graph_.value_count() || graph_.nodes.empty()) {
    out.outputs[0].value = graph_.add(
        free_name("output"), std::make_unique<Reshape>(Shape(first.rank(), 0)), {first.number});
  }
  set_origins();
  out.graph = std::move(graph_);
  out.inputs = std::move(inputs_);
  return out;
}

namespace {

/// Nodes that no output depends on: what only decided sizes.
void drop_unread(ImportedModel& model) {
  Graph& graph = model.graph;
  const std::size_t inputs = graph.inputs.size();
  std::vector<bool> read(graph.value_count());
  for (const OnnxPort& port : model.outputs) read[static_cast<std::size_t>(port.value)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (!read[inputs + i]) continue;
    for (const int v : graph.nodes[i].inputs) read[static_cast<std::size_t>(v)] = true;
  }
  std::vector<int> moved(graph.value_count());
  std::vector<Node> nodes;
  std::vector<int> sources;
  for (std::size_t v = 0; v < moved.size(); ++v) {
    moved[v] = static_cast<int>(v < inputs ? v : inputs + nodes.size());
    if (v < inputs || !read[v]) continue;
    nodes.push_back(std::move(graph.nodes[v - inputs]));
    for (int& number : nodes.back().inputs) number = moved[static_cast<std::size_t>(number)];
    sources.push_back(model.sources[v - inputs]);
  }
  graph.nodes = std::move(nodes);
  model.sources = std::move(sources);
  for (OnnxPort& port : model.outputs) port.value = moved[static_cast<std::size_t>(port.value)];
}

}  // namespace

ImportedModel OnnxImporter::run() {
  const Section section(SectionKind::data, "", "ONNX import");
  graph_.name = model_.graph.name.empty() ? "onnx" : printable(model_.graph.name);
  if (model_.graph.nodes.size() > kMostNodes)
    throw Error(fmt::format("{}: expected at most {} nodes, found {}", model_.path, kMostNodes,
                            model_.graph.nodes.size()));
  require_operators();
  count_reads(model_.graph, 0, 1);
  add_initializers(model_.graph);
  add_inputs();
  std::vector<int> sources(graph_.nodes.size(), -1);
  for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i) {
    const OnnxNode& node = model_.graph.nodes[i];
    try {
      import_node(node);
      sources.resize(graph_.nodes.size(), branches_.contains(&node) ? -1 : static_cast<int>(i));
    } catch (const Error& error) {
      throw at_node(model_, node, error);
    }
  }
  ImportedModel out = finish();
  sources.resize(out.graph.nodes.size(), -1);
  out.sources = std::move(sources);
  out.swapped = std::move(swapped_);
  if (options_.one_sample) drop_unread(out);
  if (!by_values_.empty())
    note(
        fmt::format("{} {} the values that the arrays of this run give in float32, the first in "
                    "'{}': sizes of results depend on them.",
                    counted(std::ssize(by_values_), "operator"),
                    by_values_.size() > 1 ? "have" : "has", by_values_[0]));
  out.notes.assign(notes_.begin(), notes_.end());
  return out;
}

ImportedModel import_onnx(const OnnxModel& model, const ImportOptions& options) {
  return OnnxImporter(model, options).run();
}

ImportedModel import_onnx(OnnxModel&& model, const ImportOptions& options) {
  ImportedModel imported = OnnxImporter(model, options, &model).run();
  malloc_trim(0);  // what the copies of weights left between the parameters
  return imported;
}

/// Of both branches of an If: which one is taken is not known yet. What the body of a loop reads
/// stays for all its rounds.
void OnnxImporter::count_reads(const OnnxGraph& graph, int depth, std::int64_t rounds) {
  constexpr std::int64_t kRounds = std::int64_t{1} << 32;
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string_view name : node.inputs) reads_[name] += rounds;
    const auto graphs = inner_graphs(node);
    if (graphs.empty()) continue;
    try {
      if (depth == kDeepestGraph)
        throw Error(fmt::format("expected at most {} nested graphs", depth));
      std::vector<OnnxGraph>& branches = branches_[&node];
      for (const std::string_view name : graphs)
        branches.push_back(read_subgraph(model_, node, name));
      for (const OnnxGraph& branch : branches)
        count_reads(branch, depth + 1, node.op_type == "If" ? rounds : kRounds);
    } catch (const Error& error) {
      // A node within branches is named already.
      if (std::string_view(error.what()).starts_with(model_.path + ": byte ")) throw;
      throw at_node(model_, node, error);
    }
  }
  for (const OnnxValueInfo& info : graph.outputs) reads_[info.name] += rounds;
}

void OnnxImporter::add_initializers(const OnnxGraph& graph) {
  for (const OnnxTensor& tensor : graph.initializers) {
    initializers_[tensor.name] = &tensor;
    if (!made_.insert(tensor.name).second)
      throw Error(fmt::format("{}: byte {}: duplicate initializer '{}'", model_.path, tensor.offset,
                              printable(tensor.name)));
  }
}

std::size_t batch_axis(const OnnxValueInfo& info) {
  const auto named = [](const OnnxDimension& dimension) {
    std::string text(dimension.symbol);
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return text.find("batch") != std::string::npos;
  };
  const auto found = std::ranges::find_if(info.dims, named);
  return found == info.dims.end() ? 0 : static_cast<std::size_t>(found - info.dims.begin());
}

bool has_all_extents(const OnnxModel& model, const ImportOptions& options) {
  std::set<std::string_view> weights;
  for (const OnnxTensor& tensor : model.graph.initializers) weights.insert(tensor.name);
  return std::ranges::all_of(model.graph.inputs, [&](const OnnxValueInfo& info) {
    if (weights.contains(info.name)) return true;
    const auto given = options.input_shapes.find(printable(info.name));
    if (given == options.input_shapes.end())
      return info.has_shape &&
             std::ranges::all_of(info.dims, [](const OnnxDimension& d) { return d.extent > 0; });
    return !info.has_shape ||
           std::ranges::equal(info.dims, given->second, [](const OnnxDimension& d, std::int64_t n) {
             return n > 0 && (d.extent < 1 || d.extent == n);
           });
  });
}

/// An input of the graph, whose samples have that shape.
void OnnxImporter::add_input(const OnnxValueInfo& info, OnnxValue value, const Shape& sample,
                             int batch_axis) {
  const std::string name = printable(info.name);
  value.number = static_cast<int>(graph_.inputs.size());
  value.integer = info.type != 0 && is_integer(static_cast<OnnxType>(info.type));
  free_name(name);  // no node shall have it
  graph_.inputs.push_back({name, sample});
  inputs_.push_back({name, value.number, value.image, batch_axis, value.integer});
  values_[info.name] = std::move(value);
}

/// An input of a run whose arrays are one sample: a view without the batch of 1.
void OnnxImporter::add_whole_input(const OnnxValueInfo& info) {
  const std::string name = printable(info.name);
  const auto given = options_.input_shapes.find(name);
  Shape dims;
  for (const OnnxDimension& dimension : info.dims) dims.push_back(dimension.extent);
  if (given != options_.input_shapes.end()) dims = given->second;
  if (dims.size() > kMostAxes || element_count(dims) > kMostElements)
    throw Error(fmt::format("{}: input {}: expected at most {} axes and 2^40 elements, found {}",
                            model_.path, name, kMostAxes, to_string(dims)));
  Shape with_batch = dims;
  with_batch.insert(with_batch.begin(), 1);
  OnnxValue value;
  value.shapes = {with_batch, with_batch};
  if (info.type != 0) value.type = static_cast<OnnxType>(info.type);
  add_input(info, std::move(value), dims, kNoBatch);
}

void OnnxImporter::add_inputs() {
  const bool images = has_convolutions();
  std::vector<std::pair<std::string_view, std::size_t>> turned;  // the batch on a later axis
  std::vector<std::string_view> whole;                           // without a batch
  for (const OnnxValueInfo& info : model_.graph.inputs) {
    // An initializer may be listed as an input.
    if (initializers_.contains(info.name)) continue;
    const std::string name = printable(info.name);
    if (!made_.insert(info.name).second)
      throw Error(fmt::format("{}: duplicate input '{}'", model_.path, name));
    if (options_.one_sample) {
      add_whole_input(info);
      whole.push_back(info.name);
      continue;
    }
    const auto given = options_.input_shapes.find(name);
    const std::size_t batch = batch_axis(info);
    Ints dims;
    for (const OnnxDimension& dimension : info.dims) dims.push_back(dimension.extent);
    if (given != options_.input_shapes.end() && !info.has_shape) dims = given->second;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == batch && info.has_shape && dims[i] > 0) {
        if (fixed_batch_ > 0 && fixed_batch_ != dims[i])
          throw Error(
              fmt::format("{}: input {}: expected {} on axis {} (the batch) as in the inputs "
                          "before, found {}",
                          model_.path, name, fixed_batch_, i, dims[i]));
        fixed_batch_ = dims[i];
      }
      if (dims[i] < 1 && given != options_.input_shapes.end() && i < given->second.size())
        dims[i] = given->second[i];
      if (i != batch && dims[i] < 1) {
        const std::string_view symbol =
            i < info.dims.size() && !info.dims[i].symbol.empty() ? info.dims[i].symbol : "unknown";
        const bool empty = given != options_.input_shapes.end() && i < given->second.size();
        throw Error(fmt::format(
            "{}: input {}: axis {} ({}){}", model_.path, name, i, printable(symbol),
            empty ? fmt::format(": expected at least 1 element, found {}", given->second[i])
                  : " has no extent in the file; the input array determines it"));
      }
    }
    if (dims.empty() || dims.size() > kMostAxes)
      throw Error(fmt::format("{}: input {}: expected 1 to {} axes, found {}", model_.path, name,
                              kMostAxes, dims.size()));
    OnnxValue value;
    const auto image = options_.images.find(name);
    value.image =
        (image == options_.images.end() ? images : image->second) && dims.size() == 4 && batch == 0;
    Shape shape = dims;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(batch));
    if (value.image) shape = {dims[2], dims[3], dims[1]};
    for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
      value.shapes[probe] = shape;
      value.shapes[probe].insert(value.shapes[probe].begin(), kProbeBatches[probe]);
      if (element_count(value.shapes[probe]) > kMostElements)
        throw Error(fmt::format("{}: input {}: expected at most 2^40 elements", model_.path, name));
    }
    add_input(info, std::move(value), shape, static_cast<int>(batch));
    if (batch > 0) turned.emplace_back(info.name, batch);
  }
  if (graph_.inputs.empty()) throw Error(model_.path + ": expected a graph with an input");
  for (const std::string_view name : whole) {
    OnnxValue& value = values_.find(name)->second;
    const Shape& dims = graph_.inputs[static_cast<std::size_t>(value.number)].shape;
    const std::optional<OnnxType> type = value.type;
    value =
        add(free_name(printable(name) + ".whole"), std::make_unique<Reshape>(dims), {value}, false);
    value.type = type;
  }
  for (const auto& [name, batch] : turned) {
    OnnxValue& value = values_.find(name)->second;
    Ints order;
    for (std::size_t i = 0; i < value.rank(); ++i)
      order.push_back(static_cast<std::int64_t>(i < batch ? i + 1 : i == batch ? 0 : i));
    value = add(free_name(printable(name) + ".turned"), std::make_unique<Transpose>(order), {value},
                false);
  }
}

/// A value with the batch on its first axis, and the axis on which it was.
std::pair<OnnxValue, int> OnnxImporter::batch_first(const OnnxValue& value,
                                                    const std::string& name) {
  std::size_t batch = 0, depend = 0;
  for (std::size_t i = 0; i < value.rank(); ++i) {
    if (value.shapes[0][i] == value.shapes[1][i]) continue;
    batch = i;
    ++depend;
  }
  if (depend != 1 || batch == 0 || value.shapes[0][batch] != kProbeBatches[0] ||
      value.shapes[1][batch] != kProbeBatches[1])
    return {value, 0};
  Ints order{static_cast<std::int64_t>(batch)};
  for (std::size_t i = 0; i < value.rank(); ++i)
    if (i != batch) order.push_back(static_cast<std::int64_t>(i));
  return {add(free_name(name + ".turned"), std::make_unique<Transpose>(order), {value}, false),
          static_cast<int>(batch)};
}

}  // namespace numemu::net

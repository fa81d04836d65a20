// The importer: inputs, nodes in file order, outputs.
#include "emu/net/model/onnx_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/constant.hpp"
#include "emu/net/ops/reshape.hpp"
#include "emu/net/ops/slice.hpp"
#include "emu/net/ops/transpose.hpp"
#include "emu/net/ops/where.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::size_t kMostAxes = 8;
constexpr std::size_t kMostNodes = 20'000;  // names are compared pairwise
/// Elements of a value for the larger probe batch: far beyond memory, far below overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
/// Bytes that constants may take for one of the file, and in any case. A loader may take 64;
/// initializers of bytes take 24 as they are held and 8 while they are read.
constexpr std::int64_t kBytesPerByte = 16, kBytes = std::int64_t{8} << 20;
/// Elements that may be folded in all: a bound of time.
constexpr std::int64_t kFoldedPerByte = 16, kFolded = std::int64_t{1} << 23;
/// A folding holds its result and its two operands in the same shape.
constexpr std::int64_t kBytesOfFolding = 3 * static_cast<std::int64_t>(sizeof(Folded));

constexpr const OnnxHandlers& (*kTables[])() = {onnx_product_handlers, onnx_pointwise_handlers,
                                                onnx_shape_handlers, onnx_axis_handlers};

const OnnxHandler* find_handler(std::string_view op) {
  for (const auto& table : kTables) {
    for (const auto& [name, handler] : table()) {
      if (name == op) return &handler;
    }
  }
  return nullptr;
}

/// Operators that only ever work on constants here.
constexpr std::string_view kFoldedOnly[] = {
    "And", "Ceil", "Constant", "Equal", "Floor", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Not", "Or", "Range", "Trilu"};

/// Operators whose results are whole numbers where their inputs are, beside the views.
constexpr std::string_view kWhole[] = {"add", "subtract", "multiply", "negate",
                                       "abs", "clip",     "relu",     "where"};

std::string text(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 100)) out += c < 32 || c == 127 ? '?' : c;
  return out;
}

}  // namespace

std::vector<Extent> OnnxValue::extents() const {
  std::vector<Extent> out;
  if (is_constant()) {
    for (const std::int64_t n : constant->dims) out.push_back({n});
    return out;
  }
  for (std::size_t i = 0; i < shapes[0].size(); ++i) {
    const std::int64_t a = shapes[0][i], b = shapes[1][i];
    if (a == b) {
      out.push_back({a});
    } else if (a * kProbeBatches[1] == b * kProbeBatches[0]) {
      out.push_back({a / kProbeBatches[0], true});
    } else {
      throw Error(fmt::format("axis {} depends on the batch, but not in proportion", i));
    }
  }
  if (image) out = {out[0], out[3], out[1], out[2]};
  return out;
}

OnnxImporter::OnnxImporter(const OnnxModel& model, const ImportOptions& options)
    : model_(model),
      options_(options),
      bytes_left_(kBytesPerByte * static_cast<std::int64_t>(model.bytes.size()) + kBytes),
      folder_(kFoldedPerByte * static_cast<std::int64_t>(model.bytes.size()) + kFolded) {}

void OnnxImporter::hold_bytes(std::int64_t bytes) {
  if (bytes > bytes_left_)
    throw Error("the constants of the graph take more memory than a file of its size may");
  bytes_left_ -= bytes;
}

const OnnxValue& OnnxImporter::input(const OnnxNode& node, std::size_t index) const {
  if (!has_input(node, index)) throw Error(fmt::format("expected an input number {}", index));
  const auto found = values_.find(node.inputs[index]);
  if (found == values_.end())
    throw Error(fmt::format("expected input '{}' to be made before", text(node.inputs[index])));
  return found->second;
}

const OnnxConstant& OnnxImporter::constant(const OnnxNode& node, std::size_t index) {
  const OnnxValue& value = input(node, index);
  if (!value.is_constant())
    throw Error(fmt::format("expected input '{}' to be constant", text(node.inputs[index])));
  hold(static_cast<std::int64_t>(value.constant->elements.size()));
  return *value.constant;
}

std::vector<ConstantRef> OnnxImporter::constants(const OnnxNode& node) const {
  std::vector<ConstantRef> out;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    out.push_back(has_input(node, i) ? input(node, i).constant : nullptr);
  return out;
}

std::string OnnxImporter::free_name(std::string wanted) {
  const int earlier = names_[wanted]++;
  return earlier == 0 ? wanted : free_name(fmt::format("{}.{}", wanted, earlier));
}

std::string OnnxImporter::node_name(const OnnxNode& node) {
  std::string name = text(node.name.empty() ? node.op_type : node.name);
  if (name.starts_with('/')) name.erase(0, 1);
  std::replace(name.begin(), name.end(), '/', '.');
  return free_name(name);
}

std::string OnnxImporter::layer_name(const OnnxNode& node, std::size_t weight_input) {
  constexpr std::string_view kWeight = ".weight";
  const std::string_view weight = node.inputs.at(weight_input);
  if (weight.size() <= kWeight.size() || !weight.ends_with(kWeight)) return node_name(node);
  return free_name(text(weight.substr(0, weight.size() - kWeight.size())));
}

OnnxValue OnnxImporter::add(const std::string& name, std::unique_ptr<Op> op,
                            const std::vector<OnnxValue>& reads, bool image) {
  if (graph_.nodes.size() >= kMostNodes)
    throw Error(fmt::format("expected at most {} operators", kMostNodes));
  OnnxValue value;
  value.image = image;
  value.integer = !reads.empty() && (op->result() == ResultKind::view ||
                                     std::find(std::begin(kWhole), std::end(kWhole), op->kind()) !=
                                         std::end(kWhole));
  std::vector<int> numbers;
  for (const OnnxValue& read : reads) {
    if (read.is_constant()) throw Error("expected a value that is not constant");
    value.integer = value.integer && read.integer;
    numbers.push_back(read.number);
  }
  for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
    std::vector<Shape> shapes;
    for (const OnnxValue& read : reads) shapes.push_back(read.shapes[probe]);
    value.shapes[probe] = op->output_shape(shapes);
    const std::int64_t count = element_count(value.shapes[probe]);
    if (count < 1 || count > kMostElements)
      throw Error(fmt::format("expected 1 to 2^40 elements, found {}", count));
  }
  if (value.shapes[0].size() > kMostAxes)
    throw Error(
        fmt::format("expected at most {} axes, found {}", kMostAxes, value.shapes[0].size()));
  value.number = graph_.add(name, std::move(op), numbers);
  return value;
}

OnnxValue OnnxImporter::as_graph(const OnnxValue& value, std::string_view name, bool image) {
  if (!value.is_constant()) return value;
  const OnnxConstant& constant = *value.constant;
  const bool turned = image && constant.elements.size() != 1;
  auto& [known, node] = nodes_of_constants_[{value.constant.get(), turned}];
  if (known.lock() == value.constant) return node;
  hold(static_cast<std::int64_t>(constant.elements.size()));
  Tensor tensor = turned ? channels_last(constant).tensor() : constant.tensor();
  if (tensor.shape.empty()) tensor.shape = {1};
  node = add(free_name(name.empty() ? "constant" : text(name)),
             std::make_unique<Constant>(std::move(tensor)), {}, false);
  node.integer = constant.integer;
  known = value.constant;
  return node;
}

OnnxValue OnnxImporter::number(float value) {
  OnnxValue out;
  out.constant = std::make_shared<OnnxConstant>(OnnxConstant{{}, false, {{value, {}}}});
  return as_graph(out, "");
}

OnnxValue OnnxImporter::repeated(const OnnxNode& node, const OnnxValue& value) {
  if (value.rank() < 1 || value.image) throw Error("expected an axis for the batch");
  // Where of the same value twice chooses it whatever the condition holds: its shape is all that
  // counts, one element of each sample.
  OnnxValue sample;
  sample.number = 0;
  std::vector<SliceRange> first;
  for (std::size_t i = 1; i < graph_.inputs[0].shape.size() + 1; ++i)
    first.push_back({static_cast<std::int64_t>(i), 0, 1, 1});
  for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
    sample.shapes[probe] = graph_.inputs[0].shape;
    sample.shapes[probe].insert(sample.shapes[probe].begin(), kProbeBatches[probe]);
  }
  if (!first.empty())
    sample = add(free_name("batch"), std::make_unique<Slice>(std::move(first)), {sample}, false);
  Shape shape(value.rank(), 1);
  shape[0] = -1;
  if (sample.shapes[0].size() != shape.size())
    sample = add(free_name("batch"), std::make_unique<Reshape>(std::move(shape)), {sample}, false);
  return add(node_name(node), std::make_unique<Where>(), {sample, value, value}, false);
}

OnnxValue OnnxImporter::to_image(const OnnxValue& value) {
  if (value.image) return value;
  if (value.rank() != 4)
    throw Error(fmt::format("expected images [n, c, h, w], found {} axes", value.rank()));
  OnnxValue& turned = turned_[{value.number, true}];
  if (turned.number < 0) {
    turned = add(free_name("to_nhwc"),
                 std::make_unique<Transpose>(std::vector<std::int64_t>{0, 2, 3, 1}), {value}, true);
  }
  return turned;
}

OnnxValue OnnxImporter::to_plain(const OnnxValue& value) {
  if (!value.image) return value;
  OnnxValue& turned = turned_[{value.number, false}];
  if (turned.number >= 0) return turned;
  const Shape& shape = value.shapes[0];
  std::unique_ptr<Op> op;
  if (shape[1] == 1 && shape[2] == 1) {
    op = std::make_unique<Reshape>(Shape{0, shape[3], 1, 1});
  } else {
    op = std::make_unique<Transpose>(std::vector<std::int64_t>{0, 3, 1, 2});
  }
  turned = add(free_name("to_nchw"), std::move(op), {value}, false);
  return turned;
}

OnnxValue OnnxImporter::reshape_to(const OnnxNode& node, const OnnxValue& plain,
                                   const std::vector<Extent>& target) {
  const std::vector<Extent> own = plain.extents();
  if (own == target) return plain;
  Shape shape;
  std::int64_t open = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool copied = target[i].per_batch && i < own.size() && own[i] == target[i];
    const bool inferred = target[i].per_batch && !copied;
    open += inferred;
    shape.push_back(copied ? 0 : inferred ? -1 : target[i].value);
    if (!target[i].per_batch && target[i].value == 0)
      throw Error("tensors without elements are not supported");
  }
  if (open > 1) throw Error("expected at most one axis that depends on the batch");
  return add(node_name(node), std::make_unique<Reshape>(std::move(shape)), {plain}, false);
}

bool OnnxImporter::has_convolutions() const {
  return std::any_of(model_.graph.nodes.begin(), model_.graph.nodes.end(),
                     [](const OnnxNode& node) {
                       return node.op_type == "Conv" || node.op_type.ends_with("Pool");
                     });
}

void OnnxImporter::count_reads() {
  for (const OnnxNode& node : model_.graph.nodes) {
    for (const std::string_view name : node.inputs) ++reads_[name];
  }
  for (const OnnxValueInfo& info : model_.graph.outputs) ++reads_[info.name];
  for (const OnnxTensor& tensor : model_.graph.initializers) initializers_[tensor.name] = &tensor;
}

/// Makes an initializer's constant when it is first read.
void OnnxImporter::load(std::string_view name) {
  const auto found = initializers_.find(name);
  if (found == initializers_.end() || values_.contains(name)) return;
  OnnxValue value;
  value.constant = std::make_shared<OnnxConstant>(constant_of(*found->second));
  values_[name] = std::move(value);
}

/// After a read: forgets a constant that none will follow.
void OnnxImporter::release(std::string_view name) {
  const auto read = reads_.find(name);
  if (read == reads_.end() || --read->second > 0) return;
  const auto found = values_.find(name);
  if (found == values_.end() || !found->second.is_constant()) return;
  if (found->second.constant.use_count() == 1 && !initializers_.contains(name))
    bytes_left_ += static_cast<std::int64_t>(found->second.constant->elements.size() * sizeof(Folded));
  values_.erase(found);
}

void OnnxImporter::add_inputs() {
  const bool images = has_convolutions();
  for (const OnnxValueInfo& info : model_.graph.inputs) {
    // An initializer may be listed as an input.
    if (values_.contains(info.name) || initializers_.contains(info.name)) continue;
    const std::string name = text(info.name);
    const auto given = options_.input_shapes.find(name);
    std::vector<std::int64_t> dims;
    for (const OnnxDimension& dimension : info.dims) dims.push_back(dimension.extent);
    if (given != options_.input_shapes.end() && !info.has_shape) dims = given->second;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == 0 && info.has_shape && dims[0] > 0) {
        if (fixed_batch_ > 0 && fixed_batch_ != dims[0])
          throw Error(fmt::format("{}: input {}: expected a first axis of {} as in the inputs "
                                  "before (the batch), found {}",
                                  model_.path, name, fixed_batch_, dims[0]));
        fixed_batch_ = dims[0];
      }
      if (dims[i] < 1 && given != options_.input_shapes.end() && i < given->second.size())
        dims[i] = given->second[i];
      if (i > 0 && dims[i] < 1) {
        const std::string_view symbol =
            i < info.dims.size() && !info.dims[i].symbol.empty() ? info.dims[i].symbol : "unknown";
        throw Error(fmt::format("{}: input {}: axis {} ({}) has no extent in the file; it follows "
                                "from the array that is given",
                                model_.path, name, i, text(symbol)));
      }
    }
    if (dims.empty() || dims.size() > kMostAxes)
      throw Error(fmt::format("{}: input {}: expected 1 to {} axes, found {}", model_.path, name,
                              kMostAxes, dims.size()));
    OnnxValue value;
    value.image = images && dims.size() == 4;
    value.number = static_cast<int>(graph_.inputs.size());
    Shape shape(dims.begin() + 1, dims.end());
    if (value.image) shape = {dims[2], dims[3], dims[1]};
    for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
      value.shapes[probe] = shape;
      value.shapes[probe].insert(value.shapes[probe].begin(), kProbeBatches[probe]);
      if (element_count(value.shapes[probe]) > kMostElements)
        throw Error(fmt::format("{}: input {}: expected at most 2^40 elements", model_.path, name));
    }
    value.integer = info.type != 0 && is_integer(static_cast<OnnxType>(info.type));
    free_name(name);  // no node shall have it
    graph_.inputs.push_back({name, shape});
    inputs_.push_back({name, value.number, value.image});
    values_[info.name] = std::move(value);
  }
  if (graph_.inputs.empty()) throw Error(model_.path + ": expected a graph with an input");
}

std::vector<OnnxValue> OnnxImporter::results_of(const OnnxNode& node) {
  const bool ours = node.domain.empty();
  bool all_constant = ours;
  for (std::size_t i = 0; i < node.inputs.size() && all_constant; ++i)
    all_constant = !has_input(node, i) || input(node, i).is_constant();
  // Shapes that depend on the batch are for the graph.
  const std::size_t shape = node.op_type == "Expand" ? 1 : node.op_type == "ConstantOfShape" ? 0 : 9;
  const bool open = all_constant && has_input(node, shape) && input(node, shape).constant->integer &&
                    std::ranges::any_of(input(node, shape).constant->elements,
                                        [](const Folded& e) { return e.whole.per_batch; });
  if (all_constant && !open) {
    folder_.allow(bytes_left_ / kBytesOfFolding);
    if (std::optional<OnnxConstant> folded = folder_.fold(node, constants(node))) {
      if (folded->dims.size() > kMostAxes)
        throw Error(fmt::format("expected at most {} axes, found {}", kMostAxes, folded->dims.size()));
      hold_bytes(static_cast<std::int64_t>(folded->elements.size() * sizeof(Folded)));
      OnnxValue value;
      value.constant = std::make_shared<OnnxConstant>(std::move(*folded));
      return {std::move(value)};
    }
  }
  const OnnxHandler* handler = ours ? find_handler(node.op_type) : nullptr;
  if (handler != nullptr) return (*handler)(*this, node);
  const bool folds = ours && std::ranges::find(kFoldedOnly, node.op_type) != std::end(kFoldedOnly);
  throw Error(fmt::format("operator {}{} is not supported{}; supported are {}",
                          ours ? "" : text(node.domain) + ".", text(node.op_type),
                          folds ? " on values that are not constant" : "",
                          fmt::join(onnx_operators(), ", ")));
}

void OnnxImporter::import_node(const OnnxNode& node) {
  for (const std::string_view name : node.inputs) load(name);
  const std::vector<OnnxValue> results = results_of(node);
  for (const std::string_view name : node.inputs) release(name);
  for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = results[i];
  }
}

ImportedModel OnnxImporter::finish() {
  ImportedModel out;
  OnnxValue first;
  for (const OnnxValueInfo& info : model_.graph.outputs) {
    load(info.name);
    const auto found = values_.find(info.name);
    if (found == values_.end())
      throw Error(fmt::format("{}: output '{}' is made by no node", model_.path, text(info.name)));
    OnnxValue value;
    try {
      value = as_graph(found->second, info.name);
    } catch (const Error& error) {
      throw Error(
          fmt::format("{}: output '{}': {}", model_.path, text(info.name), error.what()));
    }
    if (out.outputs.empty()) first = value;
    out.outputs.push_back({text(info.name), value.number, value.image});
  }
  if (out.outputs.empty()) throw Error(model_.path + ": expected a graph with an output");
  // The first output must be the last value: a view of it is, where it is not.
  if (static_cast<std::size_t>(first.number) + 1 != graph_.value_count() || graph_.nodes.empty()) {
    out.outputs[0].value = graph_.add(free_name("output"),
                                      std::make_unique<Reshape>(Shape(first.rank(), 0)),
                                      {first.number});
  }
  out.graph = std::move(graph_);
  out.inputs = std::move(inputs_);
  return out;
}

ImportedModel OnnxImporter::run() {
  graph_.name = model_.graph.name.empty() ? "onnx" : text(model_.graph.name);
  if (model_.graph.nodes.size() > kMostNodes)
    throw Error(fmt::format("{}: expected at most {} nodes, found {}", model_.path, kMostNodes,
                            model_.graph.nodes.size()));
  count_reads();
  add_inputs();
  for (const OnnxNode& node : model_.graph.nodes) {
    try {
      import_node(node);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: byte {}: node '{}' ({}): {}", model_.path, node.offset,
                              text(node.name), text(node.op_type), error.what()));
    }
  }
  return finish();
}

ImportedModel import_onnx(const OnnxModel& model, const ImportOptions& options) {
  return OnnxImporter(model, options).run();
}

ImportedModel load_onnx(const std::string& path, const ImportOptions& options) {
  const OnnxModel model = read_onnx(path);
  return import_onnx(model, options);
}

std::vector<std::string> onnx_operators() {
  std::set<std::string> names(std::begin(kFoldedOnly), std::end(kFoldedOnly));
  for (const auto& table : kTables) {
    for (const auto& [name, handler] : table()) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace numemu::net

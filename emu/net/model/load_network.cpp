// Distinguishes names of networks from files.
#include "emu/net/model/load_network.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/onnx/einsum.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::net {
namespace {

/// What the data set gives the network's only input.
NamedShape only_input(const Dataset& data) {
  return {"", data.input_shape(), data.kind() == DataKind::images};
}

/// Whether the extents that the file gives an input are those of such a sample.
bool fits(const OnnxValueInfo& input, const Shape& sample) {
  if (input.dims.size() != sample.size() + 1) return false;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::int64_t extent = input.dims[i + 1].extent;
    if (extent > 0 && extent != sample[i]) return false;
  }
  return true;
}

/// The extents of a sample, for axes that the file leaves open, and which inputs are images:
/// channels come first in ONNX, but last where only that fits the file, as TensorFlow's exports.
ImportOptions shapes_of(const OnnxModel& model, const Dataset& data) {
  ImportOptions options;
  for (const OnnxValueInfo& input : model.graph.inputs) {
    const auto named = std::ranges::find(data.inputs(), input.name, &NamedShape::name);
    auto [name, shape, image] = named == data.inputs().end() ? only_input(data) : *named;
    if (image) {
      Shape first = shape;
      std::rotate(first.begin(), first.end() - 1, first.end());
      image = fits(input, first) || !fits(input, shape);
      if (image) shape = std::move(first);
    }
    options.images[std::string(input.name)] = image;
    Shape& whole = options.input_shapes[std::string(input.name)] = shape;
    whole.insert(
        whole.begin() + static_cast<std::ptrdiff_t>(std::min(batch_axis(input), whole.size())), 1);
  }
  return options;
}

/// The shape as ONNX has it: an image's channels come first.
std::string file_order(Shape shape, bool image) {
  if (image) std::rotate(shape.begin(), shape.end() - 1, shape.end());
  return to_string(shape);
}

/// The inputs in the order of the data set's, which are packed in it.
void order_inputs(ImportedModel& model, const std::string& path, const Dataset& data) {
  Graph& graph = model.graph;
  std::vector<GraphInput> inputs;
  std::vector<int> moved(graph.inputs.size());  // old value number to new
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs) names.push_back(input.name);
  for (const NamedShape& own : data.inputs()) {
    const auto found = std::ranges::find(names, own.name);
    if (found == names.end())
      throw Error(path + ": expected no array '" + own.name + "' in the data set " + data.name() +
                  ", the network's inputs are " + joined(names, ", ") +
                  " (targets are y or y/OUTPUT)");
    const auto old = static_cast<std::size_t>(found - names.begin());
    const bool image = model.inputs[old].image;
    if (const Shape& shape = graph.inputs[old].shape; shape != own.shape)
      throw Error(path + ": expected an input " + own.name + " of shape " +
                  file_order(own.shape, own.image) + " for the data set " + data.name() +
                  ", found " + file_order(shape, image));
    moved[old] = static_cast<int>(inputs.size());
    inputs.push_back(graph.inputs[old]);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(data.inputs(), name, &NamedShape::name) == data.inputs().end())
      throw Error(path + ": expected an array '" + name + "' in the data set " + data.name() +
                  ", an input of the network");
  }
  graph.inputs = std::move(inputs);
  const auto renumber = [&](int& value) {
    if (value < static_cast<int>(moved.size())) value = moved[static_cast<std::size_t>(value)];
  };
  for (Node& node : graph.nodes) std::ranges::for_each(node.inputs, renumber);
  for (OnnxPort& output : model.outputs) renumber(output.value);
}

Graph fitting(ImportedModel model, const std::string& path, const Dataset& data) {
  if (!data.inputs().empty()) {
    order_inputs(model, path, data);
  } else if (model.inputs.size() != 1) {
    throw Error(path + ": expected a network of one input, found " +
                std::to_string(model.inputs.size()) +
                "; give a data set that names them: npy:FILE.npz with an array for each, x/NAME "
                "for one called x or y");
  } else {
    const NamedShape expected = only_input(data);
    const Shape& shape = model.graph.inputs.at(0).shape;
    const bool image = model.inputs[0].image;
    if (shape != expected.shape)
      throw Error(path + ": expected an input of shape " +
                  file_order(expected.shape, expected.image) + " for the data set " + data.name() +
                  ", found " + file_order(shape, image));
  }
  for (const OnnxPort& output : model.outputs)
    model.graph.outputs.push_back({output.name, output.value});
  return std::move(model.graph);
}

bool leaves_elements(const OnnxNode& node) {
  constexpr std::array<std::string_view, 6> kOps = {"Flatten", "Identity",  "Reshape",
                                                    "Squeeze", "Transpose", "Unsqueeze"};
  return node.domain.empty() && std::ranges::find(kOps, node.op_type) != kOps.end();
}

/// How often the nodes of a file read each tensor.
class Reads {
 public:
  explicit Reads(const OnnxModel& model) : model_(model) { count(model.graph, 1, 0); }

  TensorPrints shared() const {
    std::set<std::int64_t> sizes;
    for (const auto& [name, tensor] : tensors_)
      if (reads_of(name) > 1) sizes.insert(tensor->elements);
    TensorPrints all, shared;
    for (const auto& [name, tensor] : tensors_)
      if (sizes.contains(tensor->elements)) ++all[print(*tensor)];
    for (const auto& [name, tensor] : tensors_) {
      if (reads_of(name) < 2) continue;
      const TensorPrint own = print(*tensor);
      shared[own] = all.at(own);
    }
    return shared;
  }

 private:
  void count(const OnnxGraph& graph, std::int64_t rounds, int depth) {
    for (const OnnxTensor& tensor : graph.initializers) add(tensor.name, tensor);
    for (const OnnxNode& node : graph.nodes) {
      if (node.op_type == "Constant" && node.domain.empty() && !node.outputs.empty()) {
        const OnnxAttribute* const value = node.find("value");
        if (value != nullptr && value->tensor != nullptr) add(node.outputs[0], *value->tensor);
      }
      if (leaves_elements(node) && !node.inputs.empty() && !node.outputs.empty() &&
          tensors_.contains(origin(node.inputs[0]))) {
        views_[node.outputs[0]] = origin(node.inputs[0]);
        continue;
      }
      for (const std::string_view name : node.inputs) reads_[origin(name)] += rounds;
      const auto bodies = inner_graphs(node);
      // then_branch before else_branch: of tensors of one name the first counts.
      for (std::size_t i = bodies.size(); depth < kDeepestGraph && i-- > 0;) {
        try {
          bodies_.push_back(read_subgraph(model_, node, bodies[i]));
          count(bodies_.back(), node.op_type == "If" ? rounds : 2, depth + 1);
        } catch (const Error&) {  // the import says what is wrong
        }
      }
    }
  }

  void add(std::string_view name, const OnnxTensor& tensor) {
    if (!tensor.absent && !is_integer(tensor.type) && tensor.elements > 1)
      tensors_.emplace(name, &tensor);
  }
  std::string_view origin(std::string_view name) const {
    const auto found = views_.find(name);
    return found == views_.end() ? name : found->second;
  }
  std::int64_t reads_of(std::string_view name) const {
    const auto found = reads_.find(name);
    return found == reads_.end() ? 0 : found->second;
  }
  static TensorPrint print(const OnnxTensor& tensor) {
    Tensor out;
    out.shape = tensor.dims;
    out.data = to_floats(tensor);
    return print_of(out);
  }

  const OnnxModel& model_;
  std::list<OnnxGraph> bodies_;
  std::map<std::string_view, const OnnxTensor*> tensors_;
  std::map<std::string_view, std::string_view> views_;
  std::map<std::string_view, std::int64_t> reads_;
};

LoadedNetwork from_onnx(const std::string& path, const Dataset& data) {
  OnnxModel model = read_onnx(path);
  std::string onnx = graph_bytes(model);
  const ImportOptions options = shapes_of(model, data);
  const TensorPrints shared = shared_tensors(model);
  Graph graph = fitting(import_onnx(std::move(model), options), path, data);
  tie_parameters(graph, shared);
  // As recipes, folders and reports call it.
  graph.name = utf8_text(std::filesystem::path(path).stem().string());
  return {std::move(graph), true, std::move(onnx)};
}

/// Graph and weights of a checkpoint, without the network before.
LoadedNetwork whole_of(const Checkpoint& checkpoint, const std::string& path, const Dataset& data) {
  const bool folded = is_folded(checkpoint);
  if (const std::string* const onnx = graph_of(checkpoint, path)) {
    const auto options = [&](const OnnxModel& model) { return shapes_of(model, data); };
    return {.graph = fitting(import_checkpoint(checkpoint, path, options), path, data),
            .has_weights = true,
            .onnx = *onnx,
            .folded = folded};
  }
  const std::string name = network_name(checkpoint);
  if (name.empty()) {
    throw Error(path +
                ": expected metadata 'net' with the network's name, as `numemu train` writes it "
                "(give the name before the file where it has none: NAME=FILE)");
  }
  LoadedNetwork network{.graph = build_net(name, data), .has_weights = true, .folded = folded};
  load_checkpoint(network.graph, checkpoint, path);
  return network;
}

/// The network whose training under a recipe gave the checkpoint, where its graph has all weights.
std::optional<Graph> before_training(const Checkpoint& checkpoint, const std::string& path,
                                     const Dataset& data) {
  if (!is_trained_under_recipe(checkpoint) || is_folded(checkpoint)) return std::nullopt;
  const std::string* const onnx = graph_of(checkpoint, path);
  if (onnx == nullptr) return std::nullopt;
  OnnxModel model = parse_onnx(path, *onnx, true);
  if (std::ranges::any_of(model.graph.initializers, &OnnxTensor::absent)) return std::nullopt;
  const ImportOptions options = shapes_of(model, data);
  Graph graph = fitting(import_onnx(std::move(model), options), path, data);
  graph.name = network_name(checkpoint);
  return graph;
}

std::optional<OnnxModel> stored_model(const std::string& name) {
  if (names_onnx_file(name)) return read_onnx(name);
  if (const auto given = network_with_weights(name); given && names_onnx_file(given->first))
    return read_onnx(given->first);
  if (!name.ends_with(".safetensors")) return std::nullopt;
  const Checkpoint checkpoint = read_weights(name);
  const std::string* const onnx = graph_of(checkpoint, name);
  if (onnx == nullptr) return std::nullopt;
  return parse_onnx(name, *onnx, true);
}

}  // namespace

TensorPrints shared_tensors(const OnnxModel& model) { return Reads(model).shared(); }

std::optional<OnnxModel> source_model(const std::string& name) {
  std::optional<OnnxModel> model = stored_model(name);
  if (model) model = with_einsum_pairs(*std::move(model));
  return model;
}

std::optional<ImportedFile> source_file(const std::string& name, const Dataset& data) {
  std::optional<OnnxModel> model = source_model(name);
  if (!model) return std::nullopt;
  ImportedModel imported = import_onnx(*model, shapes_of(*model, data));
  return ImportedFile{*std::move(model), std::move(imported)};
}

std::pair<std::string, std::string> name_and_file(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals == std::string::npos ? std::pair{std::string(), text}
                                     : std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

bool names_onnx_file(const std::string& name) { return name.ends_with(".onnx"); }

std::optional<std::pair<std::string, std::string>> network_with_weights(const std::string& text) {
  auto given = name_and_file(text);
  if (!names_weights_file(given.second)) return std::nullopt;
  const std::vector<std::string> known = net_names();
  if (!names_onnx_file(given.first) && std::ranges::find(known, given.first) == known.end())
    return std::nullopt;
  return given;
}

bool names_weights_file(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".gguf") || name.ends_with(".npz");
}

std::string network_name(const Checkpoint& checkpoint) { return metadata_of(checkpoint, "net"); }

bool is_trained_under_recipe(const Checkpoint& checkpoint) {
  return !metadata_of(checkpoint, "training").empty() && !metadata_of(checkpoint, "recipe").empty();
}

LoadedNetwork network_of(const Checkpoint& checkpoint, const std::string& path,
                         const Dataset& data) {
  LoadedNetwork network = whole_of(checkpoint, path, data);
  if (has_tuned_from(checkpoint)) {
    network.before = whole_of(checkpoint, path, data).graph;
    load_tuned_from(*network.before, checkpoint, path);
  } else {
    network.before = before_training(checkpoint, path, data);
  }
  return network;
}

LoadedNetwork load_network(const std::string& name, const Dataset& data) {
  if (names_onnx_file(name)) return from_onnx(name, data);
  if (const auto given = network_with_weights(name)) {
    LoadedNetwork network = load_network(given->first, data);
    load_parameters(network.graph, read_weights(given->second), given->second);
    network.has_weights = true;
    return network;
  }
  if (name.ends_with(".safetensors")) return network_of(read_weights(name), name, data);
  return {build_net(name, data), false};
}

}  // namespace numemu::net

// The graph of a checkpoint is a ModelProto whose initializers may lack their data.
#include "emu/net/model/onnx/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "emu/net/model/onnx/writer.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kGraphTensor = "onnx_graph", kKey = "graph", kKeyVersion = "onnx 1";
/// Smaller tensors keep their data: most are not weights.
constexpr std::int64_t kLeastElements = 4096;

/// Operators of the network that hold a constant input as a parameter where another input is not
/// constant.
constexpr std::array<std::string_view, 8> kHolders = {"Conv",   "ConvTranspose", "Gemm",   "GRU",
                                                      "Gather", "LSTM",          "MatMul", "RNN"};

/// The initializers whose values become parameters, whatever they are.
std::set<std::string_view> weights_of(const OnnxGraph& graph) {
  std::set<std::string_view> weights, live, others;
  for (const OnnxTensor& tensor : graph.initializers) {
    if (!is_integer(tensor.type) && tensor.elements >= kLeastElements) weights.insert(tensor.name);
  }
  for (const OnnxTensor& tensor : graph.initializers) others.insert(tensor.name);
  for (const OnnxValueInfo& input : graph.inputs) {
    if (!others.contains(input.name)) live.insert(input.name);
  }
  for (const OnnxNode& node : graph.nodes) {
    const auto is_live = [&](std::string_view name) { return live.contains(name); };
    const bool reads_live = std::ranges::any_of(node.inputs, is_live);
    if (reads_live) live.insert(node.outputs.begin(), node.outputs.end());
    if (reads_live && node.domain.empty() &&
        std::ranges::find(kHolders, node.op_type) != kHolders.end())
      continue;
    for (const std::string_view name : node.inputs) weights.erase(name);
  }
  for (const OnnxValueInfo& output : graph.outputs) weights.erase(output.name);
  return weights;
}

/// Of each output that a node gives: the node's name, and the name of the node before a batch
/// normalisation, into which that may be folded.
std::vector<std::vector<std::string>> names_of_outputs(const ImportedModel& model) {
  std::vector<std::vector<std::string>> out;
  const auto first = static_cast<int>(model.graph.inputs.size());
  for (const OnnxPort& port : model.outputs) {
    std::vector<std::string>& names = out.emplace_back();
    for (int value = port.value; value >= first;) {
      const Node& node = model.graph.nodes[static_cast<std::size_t>(value - first)];
      names.push_back(node.name);
      value = node.op->kind() == "batch_norm" ? node.inputs.at(0) : -1;
    }
  }
  return out;
}

}  // namespace

std::string graph_bytes(const OnnxModel& model) {
  const std::set<std::string_view> weights = weights_of(model.graph);
  auto tensor = model.graph.initializers.begin();
  return with_graph_fields(WireReader(model.path, model.text()), graph_field::kInitializer,
                           [&](const WireField& field, std::string& graph) {
                             const OnnxTensor& each = *tensor++;
                             const bool weight = weights.contains(each.name);
                             if (!weight && !each.raw) return put_field(graph, field);
                             // Without its data, or with them in raw_data, wherever the file has
                             // them.
                             std::string bytes =
                                 OnnxWriter::tensor(each.name, each.type, each.dims);
                             if (!weight) put_bytes(bytes, tensor_field::kRawData, each.data);
                             put_bytes(graph, field.number, bytes);
                           });
}

void add_graph(Checkpoint& checkpoint, std::string graph_bytes) {
  checkpoint.metadata.emplace_back(kKey, kKeyVersion);
  checkpoint.bytes.push_back({std::string(kGraphTensor), std::move(graph_bytes)});
}

const std::string* graph_of(const Checkpoint& checkpoint, const std::string& path) {
  const auto key =
      std::ranges::find(checkpoint.metadata, kKey, &std::pair<std::string, std::string>::first);
  if (key == checkpoint.metadata.end()) return nullptr;
  if (key->second != kKeyVersion)
    throw Error(fmt::format("{}: metadata '{}': expected '{}', found '{}'", path, kKey, kKeyVersion,
                            key->second));
  const auto found = std::ranges::find(checkpoint.bytes, kGraphTensor, &NamedBytes::name);
  if (found == checkpoint.bytes.end())
    throw Error(
        fmt::format("{}: expected a U8 tensor {} with the graph, found none", path, kGraphTensor));
  return &found->data;
}

ImportedModel import_checkpoint(const Checkpoint& checkpoint, const std::string& path,
                                const std::function<ImportOptions(const OnnxModel&)>& options) {
  const std::string* const graph = graph_of(checkpoint, path);
  if (graph == nullptr) throw Error(path + ": expected a checkpoint with a graph");
  OnnxModel model = parse_onnx(fmt::format("{}: {}", path, kGraphTensor), *graph, true);
  std::int64_t left = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) left += tensor.value.size();
  for (const OnnxTensor& tensor : model.graph.initializers) {
    if (!tensor.absent) continue;
    if (tensor.elements > left) {
      throw Error(fmt::format("{}: weight '{}' of shape {} exceeds the tensors of the checkpoint",
                              model.path, tensor.name, to_string(tensor.dims)));
    }
    left -= tensor.elements;
  }
  const ImportOptions chosen = options(model);
  ImportedModel imported = import_onnx(std::move(model), chosen);
  for (const auto& [key, value] : checkpoint.metadata) {
    if (key == "net") imported.graph.name = value;
  }
  const std::vector<std::vector<std::string>> names = names_of_outputs(imported);
  load_checkpoint(imported.graph, checkpoint, path);
  if (!is_folded(checkpoint)) return imported;
  // Values have other numbers then.
  for (std::size_t o = 0; o < names.size(); ++o) {
    for (const std::string& name : names[o]) {
      const auto node = std::ranges::find(imported.graph.nodes, name, &Node::name);
      if (node == imported.graph.nodes.end()) continue;
      imported.outputs[o].value =
          imported.graph.value_of(static_cast<std::size_t>(node - imported.graph.nodes.begin()));
      break;
    }
  }
  return imported;
}

}  // namespace numemu::net

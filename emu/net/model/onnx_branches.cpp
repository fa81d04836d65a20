// The importer's If: the reads of both branches are counted, the nodes of one are imported.
#include <fmt/format.h>

#include "emu/net/model/onnx_importer.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr int kDeepest = 8;  // branches inside branches

}  // namespace

/// Of both branches of an If: which one is taken is not known yet.
void OnnxImporter::count_reads(const OnnxGraph& graph, int depth) {
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string_view name : node.inputs) ++reads_[name];
    if (node.op_type != "If" || !node.domain.empty()) continue;
    try {
      if (depth == kDeepest) throw Error(fmt::format("expected at most {} nested graphs", depth));
      std::array<OnnxGraph, 2>& branches = branches_[&node];
      branches[0] = read_subgraph(model_, node, "else_branch");
      branches[1] = read_subgraph(model_, node, "then_branch");
      for (const OnnxGraph& branch : branches) count_reads(branch, depth + 1);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: byte {}: node '{}' (If): {}", model_.path, node.offset,
                              printable(node.name), error.what()));
    }
  }
  for (const OnnxValueInfo& info : graph.outputs) ++reads_[info.name];
}

void OnnxImporter::add_initializers(const OnnxGraph& graph) {
  for (const OnnxTensor& tensor : graph.initializers) {
    initializers_[tensor.name] = &tensor;
    if (!made_.insert(tensor.name).second)
      throw Error(fmt::format("{}: byte {}: duplicate initializer '{}'", model_.path, tensor.offset,
                              printable(tensor.name)));
  }
}

/// The branch that a constant condition takes, its nodes in place of the If.
void OnnxImporter::import_branch(const OnnxNode& node) {
  note_outputs(node);
  for (const std::string_view name : node.inputs) load(name);
  if (!input(node, 0).is_constant())
    throw Error("expected a condition that follows from the file and from shapes");
  const std::vector<std::int64_t> condition = constant(node, 0).integers();
  if (condition.size() != 1) throw Error("expected a condition of one truth value");
  for (const std::string_view name : node.inputs) release(name);
  const OnnxGraph& branch = branches_.at(&node)[condition[0] != 0 ? 1 : 0];
  if (branch.outputs.size() != node.outputs.size())
    throw Error(fmt::format("expected {} results of the branch, found {}", node.outputs.size(),
                            branch.outputs.size()));
  add_initializers(branch);
  for (const OnnxNode& inner : branch.nodes) {
    try {
      import_node(inner);
    } catch (const Error& error) {
      throw Error(fmt::format("node '{}' ({}): {}", printable(inner.name), printable(inner.op_type),
                              error.what()));
    }
  }
  for (std::size_t i = 0; i < branch.outputs.size(); ++i) {
    const std::string_view name = branch.outputs[i].name;
    load(name);
    const auto found = values_.find(name);
    if (found == values_.end())
      throw Error(fmt::format("result '{}' of the branch is not computed", printable(name)));
    OnnxValue value = found->second;
    release(name);
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = std::move(value);
  }
}

}  // namespace numemu::net

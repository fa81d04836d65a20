#include "emu/net/model/onnx/shared_tensors.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <set>
#include <string_view>

#include "emu/net/model/onnx/constant.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr int kDeepestGraph = 8;

bool leaves_elements(const OnnxNode& node) {
  constexpr std::array<std::string_view, 6> kOps = {"Flatten", "Identity",  "Reshape",
                                                    "Squeeze", "Transpose", "Unsqueeze"};
  return node.domain.empty() && std::ranges::find(kOps, node.op_type) != kOps.end();
}

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
      const bool loops = node.op_type == "Loop" || node.op_type == "Scan";
      if ((!loops && node.op_type != "If") || !node.domain.empty() || depth == kDeepestGraph)
        continue;
      for (const std::string_view body : {"body", "then_branch", "else_branch"}) {
        if (node.find(body) == nullptr) continue;
        try {
          bodies_.push_back(read_subgraph(model_, node, body));
          count(bodies_.back(), loops ? 2 : rounds, depth + 1);
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
    return print_of(OnnxConstant{tensor.dims, false, {}, tensor.type, &tensor}.tensor());
  }

  const OnnxModel& model_;
  std::list<OnnxGraph> bodies_;
  std::map<std::string_view, const OnnxTensor*> tensors_;
  std::map<std::string_view, std::string_view> views_;
  std::map<std::string_view, std::int64_t> reads_;
};

}  // namespace

TensorPrints shared_tensors(const OnnxModel& model) { return Reads(model).shared(); }

}  // namespace numemu::net

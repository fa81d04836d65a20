#include "policies/edges/base/edge_groups.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

namespace numemu::policies {
namespace {

bool fuses(const net::Op& op) {
  return bounds_result(op) || op.on_codes() == net::OnCodes::normalises;
}

/// Union and find.
class Sets {
 public:
  explicit Sets(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(int a, int b) { parent_[find(std::max(a, b))] = find(std::min(a, b)); }

 private:
  std::vector<int> parent_;
};

}  // namespace

bool bounds_result(const net::Op& op) { return op.on_codes() == net::OnCodes::bounds; }

EdgeGroups::EdgeGroups(const net::Graph& graph,
                       const std::function<EdgeRules(std::string_view)>& rules_of) {
  const std::size_t count = graph.value_count(), inputs = graph.inputs.size();
  std::vector<EdgeRules> rules;
  for (std::size_t v = 0; v < count; ++v)
    rules.push_back(rules_of(graph.value_name(static_cast<int>(v))));
  std::vector<std::vector<std::size_t>> readers(count);  // nodes
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int v : graph.nodes[i].inputs) readers[v].push_back(i);
  }
  std::set<int> outputs = {static_cast<int>(count) - 1};
  for (const net::GraphOutput& output : graph.outputs) outputs.insert(output.value);
  const auto node_of = [&](int value) -> const net::Node* {
    const auto v = static_cast<std::size_t>(value);
    return v < inputs ? nullptr : &graph.nodes[v - inputs];
  };
  // A value and its views are one tensor.
  const auto view_of_one = [&](int value) {
    const net::Node* const node = node_of(value);
    return node != nullptr && node->op->result() == net::ResultKind::view &&
           !node->inputs.empty() && node->op->on_codes() != net::OnCodes::joins;
  };
  const auto is_constant = [&](int value) {
    const net::Node* const node = node_of(value);
    return node != nullptr && node->inputs.empty();
  };

  // What is kept as codes, from products on.
  std::vector<bool> coded(count);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    if (node.op->result() != net::ResultKind::product) continue;
    coded[graph.value_of(i)] = true;
    for (const int v : node.inputs) coded[v] = !is_constant(v);
  }
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const net::Node& node = graph.nodes[i];
      const int own = graph.value_of(i);
      if (node.op->on_codes() == net::OnCodes::never && !view_of_one(own)) continue;
      std::vector<int> together = {own};
      if (view_of_one(own)) {
        together.push_back(node.inputs.front());
      } else {
        std::ranges::copy_if(node.inputs, std::back_inserter(together),
                             [&](int v) { return !is_constant(v); });
      }
      const bool any = std::ranges::any_of(together, [&](int v) { return coded[v]; });
      for (const int v : together) {
        grows = grows || (any && !coded[v]);
        coded[v] = coded[v] || any;
      }
    }
  }
  for (std::size_t v = 0; v < count; ++v) coded[v] = coded[v] && rules[v].quantized;

  // What stands between the operator and its quantizer.
  at_.assign(count, kNone);
  for (int v = static_cast<int>(count) - 1; v >= 0; --v) {
    if (!coded[v]) continue;
    at_[v] = v;
    if (!rules[v].fused || node_of(v) == nullptr || view_of_one(v) || outputs.contains(v) ||
        readers[v].size() != 1)
      continue;
    const std::size_t reader = readers[v].front();
    const int next = graph.value_of(reader);
    if (fuses(*graph.nodes[reader].op) && coded[next]) at_[v] = at_[next];
  }

  Sets tensors(count);
  const auto rounded = [&](int v) { return coded[v] && at_[v] == v; };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const int own = graph.value_of(i);
    const bool same = view_of_one(own) || node.op->on_codes() == net::OnCodes::picks;
    if (same && rounded(own) && rounded(node.inputs.front()))
      tensors.join(own, node.inputs.front());
  }
  Sets sets = tensors;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const int own = graph.value_of(i);
    const net::OnCodes on_codes = node.op->on_codes();
    int first = kNone;
    const bool add = on_codes == net::OnCodes::adds && rules[own].add_one;
    const bool concat = on_codes == net::OnCodes::joins && rules[own].concat_one;
    if (concat && rounded(own)) first = own;
    for (const int v : node.inputs) {
      if (!(add || concat) || !rounded(v)) continue;
      if (first != kNone) sets.join(first, v);
      first = v;
    }
  }
  group_.assign(count, kNone);
  tensor_.assign(count, kNone);
  rounds_.assign(count, false);
  std::vector<int> number(count, kNone);
  for (int v = 0; v < static_cast<int>(count); ++v) {
    if (!rounded(v)) continue;
    int& of = number[sets.find(v)];
    if (of == kNone) of = groups_++;
    group_[v] = of;
    tensor_[v] = tensors.find(v);
    const net::Node* const node = node_of(v);
    rounds_[v] = node != nullptr && node->op->result() != net::ResultKind::view;
  }
}

}  // namespace numemu::policies

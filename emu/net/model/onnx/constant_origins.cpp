// Where the constants of a graph come from in the file, and which are parameters by what reads
// them.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/importer.hpp"

namespace numemu::net {

/// Of a constant that is computed: the first tensor of real numbers that it is computed from, or
/// the codes of one.
void OnnxImporter::note_origin(const OnnxNode& node, OnnxValue& result) const {
  // An output that is left out is null.
  if (!result.is_constant() || result.constant == nullptr || result.constant->integer ||
      !result.tensor.empty())
    return;
  result.folded = true;
  if (node.op_type == "Constant" && !node.outputs.empty() && result.constant->size() > 1)
    result.tensor = node.outputs[0];
  for (std::size_t i = 0; i < node.inputs.size() && result.tensor.empty(); ++i) {
    if (!has_input(node, i)) continue;
    const OnnxValue& from = input(node, i);
    if (!from.is_constant() || from.constant->size() < 2) continue;
    if (!from.constant->integer || node.op_type == "DequantizeLinear") result.tensor = from.tensor;
  }
}

/// Whether it is an input of the network, moved and scaled by constants at most, as means and
/// deviations of the data do.
bool OnnxImporter::is_scaled_input(int value) const {
  constexpr std::string_view kArithmetic[] = {"add", "subtract", "multiply", "divide"};
  std::set<int> seen;
  std::vector<int> open{value};
  while (!open.empty()) {
    const int at = open.back() - static_cast<int>(graph_.inputs.size());
    open.pop_back();
    if (at < 0 || !seen.insert(at).second) continue;
    const Node& node = graph_.nodes[static_cast<std::size_t>(at)];
    if (node.op->result() != ResultKind::view &&
        std::ranges::find(kArithmetic, node.op->kind()) == std::end(kArithmetic))
      return false;
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return true;
}

/// Initializers that are parameters, as this node reads them: operands of a product, and vectors
/// along the last axis of what a sum or product of elements reads (a bias, a gain). Tables and
/// masks of more axes may be buffers, and so may what meets an input of the network.
void OnnxImporter::note_roles(const OnnxNode& node, const OnnxValue& result) {
  constexpr std::string_view kProducts[] = {"MatMul", "Einsum"},
                             kElements[] = {"Add", "Sub", "Mul", "Div"};
  const auto is_one_of = [&](const auto& names) {
    return node.domain.empty() && std::ranges::find(names, node.op_type) != std::end(names);
  };
  const bool product = is_one_of(kProducts);
  if (result.is_constant() || (!product && !is_one_of(kElements))) return;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& value = input(node, i);
    const auto found = initializers_.find(value.tensor);
    if (!value.is_constant() || value.folded || found == initializers_.end() ||
        found->second->type != OnnxType::float32 || found->second->elements < 2)
      continue;
    if (product) {
      roles_[found->first] = ConstantOrigin::Role::weight;
      continue;
    }
    const OnnxValue& other = input(node, 1 - i);
    const Shape& dims = value.constant->dims;
    const bool last = !dims.empty() && dims.back() == found->second->elements &&
                      result.shapes[0].back() == dims.back() &&
                      result.shapes[1].back() == dims.back();
    // Before operator set 7 an attribute says which axes these are.
    if (!last || result.image || node.find("axis") != nullptr || is_scaled_input(other.number))
      continue;
    roles_.emplace(found->first, ConstantOrigin::Role::vector);
  }
}

/// Gives every constant what was noted of the tensor that it is.
void OnnxImporter::set_origins() {
  for (const Node& node : graph_.nodes) {
    auto* const constant = dynamic_cast<Constant*>(node.op.get());
    if (constant == nullptr) continue;
    ConstantOrigin origin = constant->origin();
    const auto role = roles_.find(origin.tensor);
    if (role != roles_.end() && !origin.computed) origin.role = role->second;
    origin.tensor = printable(origin.tensor);
    constant->set_origin(std::move(origin));
  }
}

}  // namespace numemu::net

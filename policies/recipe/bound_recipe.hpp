// A recipe bound to a network: what every node and every product uses, found once. Predictions,
// calibration, notes, bits and numerics read it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// A product of the network, and what it uses: formats, masks and units, with the scales that
/// `ranges` fix.
struct BoundProduct {
  const net::GemmLayer gemm;
  const LayerRecipe& roles;
};

/// Immutable; copies share what was found. The graph must outlive it, and keep its nodes.
class BoundRecipe {
 public:
  /// Throws Error where a unit does not take the operands of a layer. `where`, the recipe's file,
  /// starts messages of those who read this.
  BoundRecipe(const Recipe&, const net::Graph&, const std::string& where = "recipe");

  const Recipe& recipe() const { return bound_->recipe; }
  /// What the recipe says of the network as a whole.
  const Recipe* operator->() const { return &bound_->recipe; }
  const net::Graph& graph() const { return *bound_->graph; }
  const std::string& where() const { return bound_->where; }

  /// Every layer that multiplies, in the order of forward.
  const std::vector<BoundProduct>& products() const { return bound_->products; }
  /// Of a node, a product inside one, or an input of the network. Throws Error for any other name.
  const LayerRecipe& layer(std::string_view name) const { return at(name).roles; }
  /// The policies of such a layer, one entry for each of policy_slots().
  const std::vector<std::optional<PolicyChoice>>& policies(std::string_view name) const {
    return at(name).policies;
  }
  /// The names of all of them, in order.
  std::vector<std::string> names() const;

  /// The policy of that key that acts on the layer; null without.
  const PolicyChoice* chosen(std::string_view key, std::string_view layer) const;
  /// Whether there is one that acts in inference.
  bool chooses_for_inference(std::string_view key, std::string_view layer) const;

 private:
  struct Layer {
    LayerRecipe roles;
    std::vector<std::optional<PolicyChoice>> policies;
  };
  struct Bound {
    Recipe recipe;
    const net::Graph* graph;
    std::string where;
    std::map<std::string, Layer, std::less<>> layers;
    std::vector<BoundProduct> products;
  };
  const Layer& at(std::string_view name) const;

  std::shared_ptr<const Bound> bound_;
};

/// Whether the role has a static scale: one scale for the tensor, and a rule that is not `dynamic`.
bool has_static_scale(const CalibrationPolicy&, const RolePolicy&);
/// Whether samples give that scale: not that of scale rule `none`, which is 1, nor one that ranges
/// fix.
bool is_calibrated(const CalibrationPolicy&, const RolePolicy&);

/// An operand of a forward product whose static scale samples give.
struct CalibratedOperand {
  const net::GemmLayer& gemm;
  const RolePolicy& policy;
};
/// Those of a network under a rule of calibration, in the order of forward: an operand of two roles
/// stands twice.
std::vector<CalibratedOperand> calibrated_operands(const BoundRecipe&, const CalibrationPolicy&);

}  // namespace numemu::policies

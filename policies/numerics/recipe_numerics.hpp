// A recipe as the numerics of a network: the policies that it chooses, stacked on its roles.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/numerics/sets_scales.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/fixed_ranges.hpp"

namespace numemu::policies {

/// Numerics on top of each other: at the bottom those that are given, then one policy for each that
/// some layer chose, in the opposite order of policy_slots().
class PolicyStack {
 public:
  /// Both are read until the end of life. `takes` says which kinds of policies are stacked.
  PolicyStack(const BoundRecipe&, net::Numerics& bottom,
              const std::function<bool(const PolicyKind&)>& takes = {});
  net::Numerics& top() const { return policies_.empty() ? bottom_ : *policies_.back(); }
  const std::vector<std::unique_ptr<Policy>>& policies() const { return policies_; }

  /// Freezes every policy, the outermost first.
  void freeze(const net::Graph&, const Calibration&);
  /// What the policies make of a float32 input of a layer; null where no one changes any.
  RoleNumerics::ReadInput read_input() const;

 private:
  net::Numerics& bottom_;
  std::vector<std::unique_ptr<Policy>> policies_;  ///< the innermost first
};

/// Policies on roles.
class NumericsStack {
 protected:
  explicit NumericsStack(const BoundRecipe& recipe)
      : recipe_(recipe), roles_(recipe_), stack_(recipe_, roles_) {}

  const BoundRecipe recipe_;
  RoleNumerics roles_;
  PolicyStack stack_;
};

/// Numerics of a recipe: see RoleNumerics for products and tensors. Every hook goes through the
/// policies, the outermost first.
class RecipeNumerics : private NumericsStack, public net::Forwarding {
 public:
  /// Throws Error when a pattern matches no layer, a role cannot be applied, or a policy
  /// contradicts another part of the recipe. The graph must outlive the numerics.
  explicit RecipeNumerics(const BoundRecipe& recipe);
  RecipeNumerics(const Recipe& recipe, const net::Graph& graph, const std::string& where = "recipe")
      : RecipeNumerics(BoundRecipe(recipe, graph, where)) {}

  const BoundRecipe& bound() const { return recipe_; }

  /// Freezes every policy, then the roles, calibrated on the first min(available,
  /// calibrate.samples) samples. `shared`: see RoleNumerics::freeze(); policies that rewrite what
  /// layers read take nothing from it.
  void freeze(const net::Graph&, std::int64_t available, const CalibrationBatch&,
              SeenTensors* shared = nullptr);
  /// freeze() with everything recorded beforehand.
  void freeze(const net::Graph&, const FloatReference&);
  /// After freeze(), when weights of the graph changed: policies are frozen anew, and weights are
  /// quantized anew; static activation scales stay.
  void freeze_weights(const net::Graph&, const Calibration&);
  /// Throws Error naming the layer where a policy or role does not serve training.
  void require_trainable(const std::string& where) const;
  /// Throws Error naming the key where a policy or the order of the exchange does not serve a run
  /// of those options.
  void require_options(const std::string& where, const net::TrainOptions&) const;

  /// Of the steps that follow, for policies that learn scales.
  void set_learning_rate(double);
  /// The ranges that training has learned so far: with_ranges() uses them.
  FixedRanges learned_ranges(bool best = false) const;

  /// What products were multiplied with: scales, weights and counts.
  RoleNumerics& roles() { return roles_; }
  const RoleNumerics& roles() const { return roles_; }
  /// Of a policy of the key `edges`.
  RoundedResults rounded_results() const;
  /// See RoleNumerics; false where a policy above the roles may read weights (LeavesWeights).
  bool holds_weight(std::string_view layer) const;
};

/// Frees the weights of a node that has run under the frozen numerics, as far as these hold what
/// they multiply in later passes (RoleNumerics::holds_weight()); their shapes stay. Nothing else
/// may read these weights any more: no pass in float32, no prediction, no digest.
void release_weights(net::Node&, const RecipeNumerics&);

}  // namespace numemu::policies

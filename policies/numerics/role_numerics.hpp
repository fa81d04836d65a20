// The roles of a recipe as numerics: operands quantized, multiplied on a unit, scaled back; tensors
// stored.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/layer_state.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// Numerics of the roles that are no operands or results of products: what becomes of tensors as
/// they are stored, kept for backward or sent, and of results between operators
/// (stored_roles.cpp).
class StoredRoles : public net::Numerics {
 public:
  /// From now on tables are quantized once, and results of inference sample by sample.
  virtual void freeze() = 0;
  /// Tables changed.
  virtual void forget_tables() = 0;
};
std::unique_ptr<StoredRoles> stored_roles(const BoundRecipe&);

/// Numerics of the roles, units and calibration of a recipe: its own are products, the rest is
/// that of StoredRoles. Dynamic until freeze(): every product
/// computes its scales from the current operands, unless a policy above gave it one. After
/// freeze(): weights are quantized once and activation scales come from calibration (inference, any
/// threads). Scales that are not calibrated are then those of each sample for itself: the tensor
/// scale of a block format, the calibration rule `dynamic`, and the roles vector and output; rows
/// and blocks have their own always. So the result of a sample does not depend on its neighbours
/// (docs/adr/0001).
class RoleNumerics : public net::Forwarding {
 public:
  /// Throws Error when a pattern matches no layer or a role cannot be applied.
  explicit RoleNumerics(const BoundRecipe&);

  /// What the policies above make of a float32 input of a layer before a product reads it.
  using ReadInput =
      std::function<void(std::string_view layer, std::int64_t first_sample, net::Tensor&)>;
  /// Calibrates static activation scales on what products read. What `shared` has of earlier calls
  /// with the same float32 network and samples is not computed again, and what it lacks is added;
  /// the scales are the same with and without. With a ReadInput nothing is shared.
  void freeze(const net::Graph&, const Calibration&, const ReadInput&,
              SeenTensors* shared = nullptr);
  /// After freeze(), when weights changed: they are quantized anew; static scales stay.
  void forget_weights();
  /// Static activation scales of the left operands by layer, after freeze().
  StaticScales static_scales() const;
  /// static_scales() of right operands that are activations.
  StaticScales second_scales() const;
  /// From now on the operand of the layer has these scales, which a policy above learns.
  /// To be called while nothing runs but the policy's own hook.
  void use_scales(std::string_view layer, RolePart, FixedScales);
  /// The same of a right operand that is an activation.
  void use_second_scale(std::string_view layer, const TensorScale&);
  /// From now on, after freeze(), the layer's forward product gives codes.
  void use_result_codes(std::string_view layer, ResultCodes);
  /// Throws Error naming the layer where a product of backward needs dequantized numbers, as scales
  /// vary along its depth, and its unit takes no float32.
  void require_trainable(const std::string& where) const;

  /// Called with every product that its unit has computed, its operands as the policies above left
  /// them, on that thread, before the role `output` converts the result. To be set while nothing
  /// runs.
  void hear_units(std::function<void(const net::Product&)> heard) { heard_ = std::move(heard); }

  void product(const net::Step&, const net::Product&) override;
  /// Those of all layers, in their order.
  std::vector<std::int64_t> counts() const override;
  void add_counts(std::span<const std::int64_t> more) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;

  /// What one layer uses, and its counts since construction or reset_counts(): of every operand
  /// that was quantized, frozen weights once.
  const LayerRecipe& recipe(std::string_view layer) const;
  /// Of a layer after freeze() and a product; null before, and where the weight is not quantized
  /// whole.
  const PlainOperand* frozen_weight(std::string_view layer) const;
  /// After freeze() and a pass: later passes multiply what is kept of the layer's weight, and do
  /// not read the weight itself.
  bool holds_weight(std::string_view layer) const;
  OperandCounts operand_counts(std::string_view layer, net::GemmKind, net::Role) const;
  OperandCounts operand_counts(std::string_view layer, net::GemmKind) const;
  /// Of the layer's forward products.
  SaturationCounts saturation(std::string_view layer) const;
  /// The product of the layer gives the codes of what is fused with its operator.
  bool gives_fused(std::string_view layer) const;
  void reset_counts();

 private:
  using Layers = std::map<std::string, std::unique_ptr<LayerState>, std::less<>>;

  RoleNumerics(const BoundRecipe&, std::unique_ptr<StoredRoles>);
  LayerState& layer(std::string_view name) const;

  const BoundRecipe recipe_;
  Layers layers_;  ///< that multiply
  const std::unique_ptr<StoredRoles> stored_;
  std::function<void(const net::Product&)> heard_;
};

}  // namespace numemu::policies

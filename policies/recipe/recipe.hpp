// A recipe: the numerics of a whole network, as data (schema version 1).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/json.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/zap/zap_mask.hpp"

namespace numemu::policies {

class RecipeUnits;

/// What one layer uses.
struct LayerRecipe {
  std::optional<RolePolicy> weight, activation;
  std::optional<RolePolicy> gradient_dgrad,
      gradient_wgrad;  ///< a gradient may be split by the GEMM that reads it
  /// Results of operators that are not GEMMs; GEMM results before the bias; contexts kept for
  /// backward; optimizer state; what workers send.
  std::optional<RolePolicy> vector, output, saved, state, exchange;
  /// Which elements of the operands are kept before they are quantized.
  std::optional<MaskPolicy> weight_mask, activation_mask, gradient_dgrad_mask, gradient_wgrad_mask;
  std::optional<ZapMask> zap;  ///< role vector: predicted zeros
  std::shared_ptr<const unit::Unit> fprop, dgrad, wgrad;

  const std::optional<RolePolicy>& role(net::Role, net::GemmKind) const;
  const std::optional<MaskPolicy>& mask(net::Role, net::GemmKind) const;
  const unit::Unit& unit(net::GemmKind) const;
};

/// The factor on the loss before backward.
struct LossScale {
  enum class Kind : std::uint8_t { none, fixed, dynamic } kind = Kind::none;
  double value = 1;                     ///< fixed factor, or the first of a dynamic one
  std::int64_t growth_interval = 2000;  ///< dynamic: steps without overflow before it doubles
};

/// How parameters are updated.
struct UpdatePolicy {
  std::string optimizer;           ///< a name of net::optimizer_names()
  const Format* master = nullptr;  ///< null: float32; else weights are kept in its values
  Rounding rounding;               ///< of w + delta to the master format
  LossScale loss_scale;
};

/// Where static activation scales come from.
struct CalibrationPolicy {
  enum class Rule : std::uint8_t { absmax, percentile, mse, kl, dynamic } rule = Rule::absmax;
  double percentile = 100;     ///< of |x|, in (0, 100]
  std::int64_t samples = 512;  ///< calibration samples used
};

/// A validated recipe. The JSON text is its identity; the typed view is per layer.
class Recipe {
 public:
  /// Everything float32 on f32.sequential.
  Recipe();
  /// Fills in documented defaults and checks every key and value. Throws Error naming the key and
  /// what was expected; a value whose policy does not exist is refused by name. `where` starts the
  /// message (a file name); a unit's file is sought beside it.
  static Recipe parse(const Json&, const std::string& where);
  static Recipe parse_text(const std::string& text, const std::string& where);

  /// The canonical form: every key present, canonical names.
  const Json& json() const { return *json_; }
  std::uint64_t seed() const { return seed_; }
  const UpdatePolicy& update() const { return update_; }
  const CalibrationPolicy& calibration() const { return calibration_; }
  /// The numerics of a layer: base, then every matching entry of `layers` in order. Layers that the
  /// same entries match share what was read once. Any number of threads.
  LayerRecipe layer(std::string_view name) const;
  /// The policies of a layer, one entry for each of policy_slots(): base, then every matching
  /// entry.
  std::vector<std::optional<PolicyChoice>> policies(std::string_view layer) const;
  /// Throws Error naming the first pattern of `layers` that matches none of the names.
  void require_matches(const std::vector<std::string>& layer_names, const std::string& where) const;

 private:
  explicit Recipe(std::uint64_t seed) : seed_(seed) {}
  std::shared_ptr<const Json> json_;
  std::shared_ptr<const RecipeUnits> units_;
  struct ParsedLayers;
  std::shared_ptr<ParsedLayers> parsed_;  ///< what layer() has read so far
  std::uint64_t seed_ = 0;
  UpdatePolicy update_;
  CalibrationPolicy calibration_;
  using Choices = std::vector<std::optional<std::optional<PolicyChoice>>>;  // see choices.hpp
  Choices choices_;
  std::vector<std::pair<std::string, Choices>> patches_;  ///< by pattern, in the order of layers
};

/// Whether a glob (* any run, ? one character) matches a whole name.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace numemu::policies

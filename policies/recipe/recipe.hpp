// A recipe: the numerics of a whole network, as data (schema version 1).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/json.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/recipe/role_table.hpp"
#include "policies/zap/zap_mask.hpp"

namespace numemu::policies {

class RecipeUnits;

/// The top-level keys of a recipe, in no order.
const std::vector<std::string>& recipe_keys();

/// What one layer uses.
struct LayerRecipe {
  /// Empty: the tensors stay float32. Where the recipe has no role key or value, those right
  /// operands of attention are quantized as activations; a part of a role that is not split is the
  /// whole.
  PerRolePart<std::optional<RolePolicy>> roles;
  /// The recipe has the role of the part, and splits it where it may be split.
  PerRolePart<bool> given;
  /// Which elements of the operands are kept before they are quantized.
  PerRolePart<std::optional<MaskPolicy>> masks;
  std::optional<ZapMask> zap;  ///< role vector: predicted zeros
  std::shared_ptr<const unit::Unit> fprop, dgrad, wgrad;

  std::optional<RolePolicy>& operator[](RolePart part) & { return roles[part]; }
  const std::optional<RolePolicy>& operator[](RolePart part) const& { return roles[part]; }
  std::optional<RolePolicy> operator[](RolePart part) && { return std::move(roles)[part]; }
  /// The right operand of attention that the recipe tells apart from activations.
  bool apart(net::Role right) const {
    return (right == net::Role::key || right == net::Role::value) && given[operand_part(right, {})];
  }
  const std::optional<RolePolicy>& role(net::Role role, net::GemmKind kind) const {
    return roles[operand_part(role, kind)];
  }
  const std::optional<MaskPolicy>& mask(net::Role role, net::GemmKind kind) const {
    return masks[operand_part(role, kind)];
  }
  const unit::Unit& unit(net::GemmKind) const;
};

/// The factor on the loss before backward.
struct LossScale {
  enum class Kind : std::uint8_t { none, fixed, dynamic } kind = Kind::none;
  double value = 1;                     ///< fixed factor, or the first of a dynamic one
  std::int64_t growth_interval = 2000;  ///< dynamic: steps without overflow before it doubles
  bool operator==(const LossScale&) const = default;
};

/// How parameters are updated.
struct UpdatePolicy {
  std::string optimizer;           ///< the canonical text of one
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

/// How what simulated workers send becomes one gradient; the role `exchange` has its format.
struct ExchangePolicy {
  net::ExchangeOrder order;
  std::shared_ptr<const unit::Unit> unit;  ///< adds float32 operands; null: float32 additions
  bool synchronised = false;               ///< workers share the statistics of batch normalisation
};

/// An objective of training, with its optimizer.
struct ObjectiveChoice {
  std::string rule, optimizer;
};

/// When an entry of `stages` begins.
struct StageStart {
  std::int64_t epoch = 0;  ///< its first epoch, at least 1; 0: at a plateau or a turning point
  /// After an epoch whose loss improved by less than this share of the least loss before.
  double plateau = 0;
  /// In its place: after an epoch whose loss differs from those of the four before by at most this
  /// share of the mean of the first ten.
  std::optional<double> turning_point = {};
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
  /// One that a program builds: parse() of parts without "numemu_recipe", such as
  /// {"roles": {"weight": {"format": "int8"}}}; with that seed, if it is given.
  static Recipe make(Json parts, const std::string& where = "recipe",
                     std::optional<std::uint64_t> seed = std::nullopt);

  /// The canonical form: every key present, canonical names.
  const Json& json() const { return *json_; }
  std::uint64_t seed() const { return seed_; }
  const UpdatePolicy& update() const { return update_; }
  const CalibrationPolicy& calibration() const { return calibration_; }
  const ExchangePolicy& exchange() const { return exchange_; }
  /// In turn within a step; empty where the recipe leaves them to the training options.
  const std::vector<ObjectiveChoice>& objectives() const { return objectives_; }
  /// The entries of `stages`, in order. All else of this class is about the recipe before them.
  const std::vector<StageStart>& stages() const { return starts_; }
  /// The recipe of a stage, without stages: 0 before the first entry, i from entry i - 1 on.
  Recipe in_stage(std::size_t i) const;
  /// That of the last one, which inference uses.
  Recipe last_stage() const { return in_stage(starts_.size()); }
  /// The keys, top-level ones and those of entries of `layers`, that choose what acts in training
  /// alone: policies, objectives, "roles.gradient", "update.master".
  std::vector<std::string> training_keys() const;
  /// The numerics of a layer: base, then every matching entry of `layers` in order. Layers that the
  /// same entries match share what was read once. Any number of threads.
  LayerRecipe layer(std::string_view name) const;
  /// The policies of a layer, one entry for each of policy_slots(): base, then every matching
  /// entry.
  std::vector<std::optional<PolicyChoice>> policies(std::string_view layer) const;
  /// Throws Error naming the first pattern of `layers` that matches none of the names.
  void require_matches(const std::vector<std::string>& layer_names, const std::string& where) const;
  /// Policies belong to nodes. Throws Error naming key and pattern of an entry of `layers` that
  /// chooses one for no node.
  void require_policy_matches(const net::Graph&, const std::string& where) const;

 private:
  explicit Recipe(std::uint64_t seed) : seed_(seed) {}
  /// One without stages. Unit files are sought beside `file`.
  static Recipe read(const JsonReader&, const std::string& file);
  /// Entries of `stages`, on top of the recipe `before` that this one was read from.
  void read_stages(const JsonReader& stages, Json before, const std::string& file);
  std::shared_ptr<const Json> json_;
  std::shared_ptr<const RecipeUnits> units_;
  struct ParsedLayers;
  std::shared_ptr<ParsedLayers> parsed_;  ///< what layer() has read so far
  std::uint64_t seed_ = 0;
  UpdatePolicy update_;
  CalibrationPolicy calibration_;
  ExchangePolicy exchange_;
  Choices choices_;
  std::vector<std::pair<std::string, Choices>> patches_;  ///< by pattern, in the order of layers
  std::vector<ObjectiveChoice> objectives_;
  std::vector<StageStart> starts_;
  std::shared_ptr<const std::vector<Recipe>> in_stages_;  ///< one more; null without stages
};

}  // namespace numemu::policies

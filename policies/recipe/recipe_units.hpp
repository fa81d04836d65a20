// The units of a recipe: by name, from a file, or described in place.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// The products of a layer, in the order of the schema.
inline const std::vector<std::string> kGemms = {"fprop", "dgrad", "wgrad"};

/// Reads units and keeps those that are described. Filled while a recipe is parsed, read-only
/// after.
class RecipeUnits {
 public:
  /// Files are sought in `folder`, empty for the current one.
  explicit RecipeUnits(std::string folder) : folder_(std::move(folder)) {}

  /// The canonical form: the full name of a unit of the catalogue, or the canonical object of a
  /// described one. null is neutral.f32.sequential; a text that ends in ".json" is a file in the
  /// folder; the canonical form contains its object, so that a recipe needs no other file. Only a
  /// table of products (core table) stays a file: its name is relative to the folder and its digest
  /// is added as "products_sha256", so that another table is refused. Throws Error naming
  /// the key.
  Json read(const JsonReader& unit);
  /// The unit of a canonical form that read() gave. A unit of the catalogue is not owned.
  std::shared_ptr<const unit::Unit> find(const Json& canonical) const;

 private:
  Json read_described(Json object, const std::string& where, const std::string& subfolder);

  std::string folder_;
  std::map<std::string, std::shared_ptr<const unit::Unit>> described_;  ///< by canonical text
};

/// {"fprop": {"unit": ...}, ...}, every unit canonical.
Json canonical_gemms(const JsonReader& gemms, RecipeUnits&);
/// A patch of gemms: the same for the keys that it has, null where it has null.
Json canonical_gemm_patches(const JsonReader& gemms, RecipeUnits&);
/// Canonical gemms as the typed view's.
void read_gemms(const Json& canonical, const RecipeUnits&, LayerRecipe&);

// The layers entries of a recipe: patches laid over the base, later ones winning.

/// {"roles", "gemms"} of `base` with an entry's patch laid over, canonical. The entry's gemms are
/// canonical already. Throws Error naming the key.
Json merged_layer(const Json& base, const JsonReader& entry);
/// The typed view of canonical {"roles", "gemms"}.
LayerRecipe typed_layer(const Json& merged, const RecipeUnits&);
/// Throws Error naming the key unless every quantized operand is one that its unit takes.
void require_units_take(const LayerRecipe&, const JsonReader& where);
/// The entries with canonical names, each checked against the base.
Json canonical_layers(const Json& base, const JsonReader& layers, RecipeUnits&);

}  // namespace numemu::policies

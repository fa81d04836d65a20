// A recipe: the numerics of a whole network, as data (schema version 1).
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/numerics.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::policies {

enum class Granularity : std::uint8_t { tensor, channel };

/// How one role is quantized. A role that is absent stays float32.
struct RolePolicy {
  const Format* format = nullptr;
  Rounding rounding;
  Overflow overflow = Overflow::saturate;
  std::string scale;  ///< name of a scale rule
  Granularity granularity = Granularity::tensor;

  /// "float8_e4m3fn rne saturate absmax/tensor"
  std::string describe() const;
};

/// What one layer's GEMMs use.
struct LayerRecipe {
  std::optional<RolePolicy> weight, activation;
  std::optional<RolePolicy> gradient_dgrad,
      gradient_wgrad;  ///< a gradient may be split by the GEMM that reads it
  std::string fprop_unit, dgrad_unit, wgrad_unit;

  const std::optional<RolePolicy>& role(net::Role, net::GemmKind) const;
  const std::string& unit(net::GemmKind) const;
};

/// A validated recipe. The JSON text is its identity; the typed view is per layer.
class Recipe {
 public:
  /// Everything float32 on f32.sequential.
  Recipe();
  /// Fills in documented defaults and checks every key and value. Throws Error naming the key and
  /// what was expected; a value whose policy does not exist is refused by name. `where` starts the
  /// message (a file name).
  static Recipe parse(const nlohmann::ordered_json&, const std::string& where);
  static Recipe parse_text(const std::string& text, const std::string& where);

  /// The canonical form: every key present, canonical names.
  const nlohmann::ordered_json& json() const { return *json_; }
  std::uint64_t seed() const { return seed_; }
  std::int64_t calibration_samples() const { return calibration_samples_; }
  /// The numerics of a layer: base, then every matching entry of `layers` in order.
  LayerRecipe layer(std::string_view name) const;
  /// Throws Error naming the first pattern of `layers` that matches none of the names.
  void require_matches(const std::vector<std::string>& layer_names, const std::string& where) const;

 private:
  explicit Recipe(std::uint64_t seed) : seed_(seed) {}
  std::shared_ptr<const nlohmann::ordered_json> json_;
  std::uint64_t seed_ = 0;
  std::int64_t calibration_samples_ = 512;
};

/// Whether a glob (* any run, ? one character) matches a whole name.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace numemu::policies

// Sentences from the graph's parameters and from the counts of a run.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/notes/silent_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "formats/joined.hpp"
#include "policies/calibrate/static_scale.hpp"

namespace numemu::policies {
namespace {

constexpr std::size_t kMostNamed = 4;

/// Of numbers to integers, or casts.
std::int64_t fixed_quantizers(const net::Graph& graph, bool casts) {
  return std::ranges::count_if(graph.nodes, [&](const net::Node& node) {
    const auto* const quantizer = dynamic_cast<const net::FixedQuantizer*>(node.op.get());
    return quantizer != nullptr && quantizer->kind() != "dequantize" &&
           quantizer->is_cast() == casts;
  });
}

std::int64_t weights_as_codes(const std::string& path) {
  std::error_code ignored;
  if (net::names_onnx_file(path) && std::filesystem::exists(path, ignored))
    return net::weights_as_codes(path);
  return net::coded_weights_of(path);
}

}  // namespace

std::vector<Note> notes_on_training(const Recipe& recipe, std::size_t stage) {
  std::vector<Note> notes;
  if (stage > 0)
    notes.push_back({NoteKind::stages,
                     fmt::format("The recipe has stages; this is the last one, stage {}.", stage)});
  const std::vector<std::string> keys = recipe.training_keys();
  if (!keys.empty())
    notes.push_back({NoteKind::training_keys,
                     fmt::format("Without effect in inference: {}.", joined(keys, ", "))});
  return notes;
}

std::vector<Note> notes_on_tables(const BoundRecipe& recipe) {
  const net::Graph& graph = recipe.graph();
  bool quantizes = false;
  std::set<const net::Tensor*> weights;
  for (const auto& [gemm, roles] : recipe.products()) {
    if (gemm.weight == nullptr) continue;
    weights.insert(gemm.weight);
    quantizes = quantizes || roles[RolePart::weight].has_value();
  }
  if (!quantizes) return {};
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const net::Node& node : graph.nodes) {
    const bool quantized =
        net::table_of(node) != nullptr && (recipe.layer(node.name)[RolePart::embedding] ||
                                           recipe.chosen("table", node.name) != nullptr);
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      if (quantized || !parameter.trained || parameter.value.shape.size() < 2 ||
          weights.contains(&parameter.value))
        continue;
      elements += parameter.value.size();
      names.push_back(parameter.name);
    }
  }
  if (names.empty()) return {};
  const std::size_t more = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - more);
  const double share =
      100 * static_cast<double>(elements) / static_cast<double>(graph.parameter_count());
  return {
      {NoteKind::tables,
       fmt::format("Role weight is that of products; tables stay float32: {}{}, {:.3g} % of "
                   "the parameters.",
                   joined(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "", share)}};
}

std::string own_quantizers(const net::Graph& graph, const std::string& path) {
  const std::int64_t of_values = fixed_quantizers(graph, false),
                     of_weights = weights_as_codes(path);
  std::vector<std::string> parts;
  if (of_values > 0)
    parts.push_back(fmt::format("{} quantizer{} of its own", of_values, of_values > 1 ? "s" : ""));
  if (of_weights > 0)
    parts.push_back(
        fmt::format("{} weight{} stored as codes", of_weights, of_weights > 1 ? "s" : ""));
  return joined(parts, ", ");
}

std::vector<std::string> notes_on_quantizers(const net::Graph& graph, const std::string& path) {
  const std::int64_t casts = fixed_quantizers(graph, true);
  std::string parts = own_quantizers(graph, path);
  if (casts > 0)
    parts += fmt::format("{}{} cast{} to floats of 8 or 16 bits", parts.empty() ? "" : ", ", casts,
                         casts > 1 ? "s" : "");
  if (parts.empty()) return {};
  const bool exported = net::coded_weights_of(path) > 0;
  return {fmt::format(
      "The network has {}, which the reference (float32) contains too: changes and SQNR are "
      "relative to {}, and bits do not count them.",
      parts,
      exported ? "the exported network, not to the one before" : "the network as it stands")};
}

std::vector<Note> notes_on_calibration(const BoundRecipe& recipe, bool named) {
  CalibrationPolicy any = recipe->calibration();
  if (!named && recipe->json()["calibrate"] == Recipe().json()["calibrate"]) return {};
  // `dynamic` is a choice where another rule would be one.
  if (any.rule == CalibrationPolicy::Rule::dynamic) any.rule = CalibrationPolicy::Rule::absmax;
  if (!calibrated_operands(recipe, any).empty()) return {};
  return {{NoteKind::calibration_key,
           "Without effect: calibrate, as no scale of an activation is calibrated."}};
}

std::vector<Note> notes_on_counts(const RecipeNumerics& numerics) {
  constexpr net::GemmKind kForward = net::GemmKind::fprop;
  std::vector<Note> notes;
  for (const auto& [gemm, roles] : numerics.bound().products()) {
    const std::string& layer = gemm.name;
    for (const net::Role role : {net::Role::weight, net::Role::activation}) {
      const std::optional<RolePolicy>& policy = roles.role(role, kForward);
      // An unsigned format counts negative numbers as invalid, too.
      if (!policy || policy->format->has_nan() || !policy->format->is_signed) continue;
      const OperandCounts counts = numerics.operand_counts(layer, kForward, role);
      if (counts.invalid == 0) continue;
      notes.push_back(
          {NoteKind::lost_nan,
           fmt::format("Layer {}: {} of {} elements of its {}s were NaN; {} has none and made "
                       "numbers of them.",
                       layer, counts.invalid, counts.elements, net::to_string(role),
                       policy->format->name)});
    }
  }
  std::map<std::string, std::vector<std::string>> saturated;  // by unit
  for (const auto& [gemm, roles] : numerics.bound().products()) {
    const SaturationCounts counts = numerics.saturation(gemm.name);
    if (!counts.any()) continue;
    saturated[roles.fprop->row().name].push_back(fmt::format(
        "{:.3g} % of the results of {} that were looked at", 100 * counts.share(), gemm.name));
  }
  for (auto& [unit, layers] : saturated) {
    const std::size_t more = layers.size() > kMostNamed ? layers.size() - kMostNamed : 0;
    layers.resize(layers.size() - more);
    notes.push_back(
        {NoteKind::saturated,
         fmt::format("The register of {} saturated or wrapped in {}{}.", unit, joined(layers, ", "),
                     more > 0 ? fmt::format(" and in {} more layers", more) : "")});
  }
  return notes;
}

}  // namespace numemu::policies

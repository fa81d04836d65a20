// Sentences from the graph's parameters and from the counts of a run.
#include "policies/recipe/silent_notes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx_file.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::policies {
namespace {

constexpr std::size_t kMostNamed = 4;

}  // namespace

std::vector<std::string> notes_on_training(const Recipe& recipe, std::size_t stage) {
  std::vector<std::string> notes;
  if (stage > 0)
    notes.push_back(fmt::format("The recipe has stages; this is the last one, stage {}.", stage));
  const std::vector<std::string> keys = recipe.training_keys();
  if (!keys.empty())
    notes.push_back(fmt::format("Without effect in inference: {}.", fmt::join(keys, ", ")));
  return notes;
}

std::vector<std::string> notes_on_tables(const Recipe& recipe, const net::Graph& graph) {
  bool quantizes = false;
  std::set<const net::Tensor*> weights;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr) continue;
    weights.insert(layer.weight);
    quantizes = quantizes || recipe.layer(layer.name).weight.has_value();
  }
  if (!quantizes) return {};
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const net::Node& node : graph.nodes) {
    const bool quantized = net::table_of(node) != nullptr && (recipe.layer(node.name).embedding ||
                                                              chooses(recipe, "table", node.name));
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
  return {fmt::format(
      "Role weight is that of products; tables stay float32: {}{}, {:.3g} % of the parameters.",
      fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "", share)};
}

std::vector<std::string> notes_on_quantizers(const net::Graph& graph, const std::string& path) {
  std::int64_t of_values = 0, casts = 0, of_weights = 0;
  for (const net::Node& node : graph.nodes) {
    const auto* const quantizer = dynamic_cast<const net::FixedQuantizer*>(node.op.get());
    if (quantizer == nullptr || quantizer->kind() == "dequantize") continue;
    ++(quantizer->is_cast() ? casts : of_values);
  }
  std::error_code ignored;
  if (net::names_onnx_file(path) && std::filesystem::exists(path, ignored))
    of_weights = net::weights_as_codes(path);
  std::vector<std::string> parts;
  if (of_values > 0)
    parts.push_back(fmt::format("{} quantizer{} of its own", of_values, of_values > 1 ? "s" : ""));
  if (casts > 0)
    parts.push_back(
        fmt::format("{} cast{} to floats of 8 or 16 bits", casts, casts > 1 ? "s" : ""));
  if (of_weights > 0)
    parts.push_back(
        fmt::format("{} weight{} stored as codes", of_weights, of_weights > 1 ? "s" : ""));
  if (parts.empty()) return {};
  return {fmt::format(
      "The network has {}, which the reference (float32) contains too: changes and SQNR are "
      "relative to the network as it stands, and bits do not count them.",
      fmt::join(parts, ", "))};
}

std::vector<std::string> notes_on_nan(const RecipeNumerics& numerics, const net::Graph& graph) {
  constexpr net::GemmKind kForward = net::GemmKind::fprop;
  std::vector<std::string> notes;
  for (const std::string& layer : net::gemm_layer_names(graph)) {
    for (const net::Role role : {net::Role::weight, net::Role::activation}) {
      const std::optional<RolePolicy>& policy = numerics.recipe(layer).role(role, kForward);
      // An unsigned format counts negative numbers as invalid, too.
      if (!policy || policy->format->has_nan() || !policy->format->is_signed) continue;
      const OperandCounts counts = numerics.counts(layer, kForward, role);
      if (counts.invalid == 0) continue;
      notes.push_back(fmt::format(
          "Layer {}: {} of {} elements of its {}s were NaN; {} has none and made numbers of them.",
          layer, counts.invalid, counts.elements, net::to_string(role), policy->format->name));
    }
  }
  return notes;
}

}  // namespace numemu::policies

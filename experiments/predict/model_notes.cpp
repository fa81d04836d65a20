#include "experiments/predict/model_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/net/gemm_layers.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kMostNamed = 4;

std::string listed(std::vector<std::string> names) {
  const std::size_t more = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", joined(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Layers by weight: importers give each its own copy, so the elements are compared.
std::vector<std::vector<std::string>> sharing(const policies::Recipe& recipe,
                                              const net::Graph& graph) {
  std::vector<std::pair<const net::Tensor*, std::vector<std::string>>> groups;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr || !recipe.layer(layer.name)[policies::RolePart::weight]) continue;
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.first->shape == layer.weight->shape && group.first->data == layer.weight->data;
    });
    if (same == groups.end()) {
      groups.push_back({layer.weight, {layer.name}});
    } else {
      same->second.push_back(layer.name);
    }
  }
  std::vector<std::vector<std::string>> out;
  for (auto& [weight, names] : groups) {
    if (names.size() > 1) out.push_back(std::move(names));
  }
  return out;
}

bool quantizes(const policies::Recipe& recipe, const net::Graph& graph) {
  return std::ranges::any_of(net::gemm_layer_names(graph), [&](const std::string& name) {
    const policies::LayerRecipe layer = recipe.layer(name);
    return layer[policies::RolePart::weight] || layer[policies::RolePart::activation];
  });
}

}  // namespace

std::vector<policies::Note> model_notes(const policies::Recipe& recipe, const net::Graph& graph) {
  std::vector<policies::Note> notes;
  for (const std::vector<std::string>& names : sharing(recipe, graph)) {
    notes.push_back(
        {policies::NoteKind::shared_weights,
         fmt::format("Layers {} have the same weight and so the same errors, which predictions "
                     "take as independent: differences of their results have less noise than "
                     "predicted, sums more.",
                     listed(names))});
  }
  std::vector<std::string> choices;
  for (const net::Node& node : graph.nodes) {
    if (node.op->kind().starts_with("top_k")) choices.push_back(node.name);
  }
  if (!choices.empty() && quantizes(recipe, graph))
    notes.push_back(
        {policies::NoteKind::choices,
         fmt::format("{} choose{} by value; where noise changes a choice, results differ by more "
                     "than predicted.",
                     listed(choices), choices.size() == 1 ? "s" : "")});
  return notes;
}

}  // namespace numemu::experiments

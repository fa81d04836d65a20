#include "experiments/predict/left_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "emu/unit/unit.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Rounding moments assume that what lies beyond the largest element saturates.
std::map<std::string, std::string> infinite_tensors(const std::vector<TensorNoise>& noises) {
  std::map<std::string, std::string> layers;
  for (const TensorNoise& noise : noises) {
    if (noise.policy.overflow != Overflow::ieee || noise.empirical.saturated == 0) continue;
    layers[noise.source.layer] =
        fmt::format("the noise of its {} beyond the largest {} (overflow {})",
                    net::to_string(noise.source.role), noise.policy.format->name,
                    to_string(noise.policy.overflow));
  }
  return layers;
}

/// "saturated on the way: 32.1 % of 112 results, predicted 31.2 %; ended at a register's end: 8.47
/// % of 691200 results, predicted 8.43 %": each quantity with its prediction.
std::string overflow_figures(const UnitError& error) {
  std::vector<std::string> figures;
  const auto add = [&](std::string_view words, std::int64_t some, std::int64_t all,
                       std::optional<double> share) {
    std::vector<std::string> parts;
    if (all > 0) parts.push_back(policies::counted_share(some, all) + " results");
    if (share && error.looked > 0)
      parts.push_back(*share > 0 ? fmt::format("predicted {:.3g} %", 100 * *share)
                                 : fmt::format("predicted 0 of {}", error.looked));
    if (!parts.empty()) figures.push_back(fmt::format("{}: {}", words, joined(parts, ", ")));
  };
  const policies::SaturationCounts& counts = error.counts;
  const bool hidden = error.words != policies::kNotFiniteWords;
  if (hidden) {
    add(error.words, counts.overflowed, counts.sampled, error.overflow);
    if (counts.results > 0 || error.at_end > 0)
      add(policies::kAtEndWords, counts.at_end, counts.results, error.at_end);
  }
  if (!hidden || error.not_finite > 0)
    add(policies::kNotFiniteWords, error.not_finite, error.results,
        hidden ? std::nullopt : std::optional(error.overflow));
  if (error.of_noise && !figures.empty())
    figures.back() += ", on the samples that noise is measured on";
  return joined(figures, "; ");
}

/// Why a layer has no prediction on account of its unit; empty where it has one.
std::string unknown_unit(const UnitError& error) {
  if (error.approximates) return fmt::format("the products of the table of {}", error.unit);
  if (!error.overflowed && !error.overflows) return "";
  const std::string figures = overflow_figures(error);
  return fmt::format("the overflow of {}{}{}", error.unit,
                     error.overflowed ? "" : ", whose largest value is near its sums",
                     figures.empty() ? "" : " (" + figures + ")");
}

constexpr std::size_t kMostNamed = 4;

/// Layers by weight: importers give each its own copy, so the elements are compared.
std::vector<std::vector<std::string>> sharing(const policies::BoundRecipe& recipe) {
  std::vector<std::pair<const net::Tensor*, std::vector<std::string>>> groups;
  for (const policies::BoundProduct& product : recipe.products()) {
    const net::GemmLayer& layer = product.gemm;
    if (layer.weight == nullptr || !product.roles[policies::RolePart::weight]) continue;
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

bool quantizes(const policies::BoundRecipe& recipe) {
  return std::ranges::any_of(recipe.products(), [](const policies::BoundProduct& product) {
    return product.roles[policies::RolePart::weight] ||
           product.roles[policies::RolePart::activation];
  });
}

}  // namespace

void leave_out(LayerPrediction& predicted, const policies::BoundRecipe& recipe,
               const std::vector<TensorNoise>& noises) {
  const net::Graph& graph = recipe.graph();
  const std::map<std::string, std::string> infinite = infinite_tensors(noises);
  std::string unknown;  // what is not known from here on, with its layer
  std::string last;
  const auto add = [&](const std::string& why, const std::string& layer) {
    if (unknown.empty() && !why.empty())
      unknown = fmt::format("{}, in {}, is not modelled", why, layer);
  };
  const std::set<std::string> across = net::layers_across_samples(graph);
  for (const net::Node& node : graph.nodes) {
    if (recipe.chooses_for_inference("edges", node.name))
      add("the rounding of tensors between operators (edges)", node.name);
    for (const net::OpProduct& product : node.op->products()) {
      const std::string name = node.name + product.suffix;
      if (const auto found = infinite.find(name); found != infinite.end()) add(found->second, name);
      if (const auto found = predicted.units.find(name); found != predicted.units.end())
        add(unknown_unit(found->second), name);
      double& db = predicted.db[name];
      std::string why = unknown;
      if (why.empty() && across.contains(name))
        why = "its samples are not on the first axis (an export with the sequence first)";
      if (!why.empty()) {
        db = kUnknown;
        predicted.left_out[name] = why;
      }
      last = name;
    }
    if (net::table_of(node) != nullptr && recipe.chosen("table", node.name) != nullptr)
      add("the noise of its table", node.name);
    if (node.op->kind() == net::kFixedQuantizer &&
        recipe.chosen("quantizers", node.name) != nullptr)
      add("the difference to the file's quantizer", node.name);
  }
  if (const auto found = predicted.left_out.find(last); found != predicted.left_out.end())
    predicted.output_left_out = found->second;
  if (!unknown.empty()) predicted.output_left_out = unknown;
  if (!predicted.output_left_out.empty()) {
    predicted.output = {kUnknown, kUnknown, kUnknown};
    predicted.output_error = kUnknown;
  }
}

std::vector<policies::Note> model_notes(const policies::BoundRecipe& recipe) {
  std::vector<policies::Note> notes;
  for (const std::vector<std::string>& names : sharing(recipe)) {
    notes.push_back(
        {policies::NoteKind::shared_weights,
         fmt::format("Layers {} have the same weight and so the same errors, which predictions "
                     "take as independent: differences of their results have less noise than "
                     "predicted, sums more.",
                     joined_first(names, ", ", kMostNamed))});
  }
  std::vector<std::string> choices;
  for (const net::Node& node : recipe.graph().nodes) {
    if (node.op->kind().starts_with("top_k")) choices.push_back(node.name);
  }
  if (!choices.empty() && quantizes(recipe))
    notes.push_back(
        {policies::NoteKind::choices,
         fmt::format("{} choose{} by value; where noise changes a choice, results differ by more "
                     "than predicted.",
                     joined_first(choices, ", ", kMostNamed), choices.size() == 1 ? "s" : "")});
  return notes;
}

}  // namespace numemu::experiments

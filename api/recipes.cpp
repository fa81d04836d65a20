#include "api/recipes.hpp"

#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::api {
namespace {

bool is_text(const std::string& recipe) { return recipe.starts_with('{'); }

}  // namespace

std::string recipe_path(const std::string& name, const Folders& folders) {
  return name.empty() || is_text(name) ? name : experiments::recipe_file(name, folders.data, "");
}

std::string recipe_where(const std::string& path) { return is_text(path) ? "recipe" : path; }

Json recipe_json(const std::string& path) {
  if (!is_text(path)) return parse_json(read_text(path), path);
  Json json = parse_json(path, recipe_where(path));
  if (!json.contains("numemu_recipe")) json["numemu_recipe"] = 1;
  return json;
}

Recipe open_recipe(const std::string& name, const Folders& folders) {
  if (name.empty()) return {};
  const std::string path = recipe_path(name, folders);
  return Recipe::parse(recipe_json(path), recipe_where(path));
}

Recipe make_recipe(Json parts) { return Recipe::make(std::move(parts)); }

Recipe bind_recipe(const Recipe& recipe, const experiments::TrainedNet& trained,
                   const std::string& where) {
  const Recipe last = recipe.last_stage();
  policies::RecipeNumerics(last, trained.graph, where);
  return policies::with_checkpoint_ranges(last, trained.path, where);
}

std::vector<LayerFacts> layers_of(const Recipe& recipe, const net::Graph& graph) {
  const policies::BoundRecipe bound(recipe, graph);
  std::vector<LayerFacts> layers;
  for (const auto& [gemm, roles] : bound.products()) layers.push_back({gemm.name, roles});
  return layers;
}

EffectiveBits bits_of(const Recipe& recipe, const net::Graph& graph, const net::Dataset& dataset) {
  return policies::effective_bits(
      {recipe, graph},
      policies::float_reference(graph, experiments::reference_batch(graph, dataset)));
}

Json canonical(const std::string& file, const Folders& folders) {
  const std::string text = read_text(file);
  const Json json = parse_json(text, file);
  return json.is_object() && json.contains("numemu_sweep")
             ? experiments::parse_sweep(text, file, folders.data).json
             : Recipe::parse(json, file).json();
}

}  // namespace numemu::api

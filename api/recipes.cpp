#include "api/recipes.hpp"

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::api {

std::string recipe_path(const std::string& name, const Folders& folders) {
  return name.empty() ? name : experiments::recipe_file(name, folders.data, "--recipe");
}

Recipe open_recipe(const std::string& name, const Folders& folders) {
  if (name.empty()) return make_recipe(Json::object());
  const std::string file = recipe_path(name, folders);
  return Recipe::parse_text(read_text(file), file);
}

Recipe make_recipe(Json parts) {
  parts["numemu_recipe"] = 1;
  return Recipe::parse(parts, "recipe");
}

Recipe bind_recipe(const Recipe& recipe, const experiments::TrainedNet& trained,
                   const std::string& where) {
  const Recipe last = recipe.last_stage();
  policies::RecipeNumerics(last, trained.graph, where);
  return policies::with_checkpoint_ranges(last, trained.path, where);
}

std::vector<LayerFacts> layers_of(const Recipe& recipe, const net::Graph& graph) {
  std::vector<LayerFacts> layers;
  for (const std::string& name : net::gemm_layer_names(graph))
    layers.push_back({name, recipe.layer(name)});
  return layers;
}

EffectiveBits bits_of(const Recipe& recipe, const net::Graph& graph, const net::Dataset& dataset) {
  return policies::effective_bits(
      recipe, graph,
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

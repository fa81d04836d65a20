#include "experiments/allocation/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/engine/trials.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/version.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/suggest.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace {

constexpr int kDigits = 9;

const std::vector<std::string> kLosses = {"noise", "predicted", "cross_entropy"};

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kDigits);
}

/// {"loss", "sqnr_db", "finite"} of a recipe: what a trial remembers.
Json measure(const policies::Recipe& recipe, const Workbench& bench, LossKind kind,
             std::int64_t images, const std::string& where) {
  const net::Graph& graph = bench.trained.graph;
  policies::RecipeNumerics numerics(bound_recipe(recipe, bench.trained, where));
  numerics.freeze(graph, bench.reference);
  if (kind == LossKind::cross_entropy) {
    const net::Evaluation evaluation = net::evaluate(graph, bench.dataset, net::Split::calibration,
                                                     images, numerics, bench.scores);
    return {{"loss", number(evaluation.loss)}, {"sqnr_db", nullptr}};
  }
  double db = 0;
  bool finite = true;
  if (kind == LossKind::predicted) {
    db = predict_layers(numerics.bound(), bench.reference, numerics.static_scales()).output.db;
  } else {
    const LayerMeasurement measured = measure_layers(graph, numerics, bench.reference);
    db = measured.output.db;
    finite = !std::isnan(db);
  }
  return {{"loss", number(finite ? portable::pow(10.0, -db / 10) : NAN)}, {"sqnr_db", number(db)}};
}

double loss_of(const Json& result) {
  return result["loss"].is_number() ? std::min(result["loss"].get<double>(), kLostLoss) : kLostLoss;
}

}  // namespace

LossKind parse_loss(const std::string& name) {
  const auto found = std::ranges::find(kLosses, name);
  if (found == kLosses.end()) throw Error("--set: loss: " + unknown_name("loss", name, kLosses));
  return static_cast<LossKind>(found - kLosses.begin());
}

double SensitivityTable::weights() const {
  double sum = 0;
  for (const LayerSize& layer : layers) sum += layer.weights;
  return sum;
}

double SensitivityTable::multiply_adds() const {
  double sum = 0;
  for (const LayerSize& layer : layers) sum += layer.multiply_adds;
  return sum;
}

SensitivityTable measure_table(const ExperimentRun& run, const Workbench& bench, const Json& recipe,
                               const std::vector<LayerChoice>& choices, const MacCosts& costs,
                               LossKind kind, std::int64_t images) {
  const net::Graph& graph = bench.trained.graph;
  SensitivityTable table;
  table.kind = kind;
  table.choices = choices;
  std::vector<net::Tensor> sample;
  for (const net::Tensor& input : bench.reference.batch)
    sample.push_back(policies::first_samples(input, 1));
  table.layers = layer_sizes(graph, sample);
  table.cells.assign(table.layers.size(), std::vector<TableCell>(choices.size()));
  const std::vector<net::GemmLayer> layers = net::gemm_layers(graph);

  std::vector<Trial> trials;
  const auto add = [&](const Json& entries, const std::string& label) {
    const policies::Recipe whole =
        policies::Recipe::parse(with_layers(recipe, entries), "--set: " + label);
    const policies::BoundRecipe bound(whole, graph, "--set: " + label);
    policies::RecipeNumerics{bound};  // every mistake before the work
    Json point = {
        {"cell", entries},
        {"recipe", whole.json()},
        {"loss", kLosses[static_cast<std::size_t>(kind)]},
        {"data", bench.dataset.name()},
        {"images", bench.dataset.digest()},
        {"samples", kind == LossKind::cross_entropy ? images : bench.reference.samples()}};
    if (kind == LossKind::predicted) point["prediction"] = kPredictionVersion;
    identify(point, bench.trained);
    trials.push_back({std::move(point), label, [&bench, whole, kind, images, label] {
                        return measure(whole, bench, kind, images, label);
                      }});
    return bound;
  };
  add(Json::array(), "the recipe as it is");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t o = 0; o < choices.size(); ++o) {
      Json entries = Json::array();
      entries.push_back(layer_entry(layers[l].name, choices[o]));
      const policies::BoundRecipe whole =
          add(entries, fmt::format("{} in {}", choices[o].name, layers[l].name));
      const policies::LayerRecipe& own = whole.layer(layers[l].name);
      table.cells[l][o].weight_bits = weight_bits(layers[l], own);
      table.cells[l][o].mac_cost = costs.of(own) * table.layers[l].multiply_adds;
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  table.base =
      kind == LossKind::cross_entropy || results[0]["loss"].is_number() ? loss_of(results[0]) : 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t o = 0; o < choices.size(); ++o) {
      const Json& result = results[1 + l * choices.size() + o];
      TableCell& cell = table.cells[l][o];
      cell.loss = std::max(loss_of(result) - table.base, kLeastLoss);
      cell.sqnr_db = result["sqnr_db"].is_number() ? result["sqnr_db"].get<double>()
                     : result["loss"].is_number() && kind != LossKind::cross_entropy ? HUGE_VAL
                                                                                     : NAN;
    }
  }
  return table;
}

Json to_json(const SensitivityTable& table, const std::string& net, const std::string& data) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < table.layers.size(); ++l) {
    Json options = Json::array();
    for (std::size_t o = 0; o < table.choices.size(); ++o) {
      const TableCell& cell = table.cells[l][o];
      options.push_back({{"name", table.choices[o].name},
                         {"loss", number(cell.loss)},
                         {"sqnr_db", number(cell.sqnr_db)},
                         {"weight_bits", number(cell.weight_bits)},
                         {"mac_cost", number(cell.mac_cost)}});
    }
    layers.push_back({{"name", table.layers[l].name},
                      {"weights", number(table.layers[l].weights)},
                      {"multiply_adds", number(table.layers[l].multiply_adds)},
                      {"options", options}});
  }
  return {{"numemu_sensitivity", 1},
          {"net", net},
          {"data", data},
          {"loss", kLosses[static_cast<std::size_t>(table.kind)]},
          {"base_loss", number(table.base)},
          {"layers", layers}};
}

}  // namespace numemu::experiments

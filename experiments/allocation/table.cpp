#include "experiments/allocation/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/observing.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/version.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {

namespace {

const char* const kWhere = "--set: options";

/// A role with every default of its format, so that nothing of the recipe below shines through.
Json role_of(const char* name, const std::string& format, const std::string& scale,
             const std::string& granularity, const std::string& where) {
  Json role = {{"format", format}};
  if (policies::stays_float32(JsonReader(role, where))) return nullptr;
  if (!scale.empty()) role["scale"] = scale;
  set_weight_granularity(role, name, granularity, where);
  const Json whole = role;
  return policies::role_json(
      policies::read_role(JsonReader(whole, where), policies::role_row(name)));
}

/// Cuts the part behind the last `mark` outside parentheses off the text.
std::string cut(std::string& text, char mark) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    depth += text[i] == ')';
    depth -= text[i] == '(';
    if (text[i] != mark || depth != 0) continue;
    std::string part = text.substr(i + 1);
    text.resize(i);
    return part;
  }
  return "";
}

LayerChoice read_choice(const std::string& text, const std::string& granularity) {
  const std::string where = fmt::format("{}: {}", kWhere, text);
  std::string formats = text;
  const std::string unit = cut(formats, '@'), scale = cut(formats, '~'), second = cut(formats, '/'),
                    activation = second.empty() ? formats : second;
  if (formats.empty() || text.ends_with('@') || text.ends_with('~') || text.ends_with('/'))
    throw Error(where + ": expected WEIGHTS[/ACTIVATIONS][~SCALE][@UNIT]");
  LayerChoice choice{
      text,
      {{"roles",
        {{"weight", role_of("weight", formats, scale, granularity, where)},
         {"activation", role_of("activation", activation, scale, granularity, where)}}}}};
  if (!unit.empty()) choice.patch["gemms"] = {{"fprop", {{"unit", unit}}}};
  return choice;
}

std::vector<LayerChoice> read_file(const std::string& path) {
  const Json json = parse_json(read_text(path), path);
  const JsonReader reader(json, path);
  if (!json.is_array() || json.empty()) reader.fail("a list of options");
  std::vector<LayerChoice> out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader option = reader.element(i);
    option.require_keys({"name", "roles", "gemms"});
    LayerChoice choice{option.member("name").text(""), Json::object()};
    if (choice.name.empty()) option.fail("a name");
    for (const char* key : {"roles", "gemms"}) {
      if (option.has(key)) choice.patch[key] = option.value()[key];
    }
    out.push_back(std::move(choice));
  }
  return out;
}

}  // namespace

std::vector<LayerChoice> read_choices(const std::vector<std::string>& texts,
                                      const std::string& granularity) {
  std::vector<LayerChoice> out;
  for (const std::string& text : texts) {
    for (LayerChoice& choice :
         text.ends_with(".json") ? read_file(text) : std::vector{read_choice(text, granularity)}) {
      if (std::ranges::find(out, choice.name, &LayerChoice::name) != out.end())
        throw Error(
            fmt::format("{}: expected every option once, found {} twice", kWhere, choice.name));
      out.push_back(std::move(choice));
    }
  }
  if (out.empty()) throw Error(std::string(kWhere) + ": expected at least one option");
  return out;
}

Json layer_entry(const std::string& layer, const LayerChoice& choice) {
  Json entry = {{"match", layer}};
  for (const auto& [key, value] : choice.patch.items()) entry[key] = value;
  return entry;
}

Json with_layers(Json recipe, const Json& entries) {
  Json layers = recipe.value("layers", Json::array());
  for (const Json& entry : entries) layers.push_back(entry);
  recipe["layers"] = layers;
  return recipe;
}

namespace {

constexpr double kFloat32Bits = 32;

std::string format_name(const std::optional<policies::RolePolicy>& role) {
  if (!role) return "float32";
  return role->block != nullptr ? role->block->name : role->format->name;
}

double element_bits(const std::optional<policies::RolePolicy>& role) {
  return role ? role->format->bits : kFloat32Bits;
}

}  // namespace

MacCosts MacCosts::read(const std::string& path) {
  const Json json = parse_json(read_text(path), path);
  const JsonReader reader(json, path);
  reader.require_keys({"numemu_mac_costs", "costs"});
  reader.member("numemu_mac_costs").integer(0, 1, 1);
  const JsonReader costs = reader.member("costs");
  if (!costs.value().is_array() || costs.value().empty()) costs.fail("a list of costs");
  MacCosts out;
  out.path_ = path;
  for (std::size_t i = 0; i < costs.value().size(); ++i) {
    const JsonReader entry = costs.element(i);
    entry.require_keys({"weight", "activation", "unit", "cost"});
    const JsonReader cost = entry.member("cost");
    if (!cost.value().is_number() || !(cost.value().get<double>() >= 0) ||
        !std::isfinite(cost.value().get<double>()))
      cost.fail("a number of at least 0");
    out.entries_.push_back({entry.member("weight").text("*"), entry.member("activation").text("*"),
                            entry.member("unit").text("*"), cost.value().get<double>()});
  }
  return out;
}

double MacCosts::of(const policies::LayerRecipe& recipe) const {
  if (path_.empty()) {
    return element_bits(recipe[policies::RolePart::weight]) *
           element_bits(recipe[policies::RolePart::activation]) / (kFloat32Bits * kFloat32Bits);
  }
  const std::string weight = format_name(recipe[policies::RolePart::weight]),
                    activation = format_name(recipe[policies::RolePart::activation]),
                    unit = recipe.unit(net::GemmKind::fprop).row().name;
  for (const Entry& entry : entries_) {
    if (glob_match(entry.weight, weight) && glob_match(entry.activation, activation) &&
        glob_match(entry.unit, unit))
      return entry.cost;
  }
  throw Error(fmt::format("{}: no entry matches weight {}, activation {}, unit {}", path_, weight,
                          activation, unit));
}

std::vector<LayerSize> layer_sizes(const net::Graph& graph,
                                   const std::vector<net::Tensor>& sample) {
  std::map<std::string, double> counts;
  net::Observing numerics({.before = [&](const net::Step&, const net::Product& p) {
    counts[std::string(p.layer)] += net::multiply_adds(p);
  }});
  net::forward(graph, sample, numerics);
  std::vector<LayerSize> out;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const double weights = layer.weight == nullptr ? 0 : static_cast<double>(layer.weight->size());
    out.push_back({layer.name, weights, counts[layer.name]});
  }
  return out;
}

double weight_bits(const net::GemmLayer& layer, const policies::LayerRecipe& recipe) {
  if (layer.weight == nullptr) return 0;
  return policies::stored_bits(recipe[policies::RolePart::weight], layer.weight->shape);
}

namespace {

constexpr int kTableDigits = 9;

const std::vector<std::string> kLosses = {"noise", "predicted", "cross_entropy"};

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kTableDigits);
}

/// Of a recipe; not finite where it is not known.
struct CellFigures {
  double loss = 0, sqnr_db = 0;

  static void fields(auto& self, const auto& visit) {
    visit("loss", self.loss);
    visit("sqnr_db", self.sqnr_db);
  }
};

CellFigures measure(const policies::Recipe& recipe, const Workbench& bench, LossKind kind,
                    std::int64_t images, const std::string& where) {
  const net::Graph& graph = bench.trained.graph;
  policies::RecipeNumerics numerics(bound_recipe(recipe, bench.trained, where));
  numerics.freeze(graph, bench.reference);
  if (kind == LossKind::cross_entropy) {
    const net::Evaluation evaluation = net::evaluate(graph, bench.dataset, net::Split::calibration,
                                                     images, numerics, bench.scores);
    return {policies::significant(evaluation.loss, kTableDigits), NAN};
  }
  double db = 0;
  bool finite = true;
  if (kind == LossKind::predicted) {
    db = predict_layers(numerics.bound(), bench.reference, numerics.roles().static_scales())
             .output.db;
  } else {
    const LayerMeasurement measured = measure_layers(graph, numerics, bench.reference);
    db = measured.output.db;
    finite = !std::isnan(db);
  }
  return {policies::significant(finite ? portable::pow(10.0, -db / 10) : NAN, kTableDigits),
          policies::significant(db, kTableDigits)};
}

double loss_of(const CellFigures& result) {
  return std::isfinite(result.loss) ? std::min(result.loss, kLostLoss) : kLostLoss;
}

}  // namespace

LossKind parse_loss(const std::string& name) {
  const auto found = std::ranges::find(kLosses, name);
  if (found == kLosses.end())
    throw usage_error("--set: loss: " + unknown_name("loss", name, kLosses));
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

  std::vector<TypedTrial<CellFigures>> trials;
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
  const std::vector<CellFigures> results = run_typed(run, std::move(trials), true);
  table.base =
      kind == LossKind::cross_entropy || std::isfinite(results[0].loss) ? loss_of(results[0]) : 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t o = 0; o < choices.size(); ++o) {
      const CellFigures& result = results[1 + l * choices.size() + o];
      TableCell& cell = table.cells[l][o];
      cell.loss = std::max(loss_of(result) - table.base, kLeastLoss);
      cell.sqnr_db = std::isfinite(result.sqnr_db) ? result.sqnr_db
                     : std::isfinite(result.loss) && kind != LossKind::cross_entropy ? HUGE_VAL
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

#include "experiments/mask_diversity/pruned_nets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/network_identity.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/mask_diversity/patterns.hpp"
#include "experiments/mask_diversity/pieces.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace {

Json recipe_of(const std::vector<std::string>& layers, const std::string& mask) {
  Json recipe = {{"numemu_recipe", 1}, {"layers", Json::array()}};
  for (const std::string& layer : layers) {
    if (!mask.empty())
      recipe["layers"].push_back({{"match", layer}, {"roles", {{"weight", {{"mask", mask}}}}}});
  }
  return recipe;
}

std::string bits_of(const std::vector<std::uint8_t>& right) {
  std::string bits;
  for (const std::uint8_t r : right) bits += r != 0 ? '1' : '0';
  return bits;
}

/// Share of the masked layers' elements that are kept, and of their sum of magnitudes.
Json kept_of(const net::Graph& graph, const policies::Recipe& recipe,
             const std::vector<std::string>& layers) {
  double elements = 0, kept = 0, magnitude = 0, retained = 0;
  for (const std::string& layer : layers) {
    const net::Tensor& weight = net::weight_of(graph, layer);
    const std::optional<policies::MaskPolicy> policy =
        recipe.layer(layer).masks[policies::RolePart::weight];
    std::vector<std::uint8_t> keep(weight.data.size(), 1);
    if (policy) {
      const RandomSource random = policies::weight_mask_random(recipe.seed(), layer, *policy);
      keep = policies::WeightMask(*policy, random).mask_of(weight, 1);
    }
    const auto sum = [&](auto&& term) { return pairwise_sum(weight.size(), term); };
    elements += static_cast<double>(weight.size());
    kept += sum([&](std::int64_t i) { return keep[i] != 0 ? 1.0 : 0.0; });
    magnitude += sum([&](std::int64_t i) { return std::fabs(double{weight.data[i]}); });
    retained +=
        sum([&](std::int64_t i) { return keep[i] != 0 ? std::fabs(double{weight.data[i]}) : 0.0; });
  }
  return {{"kept", kept / elements}, {"retained", retained / magnitude}};
}

Json evaluate_masked(const net::Graph& graph, const net::Dataset& data,
                     const std::vector<std::string>& layers, const std::string& mask,
                     std::int64_t images) {
  const policies::Recipe recipe =
      policies::Recipe::parse(recipe_of(layers, mask), "one-shot pruning");
  policies::RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph, data.calibration_count(), [&](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{data.calibration_batch(first, count, targets)};
  });
  const net::Evaluation tested = net::evaluate(graph, data, net::Split::test, images, numerics);
  Json json = kept_of(graph, recipe, layers);
  json["loss"] = tested.loss;
  json["right"] = bits_of(tested.right);
  return json;
}

/// Unpruned first, then every pattern in order.
Json evaluate_patterns(const net::Graph& graph, const net::Dataset& data, std::int64_t images) {
  const std::vector<std::string> layers = evenly_masked_layers(graph);
  Json results = Json::array({evaluate_masked(graph, data, layers, "", images)});
  for (const DiversityPattern& pattern : half_density_patterns())
    results.push_back(evaluate_masked(graph, data, layers, pattern.mask, images));
  return results;
}

Json masks_in_order() {
  Json masks = Json::array();
  for (const DiversityPattern& pattern : half_density_patterns()) masks.push_back(pattern.mask);
  return masks;
}

Trial shipped_trial(const std::string& name, std::shared_ptr<const TrainedNet> trained,
                    const net::Dataset& data, std::int64_t images) {
  Json point = {{"part", "one-shot"},
                {"images", data.digest()},
                {"eval_images", images},
                {"masks", masks_in_order()}};
  identify(point, *trained);
  return {point, fmt::format("{} under every pattern", name),
          [trained, &data, images] { return evaluate_patterns(trained->graph, data, images); }};
}

/// Another network like this one.
Trial fresh_trial(const ExperimentRun& run, const std::string& name, std::uint64_t seed,
                  const net::Dataset& data, std::int64_t images) {
  TrainTrial plan;
  plan.net = name;
  plan.seed = seed;
  plan.options.optimizer = net::recommended_optimizer(name);
  net::use_recommended_rates(plan.options, name);
  plan.options.epochs = run.settings.integer("epochs", 1, 10'000);
  plan.train_samples = run.settings.integer("train_samples", 0, data.train_count());
  plan.eval_samples = images;
  Json point = point_of(plan, data);
  point["part"] = "one-shot, trained afresh";
  point["masks"] = masks_in_order();
  return {point, fmt::format("{} of seed {}, then every pattern", name, seed),
          [plan, &data, images] {
            net::Graph graph = trained_in_float32(plan, data);
            return evaluate_patterns(graph, data, images);
          }};
}

Pruned pruned_of(const Json& json) {
  Pruned pruned{.right = {},
                .loss = json["loss"].is_number() ? json["loss"].get<double>() : HUGE_VAL,
                .kept = json["kept"].get<double>(),
                .retained = json["retained"].get<double>()};
  for (const char c : json["right"].text()) pruned.right.push_back(c == '1');
  return pruned;
}

}  // namespace

std::int64_t Pruned::correct() const { return std::count(right.begin(), right.end(), 1); }

double Pruned::top1() const {
  return static_cast<double>(correct()) / static_cast<double>(right.size());
}

std::vector<PrunedNet> pruned_nets(const ExperimentRun& run, const net::Dataset& data) {
  const std::int64_t images = run.settings.integer("images", 1, 100'000'000);
  const std::int64_t fresh = run.settings.integer("trained", 0, 1000);
  std::vector<Trial> trials;
  std::vector<PrunedNet> nets;
  for (const std::string& name : run.settings.list("nets")) {
    const auto shipped =
        std::make_shared<const TrainedNet>(load_trained_net(name, data, run.folders));
    trials.push_back(shipped_trial(name, shipped, data, images));
    nets.push_back({name, {}, {}});
    for (std::int64_t i = 0; i < fresh; ++i) {
      const std::uint64_t seed = run.seed + static_cast<std::uint64_t>(i);
      trials.push_back(fresh_trial(run, shipped->graph.name, seed, data, images));
      nets.push_back({fmt::format("{} of seed {}", shipped->graph.name, seed), {}, {}});
    }
  }
  const std::vector<Json> results = run_trials(run, trials);
  for (std::size_t i = 0; i < nets.size(); ++i) {
    nets[i].dense = pruned_of(results[i][0]);
    for (std::size_t p = 1; p < results[i].size(); ++p)
      nets[i].patterns.push_back(pruned_of(results[i][p]));
  }
  return nets;
}

}  // namespace numemu::experiments

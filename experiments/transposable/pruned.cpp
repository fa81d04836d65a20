#include "experiments/transposable/pruned.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/transposable/layers.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/calibrate/adaprune.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace {

/// The float32 side that all variants share.
struct Seen {
  std::vector<std::string> layers;
  LayerErrors outputs;          ///< on test images
  LayerErrors fitted;           ///< on calibration images
  policies::AdaPrune adaprune;  ///< on calibration images
};

std::vector<net::Tensor> calibration_batch(const net::Dataset& data, std::int64_t first,
                                           std::int64_t count) {
  net::Targets targets;
  return {data.calibration_batch(first, count, targets)};
}

constexpr std::int64_t kAtOnce = 64;  // images in memory

Seen see(const net::Graph& graph, const net::Dataset& data, std::int64_t images,
         std::int64_t calibration) {
  const std::vector<std::string> layers = even_layers(graph);
  Seen seen{layers, LayerErrors(layers), LayerErrors(layers),
            policies::AdaPrune(std::set<std::string, std::less<>>(layers.begin(), layers.end()))};
  for (std::int64_t first = 0; first < images; first += kAtOnce) {
    net::Targets targets;
    net::forward(graph, data.test_batch(first, std::min(kAtOnce, images - first), targets),
                 seen.outputs);
  }
  for (std::int64_t first = 0; first < calibration; first += kAtOnce) {
    const std::vector<net::Tensor> batch =
        calibration_batch(data, first, std::min(kAtOnce, calibration - first));
    net::forward(graph, batch, seen.fitted);
    net::forward(graph, batch, seen.adaprune);
  }
  return seen;
}

/// A layer's weight under a variant, and which of it is kept.
struct Masked {
  net::Tensor weight;
  std::vector<std::uint8_t> keep;
};

Masked masked(const std::string& layer, const net::Tensor& weight, const std::string& text,
              std::uint64_t seed, const policies::AdaPrune& adaprune) {
  const policies::MaskPolicy policy = policies::parse_mask(text);
  const policies::WeightMask mask(policy, policies::weight_mask_random(seed, layer, policy));
  const std::int64_t matrices = adaprune.matrices(layer);
  Masked result{*mask.passing(weight, matrices), mask.mask_of(weight, matrices)};
  if (policy.repair == policies::Repair::adaprune)
    result.weight = adaprune.solve(layer, result.weight, result.keep);
  return result;
}

Json shares(const net::Graph& graph, const Seen& seen, const std::string& mask,
            std::uint64_t seed) {
  double elements = 0, kept = 0, magnitude = 0, pruned = 0;
  Json outputs = Json::object(), fitted = Json::object();
  for (const std::string& layer : seen.layers) {
    const net::Tensor& weight = net::weight_of(graph, layer);
    const Masked under = mask.empty()
                             ? Masked{weight, std::vector<std::uint8_t>(weight.data.size(), 1)}
                             : masked(layer, weight, mask, seed, seen.adaprune);
    const auto sum = [&](bool all) {
      return pairwise_sum(weight.size(), [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return all || under.keep[at] == 0 ? std::fabs(double{weight.data[at]}) : 0.0;
      });
    };
    elements += static_cast<double>(weight.size());
    kept += static_cast<double>(std::count(under.keep.begin(), under.keep.end(), 1));
    magnitude += sum(true);
    pruned += sum(false);
    outputs[layer] = seen.outputs.relative(layer, under.weight);
    fitted[layer] = seen.fitted.relative(layer, under.weight);
  }
  return {{"kept", kept / elements},
          {"pruned", pruned / magnitude},
          {"outputs", outputs},
          {"fitted", fitted}};
}

}  // namespace

std::string Variant::mask() const {
  if (repair == "none") return pattern->mask;
  return pattern->mask.substr(0, pattern->mask.size() - 1) + ",repair=" + repair + ")";
}

std::vector<Variant> variants(const std::vector<std::string>& patterns) {
  std::vector<Variant> all;
  for (const std::string& name : patterns) {
    const HalfPattern& pattern = half_pattern(name);
    for (const char* repair : {"none", "absorb", "adaprune"})
      if (pattern.repairs || std::string(repair) == "none") all.push_back({&pattern, repair});
  }
  return all;
}

Json recipe_of(const std::vector<std::string>& layers, const std::string& mask) {
  Json recipe = {{"numemu_recipe", 1}, {"layers", Json::array()}};
  for (const std::string& layer : layers)
    if (!mask.empty())
      recipe["layers"].push_back({{"match", layer}, {"roles", {{"weight", {{"mask", mask}}}}}});
  return recipe;
}

Json prune_network(const net::Graph& graph, const net::Dataset& data,
                   const std::vector<Variant>& all, std::int64_t images) {
  std::vector<std::string> masks = {""};
  for (const Variant& variant : all) masks.push_back(variant.mask());
  const policies::Recipe plain = policies::Recipe::parse(recipe_of({}, ""), "transposable");
  const std::int64_t tested = std::min(images, data.test_count());
  const Seen seen =
      see(graph, data, tested, std::min(data.calibration_count(), plain.calibration().samples));
  Json results = Json::array();
  for (const std::string& mask : masks) {
    const policies::Recipe recipe =
        policies::Recipe::parse(recipe_of(seen.layers, mask), "transposable");
    policies::RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, data.calibration_count(), [&](std::int64_t first, std::int64_t count) {
      return calibration_batch(data, first, count);
    });
    const net::Evaluation evaluation =
        net::evaluate(graph, data, net::Split::test, tested, numerics);
    Json result = shares(graph, seen, mask, recipe.seed());
    result["loss"] = evaluation.loss;
    std::string right;
    for (const std::uint8_t r : evaluation.right) right += r != 0 ? '1' : '0';
    result["right"] = right;
    results.push_back(result);
  }
  return results;
}

}  // namespace numemu::experiments

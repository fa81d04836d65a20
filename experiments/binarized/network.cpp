// A trained binarized network: what its inference needs beside signs and integers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/batch_statistics.hpp"
#include "emu/net/subgraph.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/binarized/signs.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::binarized {
namespace {

constexpr std::int64_t kImages = 512;    // whose sums are looked at
constexpr double kGainTolerance = 0.02;  // sums are nearly normal

/// The normalisation that reads the result of a layer; null for none.
const net::Node* norm_behind(const net::Graph& graph, const std::string& layer) {
  for (std::size_t i = 1; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    if (node.op->kind() == "batch_norm" && graph.value_name(node.inputs[0]) == layer) return &node;
  }
  return nullptr;
}

/// Integer sums of `depth` products of signs through a normalisation and a sign: how many pairs of
/// channel and sum the network and the folded threshold decide differently.
Json compare_thresholds(const net::Node& node, std::int64_t depth, const Json& recipe) {
  const auto& norm = dynamic_cast<const net::BatchNorm&>(*node.op);
  const std::span<const net::Parameter> values = norm.parameters();
  const std::int64_t channels = norm.options().channels;
  net::Graph graph;
  graph.name = "normalisation";
  graph.inputs = {{"input", {channels}}};
  auto copy = std::make_unique<net::BatchNorm>(norm.options());
  for (std::size_t p = 0; p < values.size(); ++p) copy->parameters()[p].value = values[p].value;
  graph.add(node.name, std::move(copy));
  net::Tensor sums({depth + 1, channels});
  for (std::int64_t i = 0; i < sums.size(); ++i)
    sums.data[i] = static_cast<float>(2 * (i / channels) - depth);
  policies::RecipeNumerics numerics(policies::Recipe::parse(recipe, "binarized"), graph);
  const net::Tensor y = net::forward(graph, sums, numerics);
  const bool shift = recipe.contains("norm");
  std::int64_t differ = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double weight = values[0].value.data[c], variance = values[3].value.data[c];
    const double inverse = 1 / std::sqrt(variance + norm.options().epsilon);
    const double scale =
        shift ? core::power_of_two(weight) * core::power_of_two(inverse) : weight * inverse;
    const Threshold threshold = fold(scale, values[2].value.data[c], values[1].value.data[c]);
    for (std::int64_t i = 0; i <= depth; ++i)
      differ += threshold.fires(2 * i - depth) != (y.data[i * channels + c] >= 0);
  }
  return {{"layer", node.name}, {"pairs", y.size()}, {"differ", differ}};
}

/// Inputs as 8-bit integers times signs of weights: bit by bit on the XNOR unit, and in integers.
/// A bit plane x of zeros and ones is (p + 1) / 2 with p of signs: x.w = (p.w + sum w) / 2.
Json compare_planes(const net::Tensor& inputs, const net::Tensor& weight) {
  constexpr int kBits = 8;
  const std::int64_t depth = weight.dim(1), rows = inputs.size() / depth, outputs = weight.dim(0);
  const auto [low, high] = std::minmax_element(inputs.data.begin(), inputs.data.end());
  std::vector<int> x;
  for (const float value : inputs.data)
    x.push_back(static_cast<int>(std::lround((value - *low) / (*high - *low) * 255)));
  std::vector<std::uint8_t> w;
  std::vector<std::int64_t> total(static_cast<std::size_t>(outputs)),
      sums(static_cast<std::size_t>(rows * outputs));
  for (const float value : weight.data) w.push_back(value < 0);
  for (std::int64_t i = 0; i < weight.size(); ++i) total[i / depth] += w[i] != 0 ? -1 : 1;
  for (int bit = 0; bit < kBits; ++bit) {
    std::vector<std::uint8_t> plane;  // code 0 is +1
    for (const int value : x) plane.push_back((value >> bit & 1) == 0);
    const std::vector<std::int32_t> products = sign_products(plane, w, depth);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += (std::int64_t{products[i]} + total[i % total.size()]) / 2 << bit;
  }
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < outputs; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += w[j * depth + k] != 0 ? -x[i * depth + k] : x[i * depth + k];
      differ += sum != sums[i * outputs + j];
    }
  }
  return {{"sums", rows * outputs}, {"differ", differ}};
}

/// Means over the channels of a layer's sums: shift-based variance over variance.
Json compare_gain(const std::string& layer, const net::Tensor& sums) {
  const std::int64_t channels = sums.shape.back(), rows = sums.size() / channels;
  const net::BatchStatistics exact = net::batch_statistics(sums.data.data(), rows, channels, {}),
                             shift = net::batch_statistics(
                                 sums.data.data(), rows, channels,
                                 {.statistic = net::NormRule::Statistic::shift});
  double measured = 0, predicted = 0, squares = 0, n = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    if (exact.variance[c] == 0) continue;  // a constant channel
    const double gain = shift.variance[c] / exact.variance[c];
    measured += gain;
    squares += gain * gain;
    predicted += power_gain(std::sqrt(exact.variance[c]), kApproximate);
    ++n;
  }
  measured /= n;
  const double spread = std::max(0.0, squares / n - measured * measured);
  return {{"layer", layer},
          {"predicted", predicted / n},
          {"measured", measured},
          {"error", std::sqrt(spread / (n - 1))}};
}

Json measure(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = net::build_net(trial.net, data);
  net::initialize(graph, trial.seed);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  Json recipe = trial.recipe;
  recipe["numemu_recipe"] = 1;
  recipe["seed"] = trial.seed;
  policies::RecipeNumerics numerics(policies::Recipe::parse(recipe, "binarized"), graph);
  net::train(graph, restricted(data, trial.train_samples, false), options, numerics);

  net::Targets targets;
  const std::int64_t images = std::min(kImages, data.calibration_count());
  const net::Tensor inputs = data.calibration_batch(0, images, targets);
  const std::vector<net::GemmLayer> layers = net::gemm_layers(graph);
  Json result = {{"planes", compare_planes(inputs, *layers.front().weight)},
                 {"thresholds", Json::array()},
                 {"gains", Json::array()}};
  const std::string input = "input";
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const net::Graph part = net::subgraph(graph, {&input, 1}, layers[l].name);
    result["gains"].push_back(compare_gain(layers[l].name, net::forward(part, inputs, numerics)));
    const net::Node* const norm = norm_behind(graph, layers[l].name);
    if (l == 0 || norm == nullptr) continue;  // its sums are no integers
    Json rule = {{"numemu_recipe", 1}};
    if (recipe.contains("norm")) rule["norm"] = recipe["norm"];
    result["thresholds"].push_back(compare_thresholds(*norm, layers[l].weight->shape.back(), rule));
  }
  return result;
}

}  // namespace

void add_network(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainingPlan plan = plan_of(run);
  const net::Graph graph = net::build_net(plan.trial.net, data);
  const std::string first = net::gemm_layer_names(graph).front();
  const Json variance = signs(first);
  std::vector<Trial> trials;
  for (const Json& recipe : {variance, with_shifts(variance)}) {
    TrainTrial trial = plan.trial;
    trial.eval_samples = 0;
    trial.recipe = recipe;
    trial.seed = run.seed;
    Json point = point_of(trial, data);
    point["measured"] = "inference in integers";
    trials.push_back({std::move(point), "inference in integers",
                      [trial, &data] { return measure(trial, data); }});
  }
  const std::vector<Json> results = run_trials(run, trials);
  for (std::size_t t = 0; t < results.size(); ++t) {
    const char* const norm = t == 0 ? "variance" : "shift-based variance";
    const auto exactly = [&](const std::string& what, const Json& differ) {
      const double n = differ.get<double>();
      conclusion.findings.push_back(exact_finding(what, 0, n, n == 0));
    };
    exactly(
        fmt::format("sums of {} over 8 bit planes that differ from the integer sums, of {} ({})",
                    first, results[t]["planes"]["sums"].get<std::int64_t>(), norm),
        results[t]["planes"]["differ"]);
    conclusion.about("bit planes");
    for (const Json& layer : results[t]["thresholds"]) {
      exactly(
          fmt::format("signs behind {} that differ from an integer compare, of {} pairs of "
                      "channel and sum ({})",
                      layer["layer"].get<std::string>(), layer["pairs"].get<std::int64_t>(), norm),
          layer["differ"]);
    }
    conclusion.about("thresholds");
    for (const Json& layer : results[t]["gains"]) {
      conclusion.findings.push_back(model_finding(
          fmt::format("shift-based variance over variance of the sums of {}, mean over channels "
                      "({})",
                      layer["layer"].get<std::string>(), norm),
          layer["predicted"], layer["measured"], layer["error"], kGainTolerance));
    }
    conclusion.about("sums");
  }
}

}  // namespace numemu::experiments::binarized

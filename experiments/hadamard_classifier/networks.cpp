// Networks with a classifier of fixed Hadamard rows beside a trained one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/hadamard_classifier/parts.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::hadamard {
namespace {

constexpr double kMargin = 0.5;  // points of top-1: what counts as little
const char* const kLogits = "hfp8_e4m3";
constexpr double kLargest = 30;  // of that format
constexpr std::int64_t kImages = 512;

/// The logits of images under a format of the last layer's weights; empty: float32.
net::Tensor logits_of(const net::Graph& graph, const net::Tensor& images,
                      const std::string& format) {
  Json recipe = {{"numemu_recipe", 1}};
  if (!format.empty()) {
    Json role = {{"format", format}};
    if (block_format_meant(format).empty()) role["scale"] = "none";
    recipe["layers"] =
        Json::array({{{"match", graph.nodes.back().name}, {"roles", {{"weight", role}}}}});
  }
  policies::RecipeNumerics numerics(policies::Recipe::parse(recipe, "hadamard-classifier"), graph);
  return net::forward(graph, images, numerics);
}

/// A trained network's accuracy; of a fixed classifier its scale, products and formats too.
Json measure(const TrainTrial& trial, const net::Dataset& data, bool fixed,
             const std::vector<std::string>& formats) {
  const net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const net::Evaluation tested =
      net::evaluate(graph, data, net::Split::test, trial.eval_samples, float32);
  Json result = {{"top1", static_cast<double>(tested.correct) / static_cast<double>(tested.n)}};
  if (!fixed) return result;

  const std::span<const net::Parameter> parameters =
      std::as_const(*graph.nodes.back().op).parameters();
  const double scale = parameters[1].value.data[0];
  const std::vector<float>& bias = parameters[2].value.data;
  net::Targets targets;
  const net::Tensor images = data.test_batch(0, std::min(kImages, data.test_count()), targets);
  const net::Tensor logits = logits_of(graph, images, "");
  double product = 0;
  for (std::size_t i = 0; i < logits.data.size(); ++i)
    product = std::max(product, std::fabs((logits.data[i] - bias[i % bias.size()]) / scale));
  std::vector<float> codes(logits.data.size());
  const FlagCounts flags = quantize_values({.format = &find_format(kLogits)}, logits.data.data(),
                                           logits.size(), 1, codes.data());
  result["features"] = parameters[0].value.dim(1);
  result["classes"] = parameters[0].value.dim(0);
  result["scale"] = scale;
  result["product"] = product;
  result["logits"] = logits.size();
  result["saturated"] = flags.overflow;
  std::int64_t differ = 0;
  for (const std::string& format : formats) {
    const net::Tensor other = logits_of(graph, images, format);
    for (std::size_t i = 0; i < other.data.size(); ++i) differ += other.data[i] != logits.data[i];
  }
  result["differ"] = differ;
  return result;
}

}  // namespace

void add_networks(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<std::string> nets = settings.list("nets"), formats = settings.list("formats");
  const std::int64_t seeds = settings.integer("seeds", 1, 1000);
  std::vector<Trial> trials;
  for (const std::string& net : nets) {
    for (const bool fixed : {false, true}) {
      for (std::int64_t s = 0; s < seeds; ++s) {
        TrainTrial trial = training_of(settings, fixed ? "hadamard(" + net + ")" : net,
                                       {.optimizer = "adam", .least_batch = 2});
        trial.seed = run.seed + static_cast<std::uint64_t>(s);
        Json point = point_of(trial, data);
        if (fixed) point["formats"] = formats;
        trials.push_back({std::move(point), fmt::format("{}, seed {}", trial.net, trial.seed),
                          [=, &data] { return measure(trial, data, fixed, formats); }});
      }
    }
  }
  const std::vector<Json> results = run_trials(run, trials);

  ResultTable table{fmt::format("Top-1 in % on {}, {} seeds, paired by seed", data.name(), seeds),
                    {"network", "trained", "fixed", "difference, points", "95 % interval",
                     "learned scale", "bound of the logits", "weights not trained"},
                    {}};
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = "What a fixed classifier costs";
  chart.caption =
      "Mean difference of top-1 to a trained classifier with its 95 % interval, paired "
      "by seed; float32; below 0 is worse.";
  chart.y = "difference, points";
  chart.series.push_back({"measured", {}, false});
  PairedClaims claims;
  std::vector<Finding> checks;
  for (std::size_t n = 0; n < nets.size(); ++n) {
    const auto at = [&](bool fixed, std::int64_t s) -> const Json& {
      return results[(2 * n + (fixed ? 1 : 0)) * static_cast<std::size_t>(seeds) +
                     static_cast<std::size_t>(s)];
    };
    const auto all = [&](bool fixed, const char* key, double factor) {
      std::vector<double> values;
      for (std::int64_t s = 0; s < seeds; ++s)
        values.push_back(factor * at(fixed, s).at(key).get<double>());
      return values;
    };
    const auto total = [&](const char* key) {
      double sum = 0;
      for (const double value : all(true, key, 1)) sum += value;
      return sum;
    };
    const double features = at(true, 0).at("features"), classes = at(true, 0).at("classes");
    const double bound = std::sqrt(features);
    const std::vector<double> products = all(true, "product", 1);
    const double largest = *std::max_element(products.begin(), products.end());
    std::vector<double> scales = all(true, "scale", 1);
    for (double& scale : scales) scale = std::fabs(scale);
    const stats::PairedInterval scale = stats::paired_interval(scales),
                                gain = stats::paired_interval(all(true, "top1", 100),
                                                              all(false, "top1", 100));
    const std::int64_t period = std::int64_t{1}
                                << static_cast<int>(std::ceil(portable::log2(classes)));
    const double rest = static_cast<double>(static_cast<std::int64_t>(features) % period);
    const double cosine =
        worst_cosine(static_cast<std::int64_t>(classes), static_cast<std::int64_t>(features));
    auto add = [&](Finding finding, const char* claim) {
      conclusion.findings.push_back(std::move(finding));
      conclusion.about(claim);
    };
    add(exact_finding(
            fmt::format("{}: worst |cosine| of {} rows at {} features", nets[n], classes, features),
            rest / features, cosine, cosine == rest / features),
        "cosines");
    add(exact_finding(fmt::format("{}: logits that differ between float32 and {} formats of the "
                                  "classifier, of {}",
                                  nets[n], formats.size(),
                                  total("logits") * static_cast<double>(formats.size())),
                      0, total("differ"), total("differ") == 0),
        "formats");
    checks.push_back(
        self_check(fmt::format("{}: largest product of the classifier (at most the root of {})",
                               nets[n], features),
                   bound, largest, largest <= bound * (1 + 0x1p-20)));
    add(interval_finding(
            fmt::format("{}: learned scale (at most 30 over the root of {})", nets[n], features),
            kLargest / bound, scale.mean, {scale.low, scale.high}, at_most(kLargest / bound)),
        "scale");
    const double share = total("saturated") / total("logits");
    add(exact_finding(fmt::format("{}: share of logits beyond 30", nets[n]), 0, share, share == 0),
        "saturation");
    claims.add(fmt::format("{}: points of top-1 gained on a trained classifier, at least -{}",
                           nets[n], kMargin),
               gain, -kMargin, "accuracy");
    table.rows.push_back(
        {nets[n], fmt::format("{:.2f}", stats::paired_interval(all(false, "top1", 100)).mean),
         fmt::format("{:.2f}", stats::paired_interval(all(true, "top1", 100)).mean),
         fmt::format("{:+.2f}", gain.mean),
         gain.n < 2 ? "-" : fmt::format("[{:+.2f}, {:+.2f}]", gain.low, gain.high),
         fmt::format("{:.2f}", scale.mean), fmt::format("{:.1f}", scale.mean * bound),
         fmt::format("{:.0f}", features * classes)});
    chart.series[0].points.push_back({.x = static_cast<double>(n),
                                      .name = nets[n],
                                      .y = gain.mean,
                                      .low = gain.low,
                                      .high = gain.high});
  }
  for (Finding& finding : claims.judged()) conclusion.findings.push_back(std::move(finding));
  for (Finding& check : checks) conclusion.findings.push_back(std::move(check));
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::hadamard

// Networks trained with and without the penalty, evaluated with quantized weights.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/kure/parts.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::kure {
namespace {

constexpr double kTarget = 1.8, kNearTarget = 0.1;  // kurtosis

/// One way to quantize the weights of a trained network.
struct Quantizer {
  int bits = 0;       ///< of symmetric integers
  std::string scale;  ///< rule
  std::string name() const { return fmt::format("int{}, {}", bits, scale); }
};

struct Plan {
  TrainTrial trial;  ///< without seed and recipe
  std::vector<std::uint64_t> seeds;
  std::vector<int> bits;
  std::vector<double> factors;
  std::vector<Quantizer> quantizers;
  double penalty = 1;
};

Plan plan_of(const ExperimentRun& run) {
  Plan plan;
  const Settings& settings = run.settings;
  plan.trial = training_of(settings, settings.text("net"), {.optimizer = "adam"});
  plan.penalty = settings.number("penalty", 0, 1e6);
  plan.seeds = seeds_of(run);
  for (const std::int64_t m : settings.whole_numbers("accuracy_bits", 2, 8))
    plan.bits.push_back(static_cast<int>(m));
  plan.factors = settings.numbers("factors", 0.1, 10);
  for (const int m : plan.bits) {
    plan.quantizers.push_back({m, "mse"});
    plan.quantizers.push_back({m, "pow2(mse)"});
    for (const double factor : plan.factors) {
      if (factor != 1) plan.quantizers.push_back({m, fmt::format("detuned(mse,{})", factor)});
    }
  }
  return plan;
}

double kurtosis_of(const net::Tensor& w) {
  const std::int64_t n = w.size();
  const auto mean_of = [&](auto term) {
    return pairwise_sum(n, [&](std::int64_t i) { return term(double{w.data[i]}); }) /
           static_cast<double>(n);
  };
  const double mean = mean_of([](double x) { return x; });
  const double m2 = mean_of([&](double x) { return (x - mean) * (x - mean); });
  const double m4 = mean_of([&](double x) { return portable::pow(x - mean, 4); });
  return m4 / (m2 * m2);
}

/// Trains, then evaluates in float32 and under every quantizer of all weights.
Json measure(const TrainTrial& trial, const net::Dataset& data, double weight,
             const std::vector<Quantizer>& quantizers) {
  net::Graph graph = net::build_net(trial.net, data);
  net::initialize(graph, trial.seed);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  Json recipe = {{"numemu_recipe", 1}, {"seed", trial.seed}};
  if (weight > 0) recipe["penalty"] = {{"rule", "kure"}, {"weight", weight}};
  {
    policies::RecipeNumerics numerics(policies::Recipe::parse(recipe, "kure"), graph);
    net::train(graph, restricted(data, trial.train_samples, false), options, numerics);
  }
  const auto top1 = [&](net::Numerics& numerics) {
    const net::Evaluation e =
        net::evaluate(graph, data, net::Split::test, trial.eval_samples, numerics);
    return static_cast<double>(e.correct) / static_cast<double>(e.n);
  };
  net::Numerics float32;
  Json result = {{"float32", top1(float32)}, {"kurtosis", Json::array()}, {"top1", Json::array()}};
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) result["kurtosis"].push_back(kurtosis_of(*layer.weight));
  }
  for (const Quantizer& quantizer : quantizers) {
    const Json post = {
        {"numemu_recipe", 1},
        {"roles",
         {{"weight",
           {{"format", fmt::format("int{}", quantizer.bits)}, {"scale", quantizer.scale}}}}}};
    policies::RecipeNumerics numerics(policies::Recipe::parse(post, "kure"), graph);
    numerics.freeze(graph, 0, {});
    result["top1"].push_back(top1(numerics));
  }
  return result;
}

void judge(const std::vector<PairedGain>& gains, const char* claim, Conclusion& conclusion) {
  for (Finding& finding : judge_gains(gains)) conclusion.findings.push_back(std::move(finding));
  conclusion.about(claim);
}

std::string signed_points(const stats::PairedInterval& x) {
  if (x.n < 2) return fmt::format("{:+.2f}", x.mean);
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", x.mean, x.low, x.high);
}

}  // namespace

void add_training(const ExperimentRun& run, Conclusion& conclusion) {
  run.say("loading " + run.settings.text("data"));
  add_training_on(run, net::load_dataset(run.settings.text("data"), run.folders.cache), conclusion);
}

void add_training_on(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Plan plan = plan_of(run);
  const net::Graph graph = net::build_net(plan.trial.net, data);
  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) layers.push_back(layer.name);
  }
  if (layers.empty()) throw Error("--set: net: expected a network with weights");
  const double weight = plan.penalty / static_cast<double>(layers.size());
  std::vector<Trial> trials;
  for (const double lambda : {0.0, weight}) {
    for (const std::uint64_t seed : plan.seeds) {
      TrainTrial trial = plan.trial;
      trial.seed = seed;
      Json point = point_of(trial, data);
      point["penalty"] = lambda;
      for (const Quantizer& quantizer : plan.quantizers)
        point["quantizers"].push_back(quantizer.name());
      trials.push_back(
          {std::move(point),
           fmt::format("{}, seed {}", lambda > 0 ? "with the penalty" : "without", seed),
           [=, &data, &plan] { return measure(trial, data, lambda, plan.quantizers); }});
    }
  }
  const std::vector<Json> results = run_trials(run, trials);
  const std::size_t seeds = plan.seeds.size();
  const auto points = [&](bool kure, std::size_t seed, std::size_t quantizer) {
    return 100 * results[(kure ? seeds : 0) + seed].at("top1").at(quantizer).get<double>();
  };
  const auto floats = [&](bool kure) {
    std::vector<double> all;
    for (std::size_t s = 0; s < seeds; ++s)
      all.push_back(100 * results[(kure ? seeds : 0) + s].at("float32").get<double>());
    return all;
  };
  const auto all_of = [&](bool kure, std::size_t quantizer) {
    std::vector<double> all;
    for (std::size_t s = 0; s < seeds; ++s) all.push_back(points(kure, s, quantizer));
    return all;
  };

  for (std::size_t l = 0; l < layers.size(); ++l) {
    double least = HUGE_VAL, most = -HUGE_VAL, sum = 0;
    for (std::size_t s = 0; s < seeds; ++s) {
      const double k = results[seeds + s].at("kurtosis").at(l);
      least = std::min(least, k);
      most = std::max(most, k);
      sum += k / static_cast<double>(seeds);
    }
    conclusion.findings.push_back(interval_finding(
        fmt::format("kurtosis of {} trained with the penalty, over all seeds", layers[l]), kTarget,
        sum, {least, most}, near(kTarget, kNearTarget)));
  }
  conclusion.about("kurtosis");

  ResultTable table{fmt::format("{} on {}: top-1 with quantized weights, {} seeds, paired by seed",
                                plan.trial.net, data.name(), seeds),
                    {"weights", "without penalty, %", "with penalty, %", "gain, points"},
                    {}};
  const stats::PairedInterval in_float32 = stats::paired_interval(floats(true), floats(false));
  table.rows.push_back({"float32",
                        fmt::format("{:.2f}", stats::paired_interval(floats(false)).mean),
                        fmt::format("{:.2f}", stats::paired_interval(floats(true)).mean),
                        signed_points(in_float32)});
  std::vector<PairedGain> gains, rounded;
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = "Top-1 gained by the penalty";
  chart.caption = fmt::format(
      "Mean difference with and without KURE over {} seeds, with its 95 % interval by Student's "
      "law "
      "paired by seed; in float32 {}.",
      seeds, signed_points(in_float32));
  chart.y = "gain, points";
  ChartSeries series{"measured", {}, false};
  for (std::size_t q = 0; q < plan.quantizers.size(); ++q) {
    const std::string name = plan.quantizers[q].name();
    const stats::PairedInterval gain = stats::paired_interval(all_of(true, q), all_of(false, q));
    table.rows.push_back(
        {name, fmt::format("{:.2f}", stats::paired_interval(all_of(false, q)).mean),
         fmt::format("{:.2f}", stats::paired_interval(all_of(true, q)).mean), signed_points(gain)});
    gains.push_back({fmt::format("points gained, {}", name), gain});
    series.points.push_back({.x = static_cast<double>(q),
                             .name = name,
                             .y = gain.mean,
                             .low = gain.low,
                             .high = gain.high});
    if (plan.quantizers[q].scale != "pow2(mse)") continue;
    // In front of it stands the same quantizer at its best step.
    std::vector<double> spared;
    for (std::size_t s = 0; s < seeds; ++s)
      spared.push_back((points(true, s, q) - points(true, s, q - 1)) -
                       (points(false, s, q) - points(false, s, q - 1)));
    rounded.push_back({fmt::format("points spared by the penalty where the step is rounded, int{}",
                                   plan.quantizers[q].bits),
                       stats::paired_interval(spared)});
  }
  judge(gains, "accuracy", conclusion);
  judge(rounded, "power of two", conclusion);
  ResultTable kurtosis{"kurtosis of the trained weights, mean over seeds (uniform 1.8, normal 3)",
                       {"layer", "without penalty", "with penalty"},
                       {}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<std::string> row = {layers[l]};
    for (const bool kure : {false, true}) {
      double sum = 0;
      for (std::size_t s = 0; s < seeds; ++s)
        sum += results[(kure ? seeds : 0) + s].at("kurtosis").at(l).get<double>();
      row.push_back(fmt::format("{:.2f}", sum / static_cast<double>(seeds)));
    }
    kurtosis.rows.push_back(std::move(row));
  }
  chart.series.push_back(std::move(series));
  conclusion.sentences.push_back(
      fmt::format("In float32 the penalty changes top-1 by {} points.", signed_points(in_float32)));
  conclusion.tables.push_back(std::move(kurtosis));
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::kure

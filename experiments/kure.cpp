// Weights trained toward a uniform law: does a quantizer whose step, bits or rounding of the step
// change hurt them less (KURE, Shkolnik et al., NeurIPS 2020, arXiv 2002.07686)?
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/kure/laws.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/npy.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace kure {
namespace {

constexpr double kTarget = 1.8, kNearTarget = 0.1;  // kurtosis

/// One way to quantize the weights of a trained network.
struct Quantizer {
  int bits = 0;       ///< of symmetric integers
  std::string scale;  ///< rule
  std::string name() const { return fmt::format("int{}, {}", bits, scale); }
};

std::vector<Quantizer> quantizers_of(const Settings& settings) {
  std::vector<Quantizer> all;
  for (const std::int64_t m : settings.whole_numbers("accuracy_bits")) {
    const int bits = static_cast<int>(m);
    all.push_back({bits, "mse"});
    all.push_back({bits, "pow2(mse)"});
    for (const double factor : settings.numbers("factors"))
      if (factor != 1) all.push_back({bits, fmt::format("detuned(mse,{})", factor)});
  }
  return all;
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

/// Shares of right answers in float32 and under every quantizer; the kurtosis of every weight.
struct Measured {
  double float32 = 0;
  std::vector<double> kurtosis = {}, top1 = {};

  static void fields(auto& self, const auto& visit) {
    visit("float32", self.float32);
    visit("kurtosis", self.kurtosis);
    visit("top1", self.top1);
  }
};

/// Trains, then evaluates in float32 and under every quantizer of all weights.
Measured measure(const TrainTrial& trial, const net::Dataset& data, double weight,
                 const std::vector<Quantizer>& quantizers) {
  net::Graph graph = initial_network(trial, data);
  Json recipe = Json::object();
  if (weight > 0) recipe["penalty"] = {{"rule", "kure"}, {"weight", weight}};
  {
    policies::RecipeNumerics numerics(policies::Recipe::make(recipe, "kure", trial.seed), graph);
    train_under(numerics, graph, trial, data);
  }
  const auto top1 = [&](net::Numerics& numerics) {
    return test_top1(graph, data, trial.eval_samples, numerics);
  };
  net::Numerics float32;
  Measured result{.float32 = top1(float32)};
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) result.kurtosis.push_back(kurtosis_of(*layer.weight));
  }
  for (const Quantizer& quantizer : quantizers) {
    const Json role = {{"format", fmt::format("int{}", quantizer.bits)},
                       {"scale", quantizer.scale}};
    policies::RecipeNumerics numerics(
        policies::Recipe::make({{"roles", {{"weight", role}}}}, "kure"), graph);
    numerics.freeze(graph, 0, {});
    result.top1.push_back(top1(numerics));
  }
  return result;
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainingPlan plan{
      .trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "adam"}),
      .data = data.name(),
      .seeds = seeds_of(run)};
  const net::Graph graph = initial_network(plan.trial, data);
  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) layers.push_back(layer.name);
  }
  if (layers.empty()) throw usage_error("--set: net: expected a network with weights");
  const double weight = run.settings.number("penalty") / static_cast<double>(layers.size());
  const std::vector<Quantizer> quantizers = quantizers_of(run.settings);
  Json of_point;
  for (const Quantizer& quantizer : quantizers) of_point.push_back(quantizer.name());
  enum : std::size_t { kWithout, kWith };
  const double lambdas[] = {0, weight};
  for (const double lambda : lambdas)
    plan.methods.push_back({.name = lambda > 0 ? "with the penalty" : "without",
                            .counted = {{"penalty", lambda}, {"quantizers", of_point}}});
  const auto study =
      run_training_study<Measured>(run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return measure(trial, data, lambdas[m], quantizers);
      });
  const std::size_t seeds = study.seeds();
  /// Top-1 in per cent without and with the penalty.
  const SeedFigures floats = study.figures([](const Measured& m) { return 100 * m.float32; });
  const auto quantized = [&](std::size_t q) {
    return study.figures([q](const Measured& m) { return 100 * m.top1.at(q); });
  };

  for (std::size_t l = 0; l < layers.size(); ++l) {
    double least = HUGE_VAL, most = -HUGE_VAL, sum = 0;
    for (std::size_t s = 0; s < seeds; ++s) {
      const double k = study.runs[kWith][s].kurtosis.at(l);
      least = std::min(least, k);
      most = std::max(most, k);
      sum += k / static_cast<double>(seeds);
    }
    conclusion.add(
        interval_finding(
            fmt::format("kurtosis of {} trained with the penalty, over all seeds", layers[l]),
            kTarget, sum, {least, most}, near(kTarget, kNearTarget)),
        "kurtosis");
  }

  // float32, then every quantizer.
  std::vector<std::string> names = {"float32"};
  std::vector<SeedFigures> top1s = {floats};
  const std::string in_float32 = mean_text(gain(floats, kWith));
  std::vector<PairedGain> gains, rounded;
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Top-1 gained by the penalty",
              .caption = fmt::format(
                  "Mean difference with and without KURE over {}, with its 95 % interval by "
                  "Student's law paired by seed; in float32 {}.",
                  counted(seeds, "seed"), in_float32),
              .y = "gain, points",
              .series = {{"measured", {}, false}}};
  for (std::size_t q = 0; q < quantizers.size(); ++q) {
    const std::string name = quantizers[q].name();
    const SeedFigures top1 = quantized(q);
    gains.push_back({fmt::format("points gained, {}", name), gain(top1, kWith)});
    chart.series[0].points.push_back(gain_point(static_cast<double>(q), name, gain(top1, kWith)));
    if (quantizers[q].scale == "pow2(mse)") {
      const SeedFigures& best = top1s.back();  // of the same quantizer at its best step
      std::vector<double> spared;
      for (std::size_t s = 0; s < seeds; ++s)
        spared.push_back((top1[kWith][s] - best[kWith][s]) -
                         (top1[kWithout][s] - best[kWithout][s]));
      rounded.push_back(
          {fmt::format("points spared by the penalty where the step is rounded, int{}",
                       quantizers[q].bits),
           stats::paired_interval(spared)});
    }
    names.push_back(name);
    top1s.push_back(top1);
  }
  conclusion.add(judge_gains(gains), "accuracy");
  conclusion.add(judge_gains(rounded), "power of two");
  const auto kurtosis = [&](std::size_t method) {
    return [&, method](std::size_t layer) {
      double sum = 0;
      for (const Measured& one : study.runs[method]) sum += one.kurtosis.at(layer);
      return fmt::format("{:.2f}", sum / static_cast<double>(seeds));
    };
  };
  const auto mean = [&](std::size_t method) {
    return [&, method](std::size_t row) {
      return fmt::format("{:.2f}", stats::paired_interval(top1s[row][method]).mean);
    };
  };
  conclusion.sentences.push_back(
      fmt::format("In float32 the penalty changes top-1 by {} points.", in_float32));
  conclusion.tables.push_back(study_table(
      "kurtosis of the trained weights, mean over seeds (uniform 1.8, normal 3)", layers.size(),
      {name_column("layer", layers),
       {"without penalty", kurtosis(kWithout)},
       {"with penalty", kurtosis(kWith)}}));
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}: top-1 with quantized weights, {}, paired by seed", plan.trial.net,
                  data.name(), counted(seeds, "seed")),
      names.size(),
      {name_column("weights", names),
       {"without penalty, %", mean(kWithout)},
       {"with penalty, %", mean(kWith)},
       {"gain, points", [&](std::size_t row) { return mean_text(gain(top1s[row], kWith)); }}}));
  conclusion.charts.push_back(std::move(chart));
}

std::string codebook_file(const ExperimentRun& run, int bits) {
  std::filesystem::create_directories(run.out);
  const std::string file = fmt::format("{}/levels-{}.npy", run.out, bits);
  const std::vector<double> entries = levels(bits);
  write_npy(file, ArrayType::float64, {static_cast<std::int64_t>(entries.size())}, entries.data());
  return file;
}

}  // namespace kure

namespace {

Conclusion run_kure(const ExperimentRun& run) {
  Conclusion conclusion;
  kure::add_curves(run, conclusion);
  kure::add_training(run, load_data(run), conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_kure;
const Experiment experiment_kure = {
    "kure",
    "are weights of uniform law less sensitive to the step, the bits and a rounded step of their "
    "quantizer, and does training toward that law gain accuracy",
    "Shkolnik et al. (NeurIPS 2020, arXiv 2002.07686) claim that a penalty on the kurtosis makes "
    "weights near uniform, and that these are less sensitive to changes of the quantizer than "
    "normal weights, so that few bits and steps that are powers of two cost less accuracy.",
    {{"curves", "The error over the step follows the closed forms within 1 % (derived here)."},
     {"published curve",
      "Beyond the end of the uniform law the error is D^2 / 12, as published, within 1 % "
      "(published)."},
     {"optimum", "Best steps and least errors are those of the closed forms (derived here)."},
     {"theorem, published step",
      "At the published step 2a / 2^M the second derivative of the uniform law's error is below "
      "the normal law's (published)."},
     {"theorem, best step",
      "At the step of least error the uniform law is less sensitive than the normal law too (a "
      "contrast)."},
     {"error", "The error itself is lower under the uniform law (a contrast)."},
     {"kurtosis",
      "The penalty brings the kurtosis of every weight to within 0.1 of 1.8 (published; the margin "
      "is ours).",
      "epochs"},
     {"accuracy",
      "Networks trained with the penalty keep more top-1 when weights are quantized (published).",
      "epochs"},
     {"power of two",
      "Rounding the step to a power of two costs networks trained with the penalty less top-1 "
      "(published).",
      "epochs"}},
    {{"bits", "2,4", "2,3,4,5,6", "2,3,4,5,6,8", "of the quantizer on numbers of known laws",
      wholes(2, 8)},
     {"factors", "0.7,1,1.3", "0.7,0.85,1,1.15,1.3", "0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.5,2",
      "steps over the best step", reals(0.1, 10)},
     {"samples", "200000", "8000000", "32000000", "numbers of each law", whole(64, 1'000'000'000)},
     {"net", "mlp", "mlp", "mlp", "network to train", takes_network()},
     data_setting(),
     {"penalty", "1", "1", "1", "lambda, divided by the number of weights", real(0, 1e6)},
     {"accuracy_bits", "2", "2,3,4", "2,3,4", "of the weights", wholes(2, 8)},
     rate_settings(),
     training_settings({"1", "6", "12"}, "128", {"2048", "16384", "16384"}, {"500", "4000", "0"}),
     seeds_setting({"1", "10", "20"}, "networks")},
    run_kure};

}  // namespace numemu::experiments

// Statistics re-estimated after quantization: a normalised linear layer in closed form, then a
// network with batch normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/hfp8/numbers.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "policies/calibrate/batch_norm.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::hfp8 {
namespace {

constexpr int kInputs = 64, kOutputs = 32;  // of the linear layer
constexpr double kShareHolds = 0.05;        // of the noise of stale statistics

struct Cast {
  const char* format;
  double scale;  ///< of weights times sqrt(kInputs), and of inputs
};
constexpr Cast kCasts[] = {{"hfp8_e5m2", 1}, {"hfp8_e4m3", 1}, {"int4", 0.5}};

struct Moments {
  double mean = 0, deviation = 0;
};

void judge_layer(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t rows = run.settings.integer("layer_rows", 100, 1'000'000),
                     layers = run.settings.integer("layers", 2, 10'000);
  std::vector<Trial> trials;
  for (const Cast& cast : kCasts) {
    for (std::int64_t s = 0; s < layers; ++s) {
      const std::uint64_t seed = run.seed + static_cast<std::uint64_t>(s);
      trials.push_back({{{"part", "layer"},
                         {"format", cast.format},
                         {"scale", cast.scale},
                         {"rows", rows},
                         {"seed", seed}},
                        fmt::format("a layer in {}, seed {}", cast.format, seed),
                        [=] {
                          const Operand operand{cast.format, cast.scale};
                          return layer_noise(operand, operand, rows, seed);
                        }});
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  ResultTable table{
      fmt::format("A normalised linear layer of {} inputs behind a ReLU, {} draws: noise of its "
                  "results, predicted | measured",
                  kInputs, layers),
      {"format", "stale statistics", "re-estimated", "re-estimated over stale"},
      {}};
  for (std::size_t f = 0; f < std::size(kCasts); ++f) {
    const std::vector<Cell> steps = cells(find_format(kCasts[f].format), {}, true);
    const auto law = normal_density(0, 1);
    // Half of the inputs are zero, so that noise and power halve alike.
    const double each = error_moments(steps, kCasts[f].scale, *law).mse;
    const double mean_square = std::numbers::inv_pi;  // E[x]^2 / E[x^2] behind a ReLU
    const double stale = 2 * each / (1 - mean_square);
    const double share = retuned_share(each, each, mean_square);
    double sums[2] = {0, 0};
    std::vector<double> shares;
    for (std::int64_t s = 0; s < layers; ++s) {
      const Json& result = results[f * static_cast<std::size_t>(layers) + s];
      const double a = result.at("stale"), b = result.at("tuned");
      sums[0] += a / static_cast<double>(layers);
      sums[1] += b / static_cast<double>(layers);
      shares.push_back(b / a);
    }
    const auto measured = stats::paired_interval(shares);
    conclusion.findings.push_back(interval_finding(
        fmt::format("noise left by re-estimated statistics of a layer in {}, over stale ones",
                    kCasts[f].format),
        share, measured.mean, {measured.low, measured.high}, near(share, kShareHolds)));
    table.rows.push_back({kCasts[f].format, fmt::format("{:.5f} | {:.5f}", stale, sums[0]),
                          fmt::format("{:.5f} | {:.5f}", stale * share, sums[1]),
                          fmt::format("{:.3f} | {:.3f}", share, measured.mean)});
  }
  conclusion.about("layer");
  conclusion.tables.push_back(std::move(table));
}

/// Top-1 of a trained network in float32, and by format with stale and re-estimated statistics.
Json measure(const TrainTrial& trial, const net::Dataset& data,
             const std::vector<std::string>& formats, std::int64_t samples) {
  net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const auto top1 = [&](net::Numerics& numerics) {
    const net::Evaluation e =
        net::evaluate(graph, data, net::Split::test, trial.eval_samples, numerics);
    return static_cast<double>(e.correct) / static_cast<double>(e.n);
  };
  const auto batch = [&](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{data.calibration_batch(first, count, targets)};
  };
  std::vector<std::vector<net::Tensor>> batches;
  constexpr std::int64_t kBatch = 64;
  for (std::int64_t first = 0; first < samples; first += kBatch)
    batches.push_back(batch(first, std::min(kBatch, samples - first)));
  const net::Checkpoint trained = net::parameters_of(graph);
  Json result = {{"float32", top1(float32)}, {"stale", Json::array()}, {"tuned", Json::array()}};
  for (const std::string& format : formats) {
    net::load_parameters(graph, trained, "hfp8");
    Json role = {{"format", format}};
    if (format.starts_with("hfp8")) role["scale"] = "none";
    const Json recipe = {{"numemu_recipe", 1}, {"roles", {{"weight", role}, {"activation", role}}}};
    policies::RecipeNumerics numerics(policies::Recipe::parse(recipe, "hfp8"), graph);
    numerics.freeze(graph, samples, batch);
    result["stale"].push_back(top1(numerics));
    policies::reestimate_batch_norm(graph, batches, numerics);
    result["tuned"].push_back(top1(numerics));
  }
  return result;
}

void judge_network(const ExperimentRun& run, const net::Dataset& whole, Conclusion& conclusion) {
  net::DataView view;
  view.image_size = run.settings.integer("norm_image_size", 1, 10'000);
  const net::Dataset data = net::view_of(whole, view);
  const std::vector<std::string> formats = run.settings.list("norm_formats");
  const std::int64_t samples = run.settings.integer("norm_samples", 2, data.calibration_count());
  const std::string& net = run.settings.text("norm_net");
  const TrainTrial shared = training_of(
      run.settings, net, {.optimizer = net::recommended_optimizer(net), .prefix = "norm_"});
  const std::vector<std::uint64_t> seeds = seeds_of(run, "norm_seeds");
  std::vector<Trial> trials;
  for (const std::uint64_t seed : seeds) {
    TrainTrial trial = shared;
    trial.seed = seed;
    Json point = point_of(trial, data);
    point["retuned"] = {{"formats", formats}, {"samples", samples}};
    trials.push_back({std::move(point), fmt::format("{}, seed {}", trial.net, seed),
                      [=, &data] { return measure(trial, data, formats, samples); }});
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  const auto of = [&](const char* key, std::size_t format) {
    std::vector<double> all;
    for (const Json& result : results) {
      const Json& value = result.at(key);
      all.push_back(100 * (value.is_array() ? value.at(format) : value).get<double>());
    }
    return all;
  };
  ResultTable table{fmt::format("{} on {}, {} seeds: top-1 of the trained network quantized, %",
                                shared.net, data.name(), seeds.size()),
                    {"format", "float32", "stale statistics", "re-estimated", "gain, points"},
                    {}};
  std::vector<PairedGain> gains;
  for (std::size_t f = 0; f < formats.size(); ++f) {
    const auto gain = stats::paired_interval(of("tuned", f), of("stale", f));
    gains.push_back(
        {fmt::format("points gained by re-estimated statistics, {} in {}", shared.net, formats[f]),
         gain});
    const auto mean = [&](const char* key) {
      return fmt::format("{:.2f}", stats::paired_interval(of(key, f)).mean);
    };
    table.rows.push_back({formats[f], mean("float32"), mean("stale"), mean("tuned"),
                          seeds.size() < 2 ? fmt::format("{:+.2f}", gain.mean)
                                           : fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", gain.mean,
                                                         gain.low, gain.high)});
  }
  for (Finding& finding : judge_gains(gains)) conclusion.findings.push_back(std::move(finding));
  conclusion.about("network");
  conclusion.tables.push_back(std::move(table));
}

}  // namespace

Json layer_noise(const Operand& weights, const Operand& inputs, std::int64_t rows,
                 std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(rows);
  std::vector<float> x =
      normal::sample({seed, Stream::data, tensor_word("hfp8/x"), 0}, count * kInputs);
  for (float& v : x) v = std::max(v, 0.0f);
  std::vector<float> w =
      normal::sample({seed, Stream::data, tensor_word("hfp8/w"), 0}, kOutputs * kInputs);
  std::vector<float> xq(x.size()), wq(w.size());
  const auto round = [](const Operand& operand, const std::vector<float>& from,
                        std::vector<float>& to) {
    quantize_values({.format = &find_format(operand.format)}, from.data(), std::ssize(from),
                    static_cast<float>(operand.scale), to.data());
  };
  round(inputs, x, xq);
  round(weights, w, wq);
  double stale = 0, tuned = 0;
  for (int c = 0; c < kOutputs; ++c) {
    std::vector<double> y(count), yq(count);
    for (std::size_t r = 0; r < count; ++r) {
      for (int i = 0; i < kInputs; ++i) {
        y[r] += double{x[r * kInputs + i]} * w[c * kInputs + i];
        yq[r] += double{xq[r * kInputs + i]} * wq[c * kInputs + i];
      }
    }
    const auto moments = [&](const std::vector<double>& v) {
      double sum = 0, squares = 0;
      for (const double e : v) sum += e;
      const double mean = sum / static_cast<double>(count);
      for (const double e : v) squares += (e - mean) * (e - mean);
      return Moments{mean, std::sqrt(squares / static_cast<double>(count))};
    };
    const Moments old = moments(y), now = moments(yq);
    for (std::size_t r = 0; r < count; ++r) {
      const double wanted = (y[r] - old.mean) / old.deviation;
      const double a = (yq[r] - old.mean) / old.deviation - wanted;
      const double b = (yq[r] - now.mean) / now.deviation - wanted;
      stale += a * a;
      tuned += b * b;
    }
  }
  const double all = static_cast<double>(rows) * kOutputs;
  return {{"stale", stale / all}, {"tuned", tuned / all}};
}

void add_norms(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  judge_layer(run, conclusion);
  judge_network(run, data, conclusion);
}

}  // namespace numemu::experiments::hfp8

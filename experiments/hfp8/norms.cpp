// Statistics re-estimated after quantization: a normalised linear layer in closed form, then a
// network with batch normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/hfp8/numbers.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::hfp8 {
namespace {

constexpr int kInputs = 64, kOutputs = 32;  // of the linear layer

struct Cast {
  const char* format;
  double scale;  ///< of weights times sqrt(kInputs), and of inputs
};
constexpr Cast kCasts[] = {{"hfp8_e5m2", 1}, {"hfp8_e4m3", 1}, {"int4", 0.5}};

struct Moments {
  double mean = 0, deviation = 0;
};

void judge_layer(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t rows = run.settings.integer("layer_rows");
  StudyPlan plan{.methods = {}, .seeds = seeds_of(run, "layers", 2, 10'000), .at_once = true};
  for (const Cast& cast : kCasts) plan.methods.push_back(fmt::format("a layer in {}", cast.format));
  const auto study = run_study<LayerNoise>(
      run, plan, [&](std::size_t method, std::uint64_t seed) -> StudyRun<LayerNoise> {
        const Operand operand{kCasts[method].format, kCasts[method].scale};
        return {{{"part", "layer"},
                 {"format", operand.format},
                 {"scale", operand.scale},
                 {"rows", rows},
                 {"seed", seed}},
                [=] { return layer_noise(operand, operand, rows, seed); }};
      });
  ResultTable table{
      fmt::format("A normalised linear layer of {} inputs behind a ReLU, {} draws: noise of its "
                  "results, predicted | measured",
                  kInputs, plan.seeds.size()),
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
    const stats::PairedInterval measured = stats::paired_interval(
        study.figures(f, [](const LayerNoise& noise) { return noise.tuned / noise.stale; }));
    conclusion.add(
        interval_finding(
            fmt::format("noise left by re-estimated statistics of a layer in {}, over stale ones",
                        kCasts[f].format),
            share, measured, near(share, kClosedForm * share)),
        "layer");
    const auto row = [&](double predicted, double LayerNoise::*noise) {
      return fmt::format("{:.5f} | {:.5f}", predicted, study.mean(f, noise));
    };
    table.rows.push_back({kCasts[f].format, row(stale, &LayerNoise::stale),
                          row(stale * share, &LayerNoise::tuned),
                          fmt::format("{:.3f} | {:.3f}", share, measured.mean)});
  }
  conclusion.tables.push_back(std::move(table));
}

/// Top-1 of a trained network in float32, and by format with stale and re-estimated statistics.
struct Retuned {
  double float32 = 0;
  std::vector<double> stale = {}, tuned = {};

  static void fields(auto& self, const auto& visit) {
    visit("float32", self.float32);
    visit("stale", self.stale);
    visit("tuned", self.tuned);
  }
};

Retuned measure(const TrainTrial& trial, const net::Dataset& data,
                const std::vector<std::string>& formats, std::int64_t samples) {
  net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const auto top1 = [&](net::Numerics& numerics) {
    return test_top1(graph, data, trial.eval_samples, numerics);
  };
  const policies::CalibrationBatch batch = calibration_of(data);
  std::vector<std::vector<net::Tensor>> batches;
  constexpr std::int64_t kBatch = 64;
  for (std::int64_t first = 0; first < samples; first += kBatch)
    batches.push_back(batch(first, std::min(kBatch, samples - first)));
  const net::Checkpoint trained = net::parameters_of(graph);
  Retuned result{.float32 = top1(float32)};
  for (const std::string& format : formats) {
    net::load_parameters(graph, trained, "hfp8");
    Json role = {{"format", format}};
    if (format.starts_with("hfp8")) role["scale"] = "none";
    policies::RecipeNumerics numerics(
        policies::Recipe::make({{"roles", {{"weight", role}, {"activation", role}}}}, "hfp8"),
        graph);
    numerics.freeze(graph, samples, batch);
    result.stale.push_back(top1(numerics));
    policies::reestimate_batch_norm(graph, batches, numerics);
    result.tuned.push_back(top1(numerics));
  }
  return result;
}

void judge_network(const ExperimentRun& run, const net::Dataset& whole, Conclusion& conclusion) {
  net::DataView view;
  view.image_size = run.settings.integer("norm_image_size");
  const net::Dataset data = net::view_of(whole, view);
  const std::vector<std::string> formats = run.settings.list("norm_formats");
  const std::int64_t samples = run.settings.integer("norm_samples", 2, data.calibration_count());
  const std::string& net = run.settings.text("norm_net");
  const TrainingPlan plan{
      .trial = training_of(run.settings, net,
                           {.optimizer = net::recommended_optimizer(net), .prefix = "norm_"}),
      .data = data.name(),
      .seeds = seeds_of(run, "norm_seeds"),
      .methods = {{.name = net,
                   .counted = {{"retuned", {{"formats", formats}, {"samples", samples}}}}}},
      .at_once = true};
  const auto study = run_training_study<Retuned>(
      run, data, plan,
      [&](const TrainTrial& trial, std::size_t) { return measure(trial, data, formats, samples); });
  ResultTable table{fmt::format("{} on {}, {}: top-1 of the trained network quantized, %", net,
                                data.name(), counted(study.seeds(), "seed")),
                    {"format", "float32", "stale statistics", "re-estimated", "gain, points"},
                    {}};
  std::vector<PairedGain> gains;
  const std::vector<double> float32 =
      study.figures(0, [](const Retuned& one) { return 100 * one.float32; });
  for (std::size_t f = 0; f < formats.size(); ++f) {
    const auto of = [&](std::vector<double> Retuned::*figures) {
      return study.figures(0, [&](const Retuned& one) { return 100 * (one.*figures).at(f); });
    };
    const std::vector<double> tuned = of(&Retuned::tuned), stale = of(&Retuned::stale);
    const stats::PairedInterval gain = stats::paired_interval(tuned, stale);
    gains.push_back(
        {fmt::format("points gained by re-estimated statistics, {} in {}", net, formats[f]), gain});
    const auto mean = [](const std::vector<double>& top1) {
      return fmt::format("{:.2f}", stats::paired_interval(top1).mean);
    };
    table.rows.push_back({formats[f], mean(float32), mean(stale), mean(tuned), mean_text(gain)});
  }
  conclusion.add(judge_gains(gains), "network");
  conclusion.tables.push_back(std::move(table));
}

}  // namespace

LayerNoise layer_noise(const Operand& weights, const Operand& inputs, std::int64_t rows,
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
  return {stale / all, tuned / all};
}

void add_norms(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  judge_layer(run, conclusion);
  judge_network(run, data, conclusion);
}

}  // namespace numemu::experiments::hfp8

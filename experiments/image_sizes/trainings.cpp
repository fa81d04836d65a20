// Trainings at one size and at several, and accuracy by the size of test images.
#include "experiments/image_sizes/trainings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/image_sizes/steps.hpp"
#include "experiments/methods/published.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::image_sizes {
namespace {

constexpr std::int64_t kChunk = 64;  // samples of a batch that statistics are re-estimated on

/// Top-1 in per cent by test size, with statistics as trained and re-estimated; multiply-adds.
struct Trained {
  std::optional<std::int64_t> diverged = {};  ///< the update from which on no loss is finite
  std::int64_t steps = 0;
  double multiply_adds = 0;
  std::vector<double> stale = {}, tuned = {};

  static void fields(auto& self, const auto& visit) {
    visit("diverged", self.diverged);
    visit("steps", self.steps);
    visit("multiply_adds", self.multiply_adds);
    visit("stale", self.stale);
    visit("tuned", self.tuned);
  }
};

Trained measure(const TrainTrial& trial, const net::Dataset& whole, const Question& asked) {
  const net::Dataset data = restricted(whole, trial.train_samples, false);
  net::Graph graph = initial_network(trial, data);
  const policies::Recipe recipe = parsed_recipe(trial);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  Trained result;
  {
    policies::RecipeNumerics numerics(recipe, graph);
    Observed counted(numerics, {.before = [&](const net::Product& product, std::int64_t) {
                       result.multiply_adds += net::multiply_adds(product);
                     }});
    net::TrainHooks hooks;
    hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
      result.steps = step + 1;
      if (std::isfinite(loss))
        result.diverged.reset();
      else if (!result.diverged)
        result.diverged = step + 1;
    };
    net::train(graph, data, options, counted, hooks);
  }
  if (result.diverged) return result;  // no accuracy
  const net::Checkpoint trained = net::parameters_of(graph);
  for (const std::int64_t size : asked.tests) {
    const net::Dataset seen = net::view_of(data, {.image_size = size});
    at_size(graph, size);
    net::load_parameters(graph, trained, "image-sizes");
    policies::RecipeNumerics numerics(recipe, graph);
    freeze(numerics, graph, seen);
    const auto top1 = [&] { return 100 * test_top1(graph, seen, trial.eval_samples, numerics); };
    result.stale.push_back(top1());
    const policies::CalibrationBatch batch = calibration_of(seen);
    std::vector<std::vector<net::Tensor>> batches;
    for (std::int64_t first = 0; first < asked.norm_samples; first += kChunk)
      batches.push_back(batch(first, std::min(kChunk, asked.norm_samples - first)));
    policies::reestimate_batch_norm(graph, batches, numerics);
    result.tuned.push_back(top1());
  }
  return result;
}

}  // namespace

Json recipe_in(const std::string& format) {
  Json recipe = Json::object();
  if (format == "float32") return recipe;
  for (const char* role : {"weight", "activation"}) recipe["roles"][role] = {{"format", format}};
  return recipe;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, const Question& asked,
                  const std::string& format, Conclusion& conclusion) {
  StudyPlan plan{{}, seeds_of(run), true, format + ", "};
  for (const Method& method : asked.methods) plan.methods.push_back(method.name);
  const auto trial_of = [&](std::size_t method, std::uint64_t seed) {
    TrainTrial trial = asked.trial;
    trial.options.sizes = asked.methods[method].sizes;
    trial.seed = trial.options.seed = seed;
    trial.recipe = recipe_in(format);
    return trial;
  };
  const auto study =
      run_study<Trained>(run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<Trained> {
        const TrainTrial trial = trial_of(m, seed);
        Json point = point_of(trial, data);
        point["tests"] = run.settings.text("tests");
        point["norm_samples"] = asked.norm_samples;
        return {point, [=, &data, &asked] { return measure(trial, data, asked); }};
      });
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const net::Dataset used = restricted(data, asked.trial.train_samples, false);
  const net::Graph graph = initial_network(asked.trial, used);
  std::vector<double> predicted(study.size());  // multiply-adds of all seeds
  for (std::size_t m = 0; m < study.size(); ++m) {
    for (const std::uint64_t seed : plan.seeds)
      predicted[m] += training_cost(graph, used, trial_of(m, seed).options);
  }
  const auto at = [&](std::vector<double> Trained::*figures, std::size_t t) {
    return study.figures(
        [=](const Trained& one) { return one.diverged ? NAN : (one.*figures).at(t); });
  };
  const std::size_t own =
      static_cast<std::size_t>(std::ranges::find(asked.tests, asked.own) - asked.tests.begin());
  // What is lost at the other sizes, on average.
  const SeedFigures drop = study.figures([=](const Trained& one) {
    if (one.diverged) return double{NAN};
    double sum = 0;
    for (const double top1 : one.tuned) sum += one.tuned[own] - top1;
    return sum / static_cast<double>(std::max<std::size_t>(one.tuned.size() - 1, 1));
  });
  const SeedFigures top1 = at(&Trained::tuned, own);
  std::vector<PairedGain> gains;
  for (const std::size_t m : {kBatch, kCopies}) {
    gains.push_back(
        {fmt::format("{}: points gained at {} pixels by '{}'", format, asked.own, plan.methods[m]),
         gain(top1, m, kFixed), published_in(format, "accuracy")});
    gains.push_back(
        {fmt::format("{}: points less lost at other sizes by '{}'", format, plan.methods[m]),
         gain(drop, kFixed, m), published_in(format, "resilience")});
  }
  gains.push_back({fmt::format("{}: points gained by smoothing", format),
                   gain(top1, kSmoothed, kCopies), published_in(format, "smoothing")});
  std::vector<StudyColumn> columns{
      name_column("method", plan.methods),
      {"steps",
       [&](std::size_t m) { return fmt::format("{:.0f}", study.mean(m, &Trained::steps)); }},
      {"G multiply-adds, predicted | counted", [&](std::size_t m) {
         const double seeds = 1e9 * static_cast<double>(plan.seeds.size());
         return fmt::format("{:.2f} | {:.2f}", predicted[m] / seeds,
                            study.mean(m, &Trained::multiply_adds) * 1e-9);
       }}};
  Chart chart{.title = "Accuracy by the size of test images, " + asked.trial.net + " in " + format,
              .caption =
                  "Means over the seeds, statistics re-estimated for each size, and as "
                  "trained for the first method.",
              .x = "pixels",
              .y = "top-1, %"};
  for (std::size_t t = 0; t < asked.tests.size(); ++t) {
    const SeedFigures stale = at(&Trained::stale, t), tuned = at(&Trained::tuned, t);
    const auto size = static_cast<double>(asked.tests[t]);
    const auto mean = [](const std::vector<double>& figures) {
      return stats::paired_interval(figures).mean;
    };
    columns.push_back(mean_column(fmt::format("{} as trained, %", asked.tests[t]), stale, 1));
    columns.push_back(mean_column(fmt::format("{} re-estimated, %", asked.tests[t]), tuned, 1));
    for (std::size_t m = 0; m < study.size(); ++m)
      chart.of(plan.methods[m]).points.push_back({.x = size, .y = mean(tuned[m])});
    chart.of(plan.methods[kFixed] + ", as trained")
        .points.push_back({.x = size, .y = mean(stale[kFixed])});
    if (t == own) continue;
    gains.push_back({fmt::format("{}: points gained by re-estimated statistics at {} pixels, '{}'",
                                 format, asked.tests[t], plan.methods[kFixed]),
                     stats::paired_interval(tuned[kFixed], stale[kFixed]),
                     published_in(format, "statistics")});
  }
  conclusion.add(judge_gains(gains));
  conclusion.tables.push_back(
      study_table(fmt::format("{} on {} in {}, {}: top-1 by size of test images", asked.trial.net,
                              data.name(), format, counted(std::ssize(plan.seeds), "seed")),
                  study.size(), columns));
  conclusion.charts.push_back(std::move(chart));
  for (std::size_t m = 0; m < study.size(); ++m) {
    double counted = 0;
    for (const Trained& one : study.runs[m]) counted += one.multiply_adds;
    conclusion.add(exact_finding(fmt::format("{}: multiply-adds of '{}'", format, plan.methods[m]),
                                 predicted[m], counted, predicted[m] == counted),
                   "cost");
  }
}

}  // namespace numemu::experiments::image_sizes

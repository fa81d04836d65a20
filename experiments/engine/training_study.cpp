#include "experiments/engine/training_study.hpp"

#include <fmt/format.h>

#include "emu/net/train/options.hpp"
#include "emu/stats/paired.hpp"

namespace numemu::experiments {

TrainTrial training_of(const Settings& settings, const std::string& net,
                       const TrainingNeeds& needs) {
  TrainTrial trial;
  const auto whole = [&](const char* key, std::int64_t least, std::int64_t most) {
    return settings.integer(needs.prefix + key, least, most);
  };
  trial.net = net;
  trial.options.optimizer = !needs.optimizer.empty() ? needs.optimizer
                            : settings.values().contains("optimizer")
                                ? settings.text("optimizer")
                                : net::recommended_optimizer(net);
  net::use_recommended_rates(trial.options, net);
  if (settings.values().contains(needs.prefix + "lr")) {
    trial.options.learning_rate = settings.number(needs.prefix + "lr", 1e-9, 1e3);
    trial.options.warmup = whole("warmup", 0, 1'000'000'000);
  }
  trial.options.epochs = whole("epochs", 1, 10'000);
  trial.options.batch = whole("batch", needs.least_batch, 100'000);
  trial.train_samples = whole("train_samples", 0, 1'000'000'000);
  trial.eval_samples = whole("eval_samples", 0, 1'000'000'000);
  return trial;
}

std::vector<std::uint64_t> seeds_of(const ExperimentRun& run, const std::string& key) {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(run.settings.integer(key, 1, 1000)));
  for (std::size_t s = 0; s < seeds.size(); ++s) seeds[s] = run.seed + s;
  return seeds;
}

std::vector<std::string> TrainingPlan::names() const {
  std::vector<std::string> all;
  for (const TrainingMethod& method : methods) all.push_back(method.name);
  return all;
}

TrainTrial TrainingPlan::trial_of(std::size_t method, std::uint64_t seed) const {
  TrainTrial one = trial;
  one.recipe = methods[method].recipe;
  one.around = methods[method].around;
  if (methods[method].epochs > 0) one.options.epochs = methods[method].epochs;
  one.seed = seed;
  return one;
}

Json TrainingPlan::point(std::size_t method, std::uint64_t seed, const net::Dataset& set) const {
  Json point = point_of(trial_of(method, seed), set);
  point.update(methods[method].counted);
  return point;
}

TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan) {
  TrainingTable training;
  training.study = run_training_study<TrainOutcome>(
      run, data, plan,
      [&data](const TrainTrial& trial, std::size_t) { return run_train_trial(trial, data); });
  const bool accuracy = training.study.runs[0][0].accuracy;
  training.top1 = training.study.figures(&TrainOutcome::top1);
  const SeedFigures metrics =
      accuracy ? training.top1 : training.study.figures(&TrainOutcome::metric);
  // How the metric is called, and how many digits of it mean something.
  const std::string metric = accuracy ? "top-1, %" : "bits per character",
                    difference = accuracy ? "difference, points" : "difference, bits";
  const int digits = accuracy ? 2 : 4;
  const StudyColumn means = mean_column(metric, metrics, digits);
  std::vector<StudyColumn> columns = {name_column("method", training.study.methods), means,
                                      difference_column(difference, metrics, digits),
                                      interval_column(metrics, digits)};
  for (std::size_t s = 0; s < plan.seeds.size(); ++s) {
    SeedFigures of_seed;
    for (const std::vector<double>& values : metrics) of_seed.push_back({values[s]});
    columns.push_back(mean_column(fmt::format("seed {}", plan.seeds[s]), of_seed, digits));
  }
  training.table = study_table(fmt::format("{} on {}, {} seeds, paired by seed", plan.trial.net,
                                           plan.data, plan.seeds.size()),
                               training.study.size(), columns);
  training.chart = gain_chart(
      fmt::format("What each method costs {} on {}", plan.trial.net, plan.data),
      fmt::format("Mean difference to {} ({} {}) over {} seeds, with its 95 % interval by "
                  "Student's t law paired by seed; {}.",
                  plan.methods[0].name, metric, means.cell(0), plan.seeds.size(),
                  accuracy ? "below 0 is worse" : "above 0 is worse"),
      difference, training.study.methods, metrics);
  return training;
}

}  // namespace numemu::experiments

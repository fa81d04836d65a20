// Runs methods x seeds as trials and compares every method with the first, paired by seed.
#include "experiments/engine/training_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/stats/paired.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

TrainTrial trial_of(const TrainingPlan& plan, const TrainingMethod& method, std::uint64_t seed) {
  TrainTrial trial = plan.trial;
  trial.recipe = method.recipe;
  trial.around = method.around;
  trial.seed = seed;
  return trial;
}

/// Per cent where the metric is an accuracy, else bits per character.
std::vector<double> shown(const std::vector<TrainOutcome>& outcomes) {
  std::vector<double> values;
  for (const TrainOutcome& outcome : outcomes)
    values.push_back(outcome.accuracy ? 100 * outcome.metric : outcome.metric);
  return values;
}

std::string text(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

/// How the metric is called, and how many digits of it mean something.
struct Words {
  const char *metric, *difference, *value, *signed_value;
};

Words words_of(bool accuracy) {
  if (accuracy) return {"top-1, %", "difference, points", "{:.2f}", "{:+.2f}"};
  return {"bits per character", "difference, bits", "{:.4f}", "{:+.4f}"};
}

ResultTable table_of(const TrainingPlan& plan,
                     const std::vector<std::vector<TrainOutcome>>& outcomes) {
  const Words words = words_of(outcomes[0][0].accuracy);
  ResultTable table{fmt::format("{} on {}, {} seeds, paired by seed", plan.trial.net, plan.data,
                                plan.seeds.size()),
                    {"method", words.metric, words.difference, "95 % interval"},
                    {}};
  for (const std::uint64_t seed : plan.seeds) table.header.push_back(fmt::format("seed {}", seed));
  const std::vector<double> first = shown(outcomes[0]);
  for (std::size_t m = 0; m < outcomes.size(); ++m) {
    const std::vector<double> values = shown(outcomes[m]);
    const stats::PairedInterval difference = stats::paired_interval(values, first);
    const bool apart = std::isfinite(difference.low) && std::isfinite(difference.high);
    std::vector<std::string> row = {
        plan.methods[m].name, text(stats::paired_interval(values).mean, words.value),
        m == 0 ? "-" : text(difference.mean, words.signed_value),
        m == 0 || !apart ? "-"
                         : fmt::format("[{}, {}]", text(difference.low, words.signed_value),
                                       text(difference.high, words.signed_value))};
    for (const double value : values) row.push_back(text(value, words.value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Chart chart_of(const TrainingPlan& plan, const std::vector<std::vector<TrainOutcome>>& outcomes) {
  const Words words = words_of(outcomes[0][0].accuracy);
  const std::vector<double> first = shown(outcomes[0]);
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = fmt::format("What each method costs {} on {}", plan.trial.net, plan.data);
  chart.caption = fmt::format(
      "Mean difference to {} ({} {}) over {} seeds, with its 95 % interval by Student's t law "
      "paired by seed; {}.",
      plan.methods[0].name, words.metric, text(stats::paired_interval(first).mean, words.value),
      plan.seeds.size(), outcomes[0][0].accuracy ? "below 0 is worse" : "above 0 is worse");
  chart.y = words.difference;
  ChartSeries series{"measured", {}, false};
  for (std::size_t m = 1; m < outcomes.size(); ++m) {
    const stats::PairedInterval difference = stats::paired_interval(shown(outcomes[m]), first);
    series.points.push_back({.x = static_cast<double>(m),
                             .name = plan.methods[m].name,
                             .y = difference.mean,
                             .low = difference.low,
                             .high = difference.high});
  }
  chart.series.push_back(std::move(series));
  return chart;
}

}  // namespace

std::vector<double> top1_points(const std::vector<TrainOutcome>& outcomes) {
  std::vector<double> all;
  for (const TrainOutcome& outcome : outcomes) all.push_back(100 * outcome.metric);
  return all;
}

TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan) {
  if (plan.methods.empty() || plan.seeds.empty())
    throw Error("comparison of training methods: expected at least one method and one seed");
  std::vector<Trial> trials;
  for (const TrainingMethod& method : plan.methods) {
    for (const std::uint64_t seed : plan.seeds) {
      const TrainTrial trial = trial_of(plan, method, seed);
      trials.push_back({point_of(trial, data), fmt::format("{}, seed {}", method.name, seed),
                        [trial, &data] { return to_json(run_train_trial(trial, data)); }});
    }
  }
  const std::vector<Json> results =
      plan.at_once ? run_trials_at_once(run, trials) : run_trials(run, trials);
  TrainingTable training;
  for (std::size_t m = 0; m < plan.methods.size(); ++m) {
    training.outcomes.emplace_back();
    for (std::size_t s = 0; s < plan.seeds.size(); ++s)
      training.outcomes.back().push_back(train_outcome(results[m * plan.seeds.size() + s]));
  }
  training.table = table_of(plan, training.outcomes);
  training.chart = chart_of(plan, training.outcomes);
  return training;
}

}  // namespace numemu::experiments

// Workers that stop computing at a threshold of time: what it gains and what it costs (DropCompute,
// Giladi et al., NeurIPS 2023).
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emu/stats/latency.hpp"
#include "experiments/dropcompute/step_law.hpp"
#include "experiments/dropcompute/steps.hpp"

namespace numemu::experiments {
namespace dropcompute {
namespace {

struct Method {
  std::string name;
  Json drop;            ///< the recipe's key; null: no drop
  double expected = 0;  ///< share of the micro-batches that it drops
  double variance = 0;  ///< of the share that one worker drops in a step
};

std::vector<Method> methods_of(const Settings& settings, std::int64_t micro_batches) {
  const auto count = static_cast<double>(micro_batches);
  std::vector<Method> methods = {{"no drop", nullptr}};
  for (const char* const divisor : {"nominal", "realised"}) {
    for (const double share : settings.numbers("shares"))
      methods.push_back({fmt::format("random {:g} %, {}", 100 * share, divisor),
                         {{"rule", "random"}, {"share", share}, {"divisor", divisor}},
                         share,
                         share * (1 - share) / count});
  }
  const double threshold = settings.number("threshold");
  const stats::LatencyLaw law = stats::latency_law(settings.text("train_law"));
  const SumLaws sums(law, micro_batches);
  // K of M end before the threshold: E[K^2] = sum of (2 m - 1) P(K >= m).
  double first = 0, second = 0;
  for (std::int64_t m = 1; m <= micro_batches; ++m) {
    const double reached = 1 - sums.above(m, threshold);
    first += reached;
    second += static_cast<double>(2 * m - 1) * reached;
  }
  methods.push_back({fmt::format("threshold {:g}, {}", threshold, law.name),
                     {{"rule", "threshold"}, {"threshold", threshold}, {"latency", law.pinned}},
                     1 - first / count,
                     (second - first * first) / (count * count)});
  return methods;
}

/// Of the micro-batches: the largest share of which the publication says that accuracy stays.
constexpr double kPublishedShare = 0.1;

std::vector<workers::Method> trained_methods(const std::vector<Method>& methods,
                                             std::int64_t micro_batches) {
  std::vector<workers::Method> all;
  for (const Method& method : methods) {
    all.push_back({.name = method.name, .change = [=](TrainTrial& trial) {
                     trial.options.micro_batches = micro_batches;
                   }});
    if (method.drop.is_null()) continue;
    all.back().recipe = {{"drop", method.drop}};
    all.back().claim = method.expected <= kPublishedShare ? "accuracy" : "more drops";
  }
  return all;
}

void add_drops(const workers::TrainedNetwork& net, const std::vector<Method>& methods,
               std::int64_t workers, std::int64_t micro_batches, Conclusion& conclusion) {
  const auto dropped = [&](std::size_t m) { return net.study.mean(m, &workers::Trained::dropped); };
  for (std::size_t m = 1; m < methods.size(); ++m) {
    double drawn = 0;  // workers, over all steps and seeds
    for (const workers::Trained& one : net.study.runs[m])
      drawn += static_cast<double>(one.steps * workers);
    conclusion.add(
        closed_form(fmt::format("{}: share dropped, {}", net.name, methods[m].name),
                    methods[m].expected, dropped(m), std::sqrt(methods[m].variance / drawn)),
        "expected");
  }
  const auto percent = [](double share) { return fmt::format("{:.2f}", 100 * share); };
  conclusion.tables.push_back(
      study_table(fmt::format("{}: samples dropped, {} workers with {} micro-batches", net.name,
                              workers, micro_batches),
                  methods.size(),
                  {name_column("drop", net.study.methods),
                   {"predicted, %", [&](std::size_t m) { return percent(methods[m].expected); }},
                   {"measured, %", [&](std::size_t m) { return percent(dropped(m)); }}}));
}

}  // namespace

void add_training(const ExperimentRun& run, workers::Group group, const net::Dataset& data,
                  Conclusion& conclusion) {
  const std::int64_t micro_batches = run.settings.integer("micro_batches");
  const std::vector<Method> methods = methods_of(run.settings, micro_batches);
  for (const workers::TrainedNetwork& net : workers::add_training_on(
           run, group, data, trained_methods(methods, micro_batches), conclusion)) {
    add_drops(net, methods, run.settings.integer("workers"), micro_batches, conclusion);
  }
}

}  // namespace dropcompute

namespace {

Conclusion run_dropcompute(const ExperimentRun& run) {
  Conclusion conclusion;
  dropcompute::add_steps(run, conclusion);
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning}) {
    if (run.settings.text(workers::key(group, "nets")) == "-") continue;
    dropcompute::add_training(run, group, load_data(run, workers::key(group, "data")), conclusion);
  }
  return conclusion;
}

void check_law(const std::string& text) { stats::latency_law(text); }

}  // namespace

extern const Experiment experiment_dropcompute;
const Experiment experiment_dropcompute = {
    "dropcompute",
    "what do many workers gain when each stops computing at a threshold of time and joins the "
    "exchange with the micro-batches that it has, and what does training lose",
    "Giladi et al. (NeurIPS 2023, arXiv 2306.10598) claim that dropping the slowest tenth of the "
    "micro-batches makes synchronous steps faster, the more the more workers, without loss of "
    "accuracy.",
    {{"normal",
      "Under normal latencies the published effective speed-up at its best threshold is that of "
      "simulated steps within 0.5 % (published; the margin is ours)."},
     {"exact",
      "The exact law of sums gives the step time, the share kept, and the step time where the "
      "clock is read between micro-batches, of every law (derived here)."},
     {"laws",
      "Under other laws the speed-up of the exact law at its best threshold holds within 0.5 % "
      "(derived here)."},
     {"tails",
      "With 200 workers and the published injected delays the step time of the normal formula is 7 "
      "% low (derived here)."},
     {"automatic",
      "The threshold chosen by the published rule from the first steps reaches 99.5 % of the best "
      "predicted speed-up (published; the margin is ours)."},
     {"granularity",
      "Where the clock is read at the end of each micro-batch, at most half of the gain is left (a "
      "contrast)."},
     {"expected",
      "Dropped at random, the share of micro-batches computed is 1 less the rule's share (derived "
      "here)."},
     {"accuracy",
      "Dropping 10 % of the micro-batches loses at most 0.5 points of top-1 (published; the margin "
      "is ours).",
      "seeds"},
     {"more drops", "Dropping more than 10 % loses at most 0.5 points, too (a contrast).",
      "seeds"}},
    workers::with_training(
        {{"laws", "normal(1,0.4),injected(1,1)", "normal(1,0.4),lognormal(1,0.4),injected(1,1)",
          "normal(1,0.4),lognormal(1,0.4),injected(1,1),exponential(1)",
          "laws of micro-batch latency", list_of(check_law)},
         {"step_workers", "2,200", "2,8,64,200,1024,10000,100000",
          "2,8,64,200,1024,10000,100000,1000000", "numbers of workers of simulated steps",
          wholes(2, 100'000'000)},
         {"micro_batches", "12", "12", "12", "micro-batches that a worker accumulates in a step",
          whole(1, 64)},
         {"overhead", "0.5", "0.5", "0.5", "time of a step that no threshold shortens",
          real(0, 1e9)},
         {"warm", "50", "50", "50", "first steps, from which the automatic threshold is chosen",
          whole(1, 10'000)},
         {"steps", "2000", "20000", "20000", "most steps measured after them", whole(1, 1'000'000)},
         {"draws", "5e6", "5e7", "5e8", "most latencies drawn for them, at 50 steps or more",
          real(1, 1e12)},
         {"shares", "0.1", "0.1,0.25", "0.1,0.25", "of training: micro-batches dropped at random",
          reals(0.001, 0.99)},
         {"threshold", "10.5", "10.5", "10.5", "of another training: time at which workers stop",
          real(1e-12, 1e12)},
         {"train_law", "normal(1,0.4)", "normal(1,0.4)", "normal(1,0.4)", "law of its latencies",
          text_of(check_law)},
         // 4 samples for each of 4 x 12 micro-batches
         {"batch", "192", "192", "192", "images of a step", whole(1, 100'000)},
         {"tuned_batch", "192", "192", "192", "images of a step", whole(1, 100'000)}},
        {workers::Group::images, workers::Group::fine_tuning}),
    run_dropcompute,
    workers::check_training};

}  // namespace numemu::experiments

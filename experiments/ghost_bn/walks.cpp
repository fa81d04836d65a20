// How the distance of weights from where they began grows beside two laws.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "emu/stats/squares.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/ghost_bn/closed_forms.hpp"
#include "experiments/ghost_bn/questions.hpp"

namespace numemu::experiments::ghost_bn {
namespace {

constexpr double kRandomWalk = 0.5;  // exponent of the distance of a walk without a force

/// Distance from the first weights after 1, 2, 4, ... steps.
struct Walk {
  std::vector<double> steps, distances;

  Growth law() const { return growth(steps, distances); }
  static void fields(auto& self, const auto& visit) {
    visit("steps", self.steps);
    visit("distances", self.distances);
  }
};

Walk walk(TrainTrial trial, const net::Dataset& data) {
  const net::Graph first = initial_network(trial, data);
  Walk walk;
  trial.on_step = [&](const net::Graph& graph, std::int64_t step) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(step + 1))) return;
    const std::vector<const net::Parameter*> from = first.parameters(), to = graph.parameters();
    double squares = 0;
    for (std::size_t p = 0; p < from.size(); ++p) {
      if (from[p]->trained)
        squares += stats::sum_of_squared_differences(
            from[p]->value.size(), from[p]->value.data.data(), to[p]->value.data.data());
    }
    walk.steps.push_back(static_cast<double>(step + 1));
    walk.distances.push_back(std::sqrt(squares));
  };
  run_train_trial(trial, data);
  return walk;
}

}  // namespace

void add_walks(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Batches sizes = batches(run.settings);
  TrainTrial trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"});
  trial.options.schedule = "constant";
  trial.eval_samples = 1;
  const std::int64_t steps = run.settings.integer("steps"),
                     samples = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  const std::vector<std::int64_t> of_batch = {sizes.small, sizes.large};
  StudyPlan plan{{}, seeds_of(run)};
  for (const std::int64_t batch : of_batch) plan.methods.push_back(fmt::format("batch {}", batch));
  plan.prefix = "distance, ";
  const auto study =
      run_study<Walk>(run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<Walk> {
        TrainTrial one = trial;
        one.options.batch = of_batch[m];
        one.seed = seed;
        const std::int64_t in_epoch = (samples + one.options.batch - 1) / one.options.batch;
        one.options.epochs = (steps + in_epoch - 1) / in_epoch;
        Json point = point_of(one, data);
        point["watched"] = "distance from the first weights";
        return {std::move(point), [=, &data] { return walk(one, data); }};
      });
  const auto figures = [&](auto get) {
    return study.figures([=](const Walk& walk) { return get(walk.law()); });
  };
  const SeedFigures logarithm = figures([](const Growth&g) { return g.logarithm; }),
                    power = figures([](const Growth&g) { return g.power; }),
                    exponent = figures([](const Growth&g) { return g.exponent; });
  Chart chart{.title = "Distance of the weights from where they began",
              .caption = "Constant learning rate; the mean over the seeds.",
              .x = "updates",
              .y = "|w - w0|",
              .log_x = true};
  std::vector<PairedGain> better;
  for (std::size_t m = 0; m < study.size(); ++m) {
    better.push_back({fmt::format("{}: share of the variance explained by a + b ln t, over that "
                                  "by c t^p",
                                  study.methods[m]),
                      stats::paired_interval(logarithm[m], power[m]), "logarithm"});
    conclusion.add(
        interval_finding(
            fmt::format("{}: exponent p of c t^p, at most {}", study.methods[m], kRandomWalk),
            kRandomWalk, stats::paired_interval(exponent[m]), at_most(kRandomWalk)),
        "slower than a walk");
    const Walk& first = study.runs[m].front();
    for (std::size_t i = 0; i < first.steps.size(); ++i)
      chart.of(study.methods[m])
          .points.push_back({.x = first.steps[i], .y = study.mean(m, [i](const Walk& walk) {
                               return walk.distances.at(i);
                             })});
  }
  conclusion.add(judge_gains(better));
  conclusion.tables.push_back(study_table(
      fmt::format("{}: growth of |w - w0| over {} updates", trial.net, steps), study.size(),
      {name_column("batch", study.methods), mean_column("R^2 of a + b ln t", logarithm, 4),
       mean_column("R^2 of c t^p", power, 4), mean_column("p", exponent, 3)}));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::ghost_bn

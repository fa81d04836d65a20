#include "experiments/dropcompute/training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "experiments/dropcompute/step_law.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::dropcompute {
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
    all.push_back({.name = method.name, .options = [=](net::TrainOptions& options) {
                     options.micro_batches = micro_batches;
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

void add_training(const ExperimentRun& run, Conclusion& conclusion) {
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning}) {
    const std::string& data = run.settings.text(workers::key(group, "data"));
    if (run.settings.text(workers::key(group, "nets")) == "-") continue;
    run.say("loading " + data);
    add_training_on(run, group, net::load_dataset(data, run.folders.cache), conclusion);
  }
}

void add_training_on(const ExperimentRun& run, workers::Group group, const net::Dataset& data,
                     Conclusion& conclusion) {
  const std::int64_t micro_batches = run.settings.integer("micro_batches");
  const std::vector<Method> methods = methods_of(run.settings, micro_batches);
  for (const workers::TrainedNetwork& net : workers::add_training_on(
           run, group, data, trained_methods(methods, micro_batches), conclusion)) {
    add_drops(net, methods, run.settings.integer("workers"), micro_batches, conclusion);
  }
}

}  // namespace numemu::experiments::dropcompute

// Accuracy by the number of copies: at as many updates, at as many rows, and updates to the
// accuracy of one copy.
#include "experiments/batch_augmentation/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/stats/paired.hpp"
#include "experiments/methods/published.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::batch_augmentation {
namespace {

/// A training with what it had reached on the way.
struct Trained {
  TrainOutcome outcome;
  std::int64_t updates = 0;
  std::vector<double> at, reached;  ///< updates, and top-1 in per cent behind them

  double top1() const { return outcome.top1(); }
  /// Updates before the first test that reached it; where none did, one test behind the last.
  double updates_to(double top1) const {
    if (outcome.diverged || !std::isfinite(top1)) return NAN;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (reached[i] >= top1) return at[i];
    return at.back() + at.front();
  }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("updates", self.updates);
    visit("at", self.at);
    visit("reached", self.reached);
  }
};

struct Method {
  std::int64_t copies = 1;
  bool as_many_rows = false;  ///< as one copy, in fewer updates

  std::string name() const {
    return fmt::format("M = {}{}", copies, as_many_rows ? ", as many rows" : "");
  }
};

std::vector<Method> methods_of(const Group& group) {
  std::vector<Method> methods;
  for (const std::int64_t m : group.copies) methods.push_back({m, false});
  for (const std::int64_t m : group.copies)
    if (m > 1) methods.push_back({m, true});
  return methods;
}

/// Tests `tests` times at equal distances, the last time behind the last update; 0: never.
Trained trained(TrainTrial trial, const net::Dataset& data, std::int64_t tests) {
  Trained result;
  trial.tests = tests;
  trial.on_loss = [&](double) { ++result.updates; };
  result.outcome = run_train_trial(trial, data);
  result.at = std::exchange(result.outcome.at, {});
  for (const double metric : std::exchange(result.outcome.reached, {}))
    result.reached.push_back(100 * metric);
  return result;
}

/// Of the updates that each number of copies takes to what one copy ends with, by seed.
struct Updates {
  SeedFigures needed;       ///< [copies][seed]
  SeedFigures over_single;  ///< over those of one copy
  std::vector<std::size_t> unreached;
};

Updates updates_of(const Study<Trained>& study, std::size_t count) {
  Updates updates;
  for (std::size_t m = 0; m < count; ++m) {
    std::vector<double> needed, ratio;
    std::size_t unreached = 0;
    for (std::size_t s = 0; s < study.seeds(); ++s) {
      const double target = study.runs[0][s].top1();
      needed.push_back(study.runs[m][s].updates_to(target));
      ratio.push_back(needed.back() / study.runs[0][s].updates_to(target));
      unreached += needed.back() > static_cast<double>(study.runs[m][s].updates);
    }
    updates.needed.push_back(std::move(needed));
    updates.over_single.push_back(std::move(ratio));
    updates.unreached.push_back(unreached);
  }
  return updates;
}

Chart curves(const std::string& title, const Study<Trained>& study, std::size_t count) {
  Chart chart{.title = "Accuracy by updates: " + title,
              .caption = "Mean top-1 over the seeds, tested in the format of the training.",
              .x = "updates",
              .y = "top-1, %"};
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t i = 0; i < study.runs[m].front().at.size(); ++i)
      chart.of(study.methods[m])
          .points.push_back(
              {.x = study.runs[m].front().at[i],
               .y = study.mean(m, [i](const Trained& t) { return t.reached.at(i); })});
  }
  return chart;
}

}  // namespace

std::int64_t test_count(const Settings& settings) { return settings.integer("tests"); }

void add_training(const ExperimentRun& run, const Group& group, const std::string& net,
                  const std::string& format, const std::vector<double>& ratios,
                  const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t tests = test_count(run.settings);
  const TrainTrial shared = group.trial(run.settings, net, format);
  const std::vector<Method> methods = methods_of(group);
  const std::size_t count = group.copies.size();
  const std::string where = fmt::format("{} in {}", short_name(net), format);
  StudyPlan plan{{}, seeds_of(run), /*at_once=*/true, where + ", "};
  for (const Method& method : methods) plan.methods.push_back(method.name());
  const auto study =
      run_study<Trained>(run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<Trained> {
        TrainTrial trial = shared;
        trial.seed = seed;
        trial.options.copies = methods[m].copies;
        if (methods[m].as_many_rows) trial.options.epochs /= methods[m].copies;
        const std::int64_t of_it = methods[m].as_many_rows ? 0 : tests;
        Json point = point_of(trial, data);
        point["tests"] = of_it;
        return {std::move(point), [=, &data] { return trained(trial, data, of_it); }};
      });
  const SeedFigures top1 = study.figures(&Trained::top1);
  const Updates updates = updates_of(study, count);
  std::vector<PairedGain> saved, equal, rows;
  for (std::size_t m = 1; m < methods.size(); ++m) {
    if (m >= count) {
      rows.push_back({where + ": points lost by " + study.methods[m], gain(top1, 0, m), "rows"});
      continue;
    }
    equal.push_back({where + ": points gained by " + study.methods[m], gain(top1, m),
                     published_in(format, "accuracy")});
    std::vector<double> share = updates.over_single[m];
    for (double& s : share) s = 1 - s;
    saved.push_back({fmt::format("{}: share of the updates to the accuracy of M = 1 saved by {}",
                                 where, study.methods[m]),
                     stats::paired_interval(share), published_in(format, "updates")});
    conclusion.add(
        interval_finding(
            fmt::format("{}: updates of {} over those of M = 1, at least the share of the variance",
                        where, study.methods[m]),
            ratios[m], stats::paired_interval(updates.over_single[m]), at_least(ratios[m])),
        "noise");
    if (updates.unreached[m] > 0)
      conclusion.sentences.push_back(fmt::format(
          "{}: {} did not reach the accuracy of M = 1 with {} of {} seeds; there it counts as one "
          "test later than the last.",
          where, study.methods[m], updates.unreached[m], study.seeds()));
  }
  for (const std::vector<PairedGain>& gains : {saved, equal, rows})
    conclusion.add(judge_gains(gains));
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const std::string title = fmt::format("{}, batches of {}, {}", where, shared.options.batch,
                                        counted(std::ssize(plan.seeds), "seed"));
  const auto rows_of = [&](std::size_t m) {
    return fmt::format("{}",
                       study.runs[m].front().updates * shared.options.batch * methods[m].copies);
  };
  conclusion.tables.push_back(study_table(
      title, study.size(),
      {name_column("copies", study.methods),
       {"updates", [&](std::size_t m) { return fmt::format("{}", study.runs[m][0].updates); }},
       {"rows", rows_of},
       mean_column("top-1, %", top1),
       difference_column("difference, points", top1),
       interval_column(top1),
       {"updates to the accuracy of M = 1",
        [&](std::size_t m) {
          return m < count ? mean_column("", updates.needed, 0).cell(m) : std::string("-");
        }},
       {"over those of M = 1", [&](std::size_t m) {
          return m < count ? mean_column("", updates.over_single, 3).cell(m) : std::string("-");
        }}}));
  conclusion.charts.push_back(curves(title, study, count));
}

}  // namespace numemu::experiments::batch_augmentation

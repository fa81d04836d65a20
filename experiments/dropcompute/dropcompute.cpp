// Workers that stop computing at a threshold of time: what it gains and what it costs (DropCompute,
// Giladi et al., NeurIPS 2023).
#include "experiments/dropcompute/dropcompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emu/stats/latency.hpp"
#include "experiments/dropcompute/step_law.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/report/number_text.hpp"

namespace numemu::experiments::dropcompute {

namespace {

constexpr std::int64_t kBlock = 2048;  // workers that a thread draws at a time
constexpr std::int64_t kThresholds = 200, kSixth = 6;

RandomSource source_of(const Simulation& simulation, std::int64_t step) {
  return stats::latency_source(simulation.seed, "dropcompute", step, "compute");
}

/// Calls see(m, end) for each micro-batch m of the workers of a block, in order.
template <class See>
void draw_block(const Simulation& simulation, const RandomSource& source, std::int64_t block,
                const See& see) {
  const std::int64_t last = std::min(simulation.workers, (block + 1) * kBlock);
  for (std::int64_t n = block * kBlock; n < last; ++n) {
    double time = 0;
    for (std::int64_t m = 0; m < simulation.micro_batches; ++m) {
      time += simulation.law.draw(source, stats::latency_element(n, m));
      see(m, time);
    }
  }
}

std::int64_t blocks_of(const Simulation& simulation) {
  return (simulation.workers + kBlock - 1) / kBlock;
}

/// Of blocks: maxima and integer sums alone, which any order gives.
struct Seen {
  explicit Seen(std::size_t thresholds) : ended(thresholds + 1), left(thresholds) {}

  /// Counts a micro-batch at the first threshold above its end; at those between its start and its
  /// end, and at all after the last one, its worker leaves with it.
  void add(std::span<const double> thresholds, bool last, std::size_t from, std::size_t until,
           double end) {
    ++ended[until];
    const std::size_t leaves = last ? thresholds.size() : until;
    for (std::size_t k = from; k < leaves; ++k) left[k] = std::max(left[k], end);
    if (last) time = std::max(time, end);
  }
  void merge(const Seen& other) {
    time = std::max(time, other.time);
    for (std::size_t k = 0; k < ended.size(); ++k) ended[k] += other.ended[k];
    for (std::size_t k = 0; k < left.size(); ++k) left[k] = std::max(left[k], other.left[k]);
  }

  double time = 0;
  std::vector<std::int64_t> ended;  ///< behind threshold k - 1, before threshold k
  std::vector<double> left;
};

}  // namespace

DrawnStep draw_step(const Simulation& simulation, std::int64_t step,
                    std::span<const double> thresholds) {
  const RandomSource source = source_of(simulation, step);
  const std::int64_t blocks = blocks_of(simulation);
  Seen all(thresholds.size());
#pragma omp parallel if (blocks > 1)
  {
    Seen own(thresholds.size());
#pragma omp for schedule(dynamic) nowait
    for (std::int64_t block = 0; block < blocks; ++block) {
      std::size_t from = 0;
      draw_block(simulation, source, block, [&](std::int64_t m, double end) {
        if (m == 0) from = 0;
        const auto until = static_cast<std::size_t>(
            std::upper_bound(thresholds.begin() + static_cast<std::ptrdiff_t>(from),
                             thresholds.end(), end) -
            thresholds.begin());
        own.add(thresholds, m + 1 == simulation.micro_batches, from, until, end);
        from = until;
      });
    }
#pragma omp critical
    all.merge(own);
  }
  DrawnStep drawn{.time = all.time, .finished = {}, .checked = std::move(all.left)};
  std::int64_t count = 0;
  for (std::size_t k = 0; k < thresholds.size(); ++k)
    drawn.finished.push_back(count += all.ended[k]);
  return drawn;
}

std::pair<double, double> accumulation_times(const Simulation& simulation, std::int64_t steps) {
  const std::int64_t sixth = std::min(kSixth, simulation.micro_batches) - 1;
  const std::int64_t blocks = blocks_of(simulation);
  double least = HUGE_VAL, most = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const RandomSource source = source_of(simulation, step);
#pragma omp parallel for schedule(dynamic) reduction(min : least) reduction(max : most)
    for (std::int64_t block = 0; block < blocks; ++block) {
      draw_block(simulation, source, block, [&](std::int64_t m, double end) {
        if (m == sixth) least = std::min(least, end);
        if (m + 1 == simulation.micro_batches) most = std::max(most, end);
      });
    }
  }
  return {least, most};
}

std::vector<double> published_thresholds(const Simulation& simulation, std::int64_t steps) {
  const auto [least, most] = accumulation_times(simulation, steps);
  std::vector<double> thresholds;
  for (std::int64_t i = 0; i < kThresholds; ++i) {
    thresholds.push_back(least + (most - least) * static_cast<double>(i) /
                                     static_cast<double>(kThresholds - 1));
  }
  return thresholds;
}

namespace {

constexpr double kGain = 0.005;      // of an effective speed-up: what its prediction may miss
constexpr double kNearBest = 0.005;  // of it: what a threshold near to the best one may lose
/// Of a prediction on the lattice: its spacing, beside which a law of points is a staircase.
constexpr double kLattice = 1e-4;
constexpr double kPublishedMiss = 7, kMissRounding = 1;  // per cent, and its rounding
constexpr double kLeft = 0.5;  // share of the gain that a clock between micro-batches leaves
constexpr std::int64_t kLeastSteps = 50;

/// Means over steps at one threshold.
struct AtThreshold {
  double threshold = 0;
  MeanError kept, gain, checked, checked_gain;

  static void fields(auto& self, const auto& visit) {
    visit("threshold", self.threshold);
    visit("kept", self.kept);
    visit("gain", self.gain);
    visit("checked", self.checked);
    visit("checked_gain", self.checked_gain);
  }
};

struct Measured {
  MeanError time = {};
  double automatic = 0;              ///< the threshold of the largest mean gain of the warm steps
  std::vector<AtThreshold> at = {};  ///< that of each prediction, then the automatic one
  std::vector<double> thresholds = {}, gains = {}, checked = {};  ///< of the warm steps

  static void fields(auto& self, const auto& visit) {
    visit("time", self.time);
    visit("automatic", self.automatic);
    visit("at", self.at);
    visit("thresholds", self.thresholds);
    visit("gains", self.gains);
    visit("checked", self.checked);
  }
};

/// A law at a number of workers, with both predictions.
struct Case {
  Simulation simulation;
  Accumulation step;
  std::int64_t warm = 0, steps = 0;
  PublishedStep published;
  ExactStep exact;
  double published_best = 0, exact_best = 0;  ///< thresholds

  std::string name() const {
    return fmt::format("{}, {} workers", simulation.law.name, step.workers);
  }
};

std::vector<AtThreshold> means_of(const Case& c, const std::vector<double>& thresholds,
                                  std::int64_t first, std::int64_t steps, MeanError& time) {
  struct Sums {
    RunningMean kept, gain, checked, checked_gain;
  };
  std::vector<Sums> sums(thresholds.size());
  RunningMean times;
  for (std::int64_t s = first; s < first + steps; ++s) {
    const DrawnStep drawn = draw_step(c.simulation, s, thresholds);
    times.add(drawn.time);
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
      const double kept = static_cast<double>(drawn.finished[i]) /
                          static_cast<double>(c.step.workers * c.step.micro_batches);
      const auto gain = [&](double lasts) {
        return effective_speed_up(kept, drawn.time, lasts, c.step.overhead);
      };
      sums[i].kept.add(kept);
      sums[i].gain.add(gain(std::min(thresholds[i], drawn.time)));
      sums[i].checked.add(drawn.checked[i]);
      sums[i].checked_gain.add(gain(drawn.checked[i]));
    }
  }
  time = times.mean(1);
  std::vector<AtThreshold> means;
  for (std::size_t i = 0; i < thresholds.size(); ++i)
    means.push_back({thresholds[i], sums[i].kept.mean(1), sums[i].gain.mean(1),
                     sums[i].checked.mean(1), sums[i].checked_gain.mean(1)});
  return means;
}

Measured measure(const Case& c) {
  Measured measured;
  measured.thresholds = published_thresholds(c.simulation, c.warm);
  for (const AtThreshold& at : means_of(c, measured.thresholds, 0, c.warm, measured.time)) {
    measured.gains.push_back(at.gain.mean);
    measured.checked.push_back(at.checked_gain.mean);
  }
  const auto best = std::max_element(measured.gains.begin(), measured.gains.end());
  measured.automatic = measured.thresholds[static_cast<std::size_t>(best - measured.gains.begin())];
  const double wanted[] = {c.published_best, c.exact_best, measured.automatic};
  std::vector<double> ascending(std::begin(wanted), std::end(wanted));
  std::sort(ascending.begin(), ascending.end());
  const auto means = means_of(c, ascending, c.warm, c.steps, measured.time);
  for (const double threshold : wanted)
    measured.at.push_back(*std::find_if(means.begin(), means.end(), [&](const AtThreshold& at) {
      return at.threshold == threshold;
    }));
  return measured;
}

TypedTrial<Measured> trial_of(const Case& c) {
  return {{{"law", c.simulation.law.identity},
           {"workers", c.step.workers},
           {"micro_batches", c.step.micro_batches},
           {"overhead", c.step.overhead},
           {"warm", c.warm},
           {"steps", c.steps},
           {"thresholds", {c.published_best, c.exact_best}},
           {"seed", c.simulation.seed}},
          c.name(),
          [c] { return measure(c); }};
}

/// Times are in the unit of a law, of any size.
constexpr int kTimeDecimals = 4;
std::string time_text(double time) { return decimal_text(time, kTimeDecimals); }

stats::Interval interval_of(const MeanError& m) {
  return {m.mean - stats::kNormal95 * m.error, m.mean + stats::kNormal95 * m.error};
}

void judge(const Case& c, const Measured& m, Conclusion& conclusion) {
  const std::string name = c.name();
  const auto exact = [&](const char* what, double predicted, const MeanError& measured) {
    conclusion.add(closed_form(name + what, predicted, measured.mean,
                               std::sqrt(measured.error * measured.error +
                                         kLattice * predicted * kLattice * predicted)),
                   "exact");
  };
  const AtThreshold &published = m.at[0], &best = m.at[1], &automatic = m.at[2];
  exact(": E[T]", c.exact.time(), m.time);
  exact(": share kept", c.exact.kept(c.exact_best), best.kept);
  exact(": time with a clock between micro-batches", c.exact.time_checked(c.exact_best),
        best.checked);
  const auto gain = [&](const StepLaw& law, const AtThreshold& at, const char* claim) {
    const double predicted = law.speed_up(at.threshold);
    conclusion.add(interval_finding(
                       fmt::format("{}: speed-up at {}", name, time_text(at.threshold)), predicted,
                       at.gain.mean, interval_of(at.gain), near(predicted, kGain * predicted)),
                   claim);
  };
  const bool normal = c.simulation.law.name.starts_with("normal(");
  if (normal) gain(c.published, published, "normal");
  if (!normal) gain(c.exact, best, "laws");
  // Of the same steps: their errors count as if they were independent, which makes them larger.
  const double share = automatic.gain.mean / best.gain.mean,
               own = automatic.gain.error / automatic.gain.mean,
               of_best = best.gain.error / best.gain.mean,
               off = share * std::sqrt(own * own + of_best * of_best);
  conclusion.add(
      interval_finding(fmt::format("{}: speed-up at the automatic {} over that at {}, at least",
                                   name, time_text(automatic.threshold), time_text(best.threshold)),
                       1 - kNearBest, share, interval_of({share, off}), at_least(1 - kNearBest)),
      "automatic");
  if (c.simulation.law.name == "injected(1,1)" && c.step.workers == 200 &&
      c.step.micro_batches == 12) {
    const double low = 100 * (1 - c.published.time() / m.time.mean),
                 error = 100 * c.published.time() * m.time.error / (m.time.mean * m.time.mean);
    conclusion.add(
        interval_finding(name + ": per cent that the normal formula's E[T] is low", kPublishedMiss,
                         low, interval_of({low, error}), near(kPublishedMiss, kMissRounding)),
        "tails");
  }
  // Without a gain there is no share of it.
  if (!(interval_of(automatic.gain).low > 1)) return;
  const double whole = automatic.gain.mean - 1, left = (automatic.checked_gain.mean - 1) / whole;
  conclusion.add(
      interval_finding(name + ": share of the gain that a clock between micro-batches leaves",
                       kLeft, left, interval_of({left, automatic.checked_gain.error / whole}),
                       at_most(kLeft)),
      "granularity");
}

ResultTable table_of(const std::vector<Case>& cases, const std::vector<Measured>& measured) {
  const auto time = [&](auto get) {
    return [&, get](std::size_t i) { return time_text(get(cases[i], measured[i])); };
  };
  const auto number = [&](int digits, auto get) {
    return [&, digits, get](std::size_t i) {
      return fmt::format("{:.{}f}", get(cases[i], measured[i]), digits);
    };
  };
  using M = const Measured&;
  using C = const Case&;
  const Accumulation& step = cases.front().step;
  return study_table(
      fmt::format("steps of {} micro-batches, overhead {}", step.micro_batches, step.overhead),
      cases.size(),
      {{"latency", [&](std::size_t i) { return cases[i].simulation.law.name; }},
       {"workers", [&](std::size_t i) { return std::to_string(cases[i].step.workers); }},
       {"steps", [&](std::size_t i) { return std::to_string(cases[i].steps); }},
       {"E[T] published", time([](C c, M) { return c.published.time(); })},
       {"exact", time([](C c, M) { return c.exact.time(); })},
       {"measured",
        [&](std::size_t i) {
          const MeanError& of = measured[i].time;
          return half_text(of.mean, stats::kNormal95 * of.error,
                           shown_decimals(of.mean, kTimeDecimals));
        }},
       {"efficiency", number(3,
                             [](C c, M m) {
                               const double alone = static_cast<double>(c.step.micro_batches) *
                                                    c.simulation.law.mean;
                               return (alone + c.step.overhead) / (m.time.mean + c.step.overhead);
                             })},
       {"threshold published", time([](C c, M) { return c.published_best; })},
       {"exact", time([](C c, M) { return c.exact_best; })},
       {"automatic", time([](C, M m) { return m.automatic; })},
       {"kept, %", number(1, [](C, M m) { return 100 * m.at[2].kept.mean; })},
       {"speed-up published",
        number(4, [](C c, M) { return c.published.speed_up(c.published_best); })},
       {"exact", number(4, [](C c, M) { return c.exact.speed_up(c.exact_best); })},
       {"measured, automatic",
        [&](std::size_t i) {
          const MeanError& gain = measured[i].at[2].gain;
          return half_text(gain.mean, stats::kNormal95 * gain.error, 4);
        }},
       {"with a clock between micro-batches",
        number(4, [](C, M m) { return m.at[2].checked_gain.mean; })},
       {"at its best threshold",
        number(4, [](C, M m) { return *std::max_element(m.checked.begin(), m.checked.end()); })}});
}

void draw(const std::vector<Case>& cases, const std::vector<Measured>& measured,
          Conclusion& conclusion) {
  const Accumulation& step = cases.front().step;
  const std::string what =
      fmt::format("{} micro-batches a step, overhead {}; times in units of the latency law",
                  step.micro_batches, step.overhead);
  Chart workers{.title = "Effective speed-up at the automatic threshold over workers",
                .caption = what + ". Predicted: exact law of sums, at its best threshold.",
                .x = "workers",
                .y = "effective speed-up",
                .log_x = true};
  Chart checked{.title = "The same where the clock is read at the end of each micro-batch",
                .caption = what + ". Predicted: exact law, at the threshold of the first figure.",
                .x = "workers",
                .y = "effective speed-up",
                .log_x = true};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const AtThreshold& at = measured[i].at[2];
    const auto x = static_cast<double>(c.step.workers);
    workers.add(c.simulation.law.name, with_error({.x = x, .y = at.gain.mean}, at.gain.error),
                {.x = x, .y = c.exact.speed_up(c.exact_best)});
    checked.add(c.simulation.law.name,
                with_error({.x = x, .y = at.checked_gain.mean}, at.checked_gain.error),
                {.x = x, .y = c.exact.speed_up(c.exact_best, c.exact.time_checked(c.exact_best))});
  }
  Chart thresholds{.title = fmt::format("Effective speed-up over the threshold, {} workers",
                                        cases.back().step.workers),
                   .caption = fmt::format("{}. Measured: means of {} steps.", what, cases[0].warm),
                   .x = "threshold / mean time of a worker's micro-batches",
                   .y = "effective speed-up"};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (c.step.workers != cases.back().step.workers) continue;
    const double unit = static_cast<double>(step.micro_batches) * c.simulation.law.mean;
    for (std::size_t k = 0; k < measured[i].thresholds.size(); k += 4) {
      const double threshold = measured[i].thresholds[k], x = threshold / unit;
      thresholds.add(c.simulation.law.name, {.x = x, .y = measured[i].gains[k]},
                     {.x = x, .y = c.exact.speed_up(threshold)});
      thresholds.of(c.simulation.law.name + ", clock between micro-batches")
          .points.push_back({.x = x, .y = measured[i].checked[k]});
    }
  }
  conclusion.charts.insert(conclusion.charts.end(), {workers, thresholds, checked});
}

}  // namespace

void add_steps(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t micro_batches = settings.integer("micro_batches");
  const double overhead = settings.number("overhead"), draws = settings.number("draws");
  const std::int64_t warm = settings.integer("warm"), most = settings.integer("steps");
  std::vector<SumLaws> laws;
  for (const std::string& text : settings.list("laws"))
    laws.emplace_back(stats::latency_law(text), micro_batches);
  std::vector<Case> cases;
  for (const SumLaws& sums : laws) {
    for (const std::int64_t workers : settings.whole_numbers("step_workers")) {
      const Accumulation step{workers, micro_batches, overhead};
      const double fit = draws / static_cast<double>(workers * micro_batches);
      Case c{.simulation = {sums.law(), workers, micro_batches, run.seed},
             .step = step,
             .warm = warm,
             .steps = std::clamp(static_cast<std::int64_t>(fit), std::min(kLeastSteps, most), most),
             .published = PublishedStep(sums.law(), step),
             .exact = ExactStep(sums, step)};
      c.published_best = c.published.best_threshold();
      c.exact_best = c.exact.best_threshold();
      cases.push_back(std::move(c));
    }
  }
  if (cases.empty()) throw Error("--set: laws, step_workers: expected at least one of each");
  const auto measured = run_cases<Measured>(run, cases, trial_of, true);
  for (std::size_t i = 0; i < cases.size(); ++i) judge(cases[i], measured[i], conclusion);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].step.workers != cases.back().step.workers) continue;
    const AtThreshold& at = measured[i].at[2];
    conclusion.sentences.push_back(fmt::format(
        "{}: the automatic threshold of {} keeps {:.1f} % of the micro-batches and makes steps "
        "{:.3f} times as effective, {:.3f} times where the clock is read between micro-batches.",
        cases[i].name(), time_text(at.threshold), 100 * at.kept.mean, at.gain.mean,
        at.checked_gain.mean));
  }
  conclusion.tables.push_back(table_of(cases, measured));
  draw(cases, measured, conclusion);
}

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

}  // namespace numemu::experiments::dropcompute

namespace numemu::experiments {

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

extern const Experiment experiment_dropcompute = {
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
      "The threshold chosen by the published rule from the first steps reaches 99.5 % of the "
      "speed-up that the same later steps have at the best predicted threshold (published; the "
      "margin is ours)."},
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
         {"micro_batches", "12", "micro-batches that a worker accumulates in a step", whole(1, 64)},
         {"overhead", "0.5", "time of a step that no threshold shortens", real(0, 1e9)},
         {"warm", "50", "first steps, from which the automatic threshold is chosen",
          whole(1, 10'000)},
         {"steps", "2000", "20000", "20000", "most steps measured after them", whole(1, 1'000'000)},
         {"draws", "5e6", "5e7", "5e8", "most latencies drawn for them, at 50 steps or more",
          real(1, 1e12)},
         {"shares", "0.1", "0.1,0.25", "0.1,0.25", "of training: micro-batches dropped at random",
          reals(0.001, 0.99)},
         {"threshold", "10.5", "of another training: time at which workers stop",
          real(1e-12, 1e12)},
         {"train_law", "normal(1,0.4)", "law of its latencies", text_of(check_law)},
         // 4 samples for each of 4 x 12 micro-batches
         {"batch", "192", "images of a step", whole(1, 100'000)},
         {"tuned_batch", "192", "images of a step", whole(1, 100'000)}},
        {workers::Group::images, workers::Group::fine_tuning}),
    run_dropcompute,
    workers::check_training};

}  // namespace numemu::experiments

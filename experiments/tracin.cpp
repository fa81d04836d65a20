// TracIn: the influence of training samples by gradients at checkpoints, mislabelled samples that
// it finds, and what few bits and stochastic rounding make of it (Pruthi et al., Estimating
// Training Data Influence by Tracing Gradient Descent, NeurIPS 2020, arXiv 2002.08484).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/engine/study.hpp"
#include "experiments/tracin/probes.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments {
namespace tracin {

namespace {

constexpr double kMostLost = 5;     // points that formats are allowed to lose
constexpr double kShareOff = 3;     // points that the expected share may be off
constexpr double kRankOff = 0.02;   // that the expected rank correlation may be off
constexpr std::size_t kMiddle = 1;  // of kTop: where formats are compared

/// The training of a network, whose rate stays, so that checkpoints count alike.
TrainTrial trial_of(const ExperimentRun& run, const Plan& plan, const std::string& net) {
  TrainTrial trial = training_of(run.settings, net, {.optimizer = "sgd"});
  trial.options.schedule = "constant";
  trial.seed = run.seed;
  const std::int64_t samples = trial.train_samples;
  if (samples < std::max(plan.ranked, plan.probes))
    throw usage_error(
        fmt::format("--set: train_samples: expected at least ranked = {} and probes = {}, not {}",
                    plan.ranked, plan.probes, samples));
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  if (steps < plan.checkpoints)
    throw usage_error(fmt::format("--set: checkpoints: expected at most the {} updates, not {}",
                                  steps, plan.checkpoints));
  return trial;
}

/// What a random order and one with all flipped labels first find, per cent.
double by_chance(double top) { return 100 * top; }
double at_best(double top, double flipped) { return 100 * std::min(1.0, top / flipped); }

void add_training(const ExperimentRun& run, const net::Dataset& data, const Plan& plan,
                  const TrainTrial& trial, Conclusion& conclusion) {
  const StudyPlan seeds{{"training"}, seeds_of(run), true, trial.net + ", "};
  const auto study =
      run_study<Traced>(run, seeds, [&](std::size_t, std::uint64_t seed) -> StudyRun<Traced> {
        TrainTrial one = trial;
        one.seed = seed;
        const net::Dataset flipped = with_flips(data, plan, seed);
        Json point = plan.point();
        point["training"] = point_of(one, flipped);
        point["checkpoints"] = plan.checkpoints;
        point["ranked"] = plan.ranked;
        point["targets"] = plan.targets;
        return {point, [=, &data, &plan] { return trace(one, data, flipped, plan); }};
      });
  say_diverged(study, seeds.seeds, seeds.prefix, conclusion);
  const std::vector<std::string> methods = plan.methods();
  // Of every seed: a member's element `at` of each method.
  const auto figures = [&](std::vector<double> Traced::*member, std::size_t each, std::size_t at) {
    SeedFigures all;
    for (std::size_t m = 0; m < methods.size(); ++m)
      all.push_back(study.figures(0, [&](const Traced& t) { return (t.*member)[m * each + at]; }));
    return all;
  };
  const SeedFigures ranks = figures(&Traced::ranks, 1, 0),
                    expected_ranks = figures(&Traced::expected_ranks, 1, 0);
  std::vector<StudyColumn> columns = {name_column("operands", methods)};
  Chart chart{.title = trial.net + ": flipped labels found by self-influence",
              .caption =
                  "Training samples in the order of their self-influence over the checkpoints; "
                  "means over the seeds. Operands of gradients are rounded to nearest.",
              .x = "samples looked at, %",
              .y = "flipped labels among them, %"};
  std::vector<PairedGain> above_chance;
  PairedClaims kept;
  const std::string of = trial.net + ": ";
  for (std::size_t k = 0; k < kTop.size(); ++k) {
    const double x = 100 * kTop[k];
    const SeedFigures found = figures(&Traced::found, kTop.size(), k),
                      expected = figures(&Traced::expected, kTop.size(), k);
    const std::vector<double> chance(found[0].size(), by_chance(kTop[k]));
    above_chance.push_back({fmt::format("{}points of the flipped labels found in the top {:.0f} % "
                                        "beyond the {:.0f} of chance",
                                        of, x, chance[0]),
                            stats::paired_interval(found[0], chance), "mislabelled"});
    columns.push_back(mean_column(fmt::format("found in the top {:.0f} %, %", x), found, 1));
    columns.push_back(mean_column("predicted", expected, 1));
    chart.of("float32 measured")
        .points.push_back({.x = x, .y = stats::paired_interval(found[0]).mean});
    for (std::size_t m = 1; m < methods.size(); ++m) {
      const stats::PairedInterval off = stats::paired_interval(found[m], expected[m]);
      if (std::isfinite(off.mean))
        conclusion.add(
            interval_finding(fmt::format("{}{}: found in the top {:.0f} % beyond what is "
                                         "expected, points",
                                         of, methods[m], x),
                             0, off, near(0, kShareOff)),
            "expected shares");
      if (m % 3 != 1) continue;  // nearest
      chart.of(methods[m] + " measured")
          .points.push_back({.x = x, .y = stats::paired_interval(found[m]).mean});
      if (k == kMiddle)
        kept.add(fmt::format("{}{}: points of the flipped labels found in the top {:.0f} % against "
                             "float32, at least -{:.0f}",
                             of, methods[m], x, kMostLost),
                 gain(found, m), -kMostLost, "few bits");
    }
    chart.of("perfect order", true).points.push_back({.x = x, .y = at_best(kTop[k], plan.flipped)});
    chart.of("chance", true).points.push_back({.x = x, .y = by_chance(kTop[k])});
  }
  for (std::size_t m = 1; m < methods.size(); ++m) {
    const stats::PairedInterval off = stats::paired_interval(ranks[m], expected_ranks[m]);
    if (std::isfinite(off.mean))
      conclusion.add(interval_finding(fmt::format("{}{}: rank correlation with float32 beyond what "
                                                  "is expected",
                                                  of, methods[m]),
                                      0, off, near(0, kRankOff)),
                     "expected ranks");
  }
  conclusion.add(judge_gains(above_chance));
  conclusion.add(kept.judged());
  columns.push_back(mean_column("rank correlation", ranks, 4));
  columns.push_back(mean_column("predicted", expected_ranks, 4));
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {:g} % of the labels flipped, {}, {}; chance finds "
                  "10, 20, 30 %, a perfect order {:.0f} %",
                  trial.net, data.name(), 100 * plan.flipped,
                  counted(plan.checkpoints, "checkpoint"), counted(std::ssize(seeds.seeds), "seed"),
                  at_best(kTop[0], plan.flipped)),
      methods.size(), columns));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion run_tracin(const ExperimentRun& run) {
  const Plan plan = plan_of(run.settings);
  std::vector<TrainTrial> trials;
  for (const std::string& net : run.settings.list("nets"))
    trials.push_back(trial_of(run, plan, net));
  const net::Dataset data = load_data(run);
  if (plan.targets > data.test_count())
    throw usage_error(
        fmt::format("--set: targets: expected at most the {} test samples of {}, not {}",
                    data.test_count(), data.name(), plan.targets));
  for (const TrainTrial& trial : trials) {
    restricted(data, trial.train_samples, false);  // refuses more than there are
    net::samples::require_separable(initial_network(trial, data), "--set: nets");
  }
  Conclusion conclusion;
  for (const TrainTrial& trial : trials) {
    add_probes(run, data, plan, trial, conclusion);
    add_training(run, data, plan, trial, conclusion);
  }
  return conclusion;
}

}  // namespace
}  // namespace tracin

extern const Experiment experiment_tracin;
const Experiment experiment_tracin = {
    "tracin",
    "which training samples a network learnt from, which labels are wrong, and what few bits make "
    "of the answer",
    "Pruthi et al. (NeurIPS 2020, arXiv 2002.08484) estimate the influence of a training sample by "
    "dot products of gradients at checkpoints, to first order the change of a loss by a step on "
    "the sample, and claim that samples with wrong labels stand out by their influence on "
    "themselves.",
    {{"first order",
      "What the influence misses of the change of a loss by one step falls with the square of the "
      "rate (published)."},
     {"factored",
      "A layer's part of the dot product is one of gradients along outputs times one of inputs "
      "(derived here)."},
     {"mislabelled", "Self-influence finds flipped labels better than chance (published).",
      "seeds"},
     {"few bits",
      "Operands rounded to nearest find at most 5 points fewer of them in the top 20 % than "
      "float32 (a contrast).",
      "seeds"},
     {"one draw",
      "Stochastic rounding by one draw adds the closed form to self-influence (derived here)."},
     {"two draws", "Two independent draws add nothing (derived here)."},
     {"variance", "Influences of independent draws have the closed variance (derived here)."},
     {"expected shares",
      "Flipped labels found by drawn operands are those that closed moments under a normal law "
      "expect within 3 points (derived here).",
      "seeds"},
     {"expected ranks",
      "Ranks of drawn influences agree with those of float32 as closed moments expect within 0.02 "
      "(derived here).",
      "seeds"}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks without normalisation", takes_networks()},
     data_setting("of images"),
     {"formats", "float8_e5m2,int4", "float8_e5m2,int8,float4_e2m1fn,int4",
      "float8_e5m2,int8,float4_e2m1fn,int4", "of the operands of gradients", list_of()},
     {"flipped", "0.1", "0.1", "0.1", "share of the training labels that are replaced",
      real(0.001, 0.5)},
     {"checkpoints", "5", "5", "5", "after equal parts of the updates", whole(1, 1000)},
     {"ranked", "100", "400", "400", "training samples ranked by influence on each target",
      whole(4, 100'000)},
     {"targets", "10", "20", "20", "test samples that are influenced", whole(1, 10'000)},
     {"probes", "32", "64", "64", "training samples whose operands are drawn repeatedly",
      whole(4, 10'000)},
     {"draws", "50", "200", "200", "repeated draws", whole(2, 30'000)},
     {"epochs", "5", "10", "10", "epochs of training", whole(1, 10'000)},
     {"batch", "32", "32", "32", "samples of an update", whole(1, 100'000)},
     {"train_samples", "512", "1024", "1024", "training images", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "2000", "2000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "3", "6", "seeds of weights, flips and draws", whole(1, 1000)}},
    tracin::run_tracin};

}  // namespace numemu::experiments

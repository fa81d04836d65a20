// Training with weights that are one update old: where it is stable, what it costs, and the
// pipelines that it keeps busy (PipeDream-2BW, Narayanan et al., ICML 2021, arXiv 2006.09503).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/delayed_weights/questions.hpp"
#include "experiments/delayed_weights/stability.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace delayed_weights {
namespace {

constexpr double kAround = 0.01;    // of a limit: rates that decay and grow
constexpr double kRatio = 1;        // octaves between the ratios of a network and of quadratics
constexpr double kTop1Holds = 0.5;  // points

Json rule_of(int delay) {
  return delay == 0 ? Json::object()
                    : Json{{"update", {{"rule", fmt::format("delayed({})", delay)}}}};
}

}  // namespace

void add_limits(const ExperimentRun& run, Conclusion& conclusion) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "Rate x curvature up to which descent on a quadratic is stable",
              .caption =
                  "SGD with momentum under the rule delayed(n), in float32. The interval "
                  "ends where weights decayed and where they grew.",
              .x = "delay, updates",
              .y = "rate x curvature",
              .log_y = true};
  for (const double momentum : run.settings.numbers("momenta")) {
    for (const std::int64_t delay : run.settings.whole_numbers("delays")) {
      const Descent descent{static_cast<int>(delay), momentum};
      const double limit = stability_limit(descent);
      const double about[] = {(1 - kAround) * limit, (1 + kAround) * limit};
      const std::vector<Course> courses =
          descend(descent, about, telling_steps(descent, about[0], about[1]));
      const bool holds = courses[0].decays() && courses[1].grows();
      Finding finding =
          exact_finding(fmt::format("{}: largest stable rate x curvature", descent.name()), limit,
                        holds                 ? limit
                        : courses[0].decays() ? about[1]
                                              : about[0],
                        holds);
      finding.low = about[0];
      finding.high = about[1];
      const auto x = static_cast<double>(delay);
      chart.add(fmt::format("momentum {:g},", momentum),
                {.x = x, .y = finding.measured, .low = about[0], .high = about[1]},
                {.x = x, .y = limit});
      conclusion.add(std::move(finding), "limit");
    }
  }
  conclusion.charts.push_back(std::move(chart));
}

void add_rates(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::string& net = run.settings.text("rate_net");
  TrainingPlan plan{
      .trial = training_of(run.settings, net, {.optimizer = "sgd", .prefix = "rate_"}),
      .data = data.name(),
      .seeds = seeds_of(run, "rate_seeds"),
      .methods = {},
      .at_once = true,
      .prefix = {}};
  const std::int64_t before = plan.trial.options.epochs;
  plan.trial.options.epochs = run.settings.integer("rate_steps");
  plan.trial.options.schedule = "constant";
  plan.trial.options.weight_decay = run.settings.number("rate_decay");
  const Json counted = {{"epochs before", before},
                        {"rates", Json::array({kLowestRate, kHighestRate, kRateResolution})},
                        {"diverged", kDiverged}};
  for (const int delay : {0, 1})
    plan.methods.push_back(
        {.name = fmt::format("delay {}", delay), .recipe = rule_of(delay), .counted = counted});
  ResultTable table{fmt::format("Largest stable rates of {} on {} over {} steps, after {} epochs",
                                net, data.name(), plan.trial.options.epochs, before),
                    {"momentum", "log2 without delay", "log2 with a delay of 1",
                     "log2 of their ratio", "of quadratics"},
                    {}};
  for (const double momentum : run.settings.numbers("rate_momenta")) {
    plan.trial.options.momentum = momentum;
    plan.prefix = fmt::format("{}, momentum {:g}: ", net, momentum);
    const auto study =
        run_training_study<StableRate>(run, data, plan, [&](const TrainTrial& trial, std::size_t) {
          return largest_stable_rate(trial, data, before);
        });
    const SeedFigures octaves = study.figures(&StableRate::octaves);
    const double predicted =
        portable::log2(stability_limit({1, momentum}) / stability_limit({0, momentum}));
    const stats::PairedInterval measured = gain(octaves, 1);
    if (!std::isfinite(measured.mean)) {
      conclusion.sentences.push_back(fmt::format(
          "{}, momentum {:g}: some trainings are stable, or unstable, at all rates from "
          "2^{:g} to 2^{:g}, so there is no ratio to judge.",
          net, momentum, kLowestRate, kHighestRate));
      continue;
    }
    conclusion.add(
        interval_finding(fmt::format("{}, momentum {:g}: log2 of the largest stable rate with a "
                                     "delay of 1 over that without",
                                     net, momentum),
                         predicted, measured, near(predicted, kRatio)),
        "rate");
    table.rows.push_back({fmt::format("{:g}", momentum),
                          fmt::format("{:.2f}", stats::paired_interval(octaves[0]).mean),
                          fmt::format("{:.2f}", stats::paired_interval(octaves[1]).mean),
                          mean_text(measured), fmt::format("{:+.2f}", predicted)});
  }
  conclusion.tables.push_back(std::move(table));
}

void add_trainings(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  PairedClaims claims;
  for (const std::string& net : run.settings.list("nets")) {
    for (const std::string& optimizer : run.settings.list("optimizers")) {
      for (const double part : run.settings.numbers("rate_parts")) {
        TrainingPlan plan{.trial = training_of(run.settings, net, {.optimizer = optimizer}),
                          .data = data.name(),
                          .seeds = seeds_of(run),
                          .methods = {{"no delay", rule_of(0)}, {"delay 1", rule_of(1)}},
                          .at_once = true};
        net::TrainOptions& options = plan.trial.options;
        options.micro_batches = run.settings.integer("coalesced");
        options.learning_rate *= part;
        const std::string at =
            fmt::format("{}, {} at a rate of {:g}", net, optimizer, options.learning_rate);
        plan.prefix = at + ": ";
        TrainingTable training = run_training(run, data, plan);
        training.table.title +=
            fmt::format(", {} at a rate of {:g}", optimizer, options.learning_rate);
        claims.add(fmt::format("{}: points gained by a delay of 1, at least -{}", at, kTop1Holds),
                   gain(training.top1, 1), -kTop1Holds, part == 1 ? "training" : "lower rates");
        conclusion.tables.push_back(std::move(training.table));
      }
    }
  }
  conclusion.add(claims.judged());
}

}  // namespace delayed_weights

namespace {

void check_batch(const Settings& settings) {
  const std::int64_t batch = settings.integer("batch"), parts = settings.integer("coalesced");
  if (batch % parts != 0)
    throw usage_error(
        fmt::format("--set: coalesced: expected a divisor of batch = {}, not {}", batch, parts));
}

Conclusion run_delayed_weights(const ExperimentRun& run) {
  Conclusion conclusion;
  check_batch(run.settings);
  run.say("quadratics and pipelines");
  delayed_weights::add_limits(run, conclusion);
  delayed_weights::add_schedules(run, conclusion);
  delayed_weights::add_links(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  delayed_weights::add_plans(run, data, conclusion);
  delayed_weights::add_rates(run, data, conclusion);
  delayed_weights::add_trainings(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_delayed_weights;
const Experiment experiment_delayed_weights = {
    "delayed-weights",
    "what does training on weights that are one update old cost in stability and accuracy, and how "
    "busy does it keep a pipeline",
    "Narayanan et al. (ICML 2021, arXiv 2006.09503) claim that PipeDream-2BW, whose gradients are "
    "those of the weights one update ago, trains as accurately as without delay, holds two "
    "versions "
    "of the weights and never empties the pipeline. That it trains up to 20 times faster is not "
    "tested here.",
    {{"limit",
      "On a quadratic SGD is stable up to a rate x curvature of 2 (1 + momentum) without delay, 1 "
      "- momentum with a delay of 1, and the root of Jury's conditions beyond; 1 % below it "
      "decays, 1 % above it grows (derived here)."},
     {"rate",
      "The largest stable rate of a network shrinks with a delay of 1 as that of a quadratic, "
      "within a factor of 2 (derived here).",
      "seeds"},
     {"training",
      "A delay of 1 loses at most 0.5 points of top-1 at the same rate, here the recommended one "
      "(published; the margin is ours).",
      "seeds"},
     {"lower rates", "The same holds at parts of that rate (a contrast).", "seeds"},
     {"idle",
      "d equal stages are idle for (d - 1) / (m + d - 1) of the time where m micro-batches are "
      "followed by a flush, and without flushes while the pipeline fills and empties (published)."},
     {"held",
      "The first of d stages holds m micro-batches and one version of the weights under GPipe, d "
      "and one under 1F1B, d and two under PipeDream-2BW, d and d under PipeDream (published)."},
     {"links",
      "With d micro-batches in flight links of l add 2 l (d - 1) / d to the time per micro-batch; "
      "with enough in flight it is that of the slowest stage or link (derived here)."},
     {"bound",
      "N micro-batches of a plan with K in flight end within N + K - 1 of its periods in the event "
      "simulation (derived here)."},
     {"plan",
      "Plans reach the throughput they were planned for, within 1 %; where memory limits what is "
      "in flight they may exceed it (derived here)."}},
    {{"momenta", "0,0.9", "0,0.5,0.9,0.99", "0,0.5,0.9,0.99", "of quadratics", reals(0, 0.999)},
     {"delays", "0,1", "0,1,2,4,8", "0,1,2,4,8,16", "updates by which gradients are late",
      wholes(0, 16)},
     {"depths", "2,4", "2,4,8,16", "2,4,8,16,32", "equal stages of a pipeline", wholes(1, 64)},
     {"per_depth", "1,4", "1,2,4,8", "1,2,4,8", "micro-batches of a batch over the depth",
      wholes(1, 64)},
     {"links", "0.25,1", "0.1,0.25,0.5,1,2", "0.1,0.25,0.5,1,2",
      "times of a transfer over a forward and a backward pass", reals(0, 10)},
     {"batches", "8", "16", "16", "simulated batches", whole(4, 1000)},
     {"cut_nets", "lenet", "lenet,resnet20", "lenet,resnet20", "networks cut into stages",
      takes_networks()},
     {"devices", "1,4", "1,2,4,8", "1,2,4,8,16", "devices of a plan", wholes(1, 64)},
     {"memory", "1,0.75", "1,0.75,0.5,0.25", "1,0.75,0.5,0.25",
      "bytes of a device over what the whole network needs", reals(1e-6, 1)},
     {"samples", "8", "8", "8", "samples of a micro-batch of a plan", whole(1, 4096)},
     {"micro_batches", "32", "32", "32", "micro-batches of a batch of a plan", whole(1, 4096)},
     {"mac_ps", "1", "1", "1", "picoseconds per multiply-add of a device", real(1 / 1e6, 1e6)},
     {"link_ps", "100", "100", "100", "picoseconds per byte between stages", real(0, 1e6)},
     {"reduce_ps", "1000", "1000", "1000", "picoseconds per byte between replicas of a stage",
      real(0, 1e6)},
     {"rate_net", "mlp", "lenet", "lenet", "network whose largest stable rates are bisected",
      takes_network()},
     {"rate_momenta", "0.9", "0,0.9", "0,0.5,0.9", "of its training by sgd", reals(0, 0.999)},
     {"rate_epochs", "512", "512", "1024", "epochs before, by adam-l2 at its recommended rate",
      whole(1, 10'000)},
     {"rate_decay", "0.01", "0.01", "0.01", "weight decay before and at each rate", real(0, 1)},
     {"rate_steps", "128", "512", "1024",
      "epochs at each rate: steps, where all images are a batch", whole(1, 100'000)},
     {"rate_batch", "32", "32", "128", "images of a step of them", whole(1, 100'000)},
     {"rate_train_samples", "32", "32", "128", "their training images; 0: all",
      whole(0, 1'000'000'000)},
     {"rate_eval_samples", "10", "10", "10", "their test images, which decide nothing",
      whole(0, 1'000'000'000)},
     {"rate_seeds", "1", "5", "5", "seeds of them", whole(1, 1000)},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks trained with and without delay",
      takes_networks()},
     {"optimizers", "sgd", "sgd,adam", "sgd,adam", "optimizers, each at its recommended rate",
      takes_optimizers()},
     {"rate_parts", "1", "1,0.25,0.0625", "1,0.5,0.25,0.125,0.0625", "of that rate",
      reals(1e-6, 1)},
     {"epochs", "1", "3", "6", "epochs of those trainings", whole(1, 10'000)},
     {"batch", "128", "128", "128", "images of a step", whole(1, 100'000)},
     {"coalesced", "4", "4", "4", "micro-batches whose gradients a step sums", whole(1, 1024)},
     {"train_samples", "512", "4096", "8192", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "0", "0", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "5", "10", "seeds that methods are paired by", whole(1, 1000)}},
    run_delayed_weights};

}  // namespace numemu::experiments

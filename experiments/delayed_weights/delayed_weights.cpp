// Training with weights that are one update old: where it is stable, what it costs, and the
// pipelines that it keeps busy (PipeDream-2BW, Narayanan et al., ICML 2021, arXiv 2006.09503).
#include "experiments/delayed_weights/delayed_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "emu/net/nets.hpp"
#include "experiments/delayed_weights/partition.hpp"
#include "experiments/delayed_weights/pipeline.hpp"
#include "experiments/delayed_weights/stability.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::delayed_weights {

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

std::vector<RateLimit> add_rates(const ExperimentRun& run, const net::Dataset& data,
                                 Conclusion& conclusion) {
  std::vector<RateLimit> limits;
  const std::string& net = run.settings.text("rate_net");
  TrainingPlan plan{
      .trial = training_of(run.settings, net, {.optimizer = "sgd", .prefix = "rate_"}),
      .data = data.name(),
      .seeds = seeds_of(run, "rate_seeds"),
      .at_once = true};
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
    const double delayed = stats::paired_interval(octaves[1]).mean;
    if (std::isfinite(delayed)) limits.push_back({net, momentum, delayed});
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
                          fmt::format("{:.2f}", delayed), mean_text(measured),
                          fmt::format("{:+.2f}", predicted)});
  }
  conclusion.tables.push_back(std::move(table));
  return limits;
}

namespace {

/// "; 13.3 times its largest stable rate with a delay, 2^-8.06, of 32 images" of SGD above its
/// limit, else "".
std::string beyond(const std::vector<RateLimit>& limits, const std::string& net,
                   const net::TrainOptions& options) {
  if (options.optimizer != "sgd") return "";
  const auto limit = std::ranges::find_if(limits, [&](const RateLimit& one) {
    return one.net == net && one.momentum == options.momentum;
  });
  if (limit == limits.end()) return "";
  const double times = options.learning_rate / portable::exp2(limit->octaves);
  if (times <= 1) return "";
  return fmt::format("; {:.3g} times its largest stable rate with a delay, 2^{:.2f}, of 32 images",
                     times, limit->octaves);
}

}  // namespace

void add_trainings(const ExperimentRun& run, const net::Dataset& data,
                   const std::vector<RateLimit>& limits, Conclusion& conclusion) {
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
        const std::string what =
            fmt::format("{}: points gained by a delay of 1, at least -{}", at, kTop1Holds);
        const char* const claim = part != 1             ? "lower rates"
                                  : optimizer == "adam" ? "training"
                                                        : "other optimizers";
        claims.add(what + beyond(limits, net, options), gain(training.top1, 1), -kTop1Holds, claim);
        conclusion.tables.push_back(std::move(training.table));
      }
    }
  }
  conclusion.add(claims.judged());
}

namespace {

constexpr Schedule kSchedules[] = {Schedule::gpipe, Schedule::flush_1f1b, Schedule::two_bw,
                                   Schedule::pipedream};
// Of equal stages; backward passes take twice as long, for gradients of weights and of inputs.
constexpr Ticks kForward = 1000, kBackward = 2000, kBoth = kForward + kBackward;
constexpr double kPlanHolds = 0.01;  // of the period
constexpr double kMostTime = 1e6;    // picoseconds

Pipeline equal_stages(const EqualStages& of, Ticks link = 0) {
  Pipeline p{of.schedule, {}, of.micro_batches, of.batches};
  for (std::int64_t s = 0; s < of.stages; ++s)
    p.stages.push_back(
        {.forward = kForward, .backward = kBackward, .link = link, .in_flight = of.stages - s});
  return p;
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

/// "1-3 x 2 again, 4": layers, replicas, and whether they are computed again.
std::string text_of(const Plan& plan) {
  std::string text;
  for (const PlannedStage& stage : plan.stages) {
    text += fmt::format("{}{}{}{}{}", text.empty() ? "" : ", ", stage.first + 1,
                        stage.end > stage.first + 1 ? fmt::format("-{}", stage.end) : "",
                        stage.replicas > 1 ? fmt::format(" x {}", stage.replicas) : "",
                        stage.recomputes ? " again" : "");
  }
  return text;
}

/// Largest and summed bytes of the devices of a plan without replicas under a schedule, whose
/// micro-batches and versions the simulation counts.
std::pair<std::int64_t, std::int64_t> bytes_of(const std::vector<LayerCost>& layers,
                                               const Plan& plan, Schedule schedule,
                                               std::int64_t micro_batches, std::int64_t batches,
                                               bool recomputes) {
  const bool one = schedule == Schedule::pipedream;  // an update for every micro-batch
  Pipeline p = plan.pipeline(one ? 1 : micro_batches, one ? micro_batches * batches : batches);
  p.schedule = schedule;
  const Simulated simulated = simulate(p);
  std::int64_t largest = 0, sum = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    PlannedStage stage = plan.stages[s];
    stage.in_flight = simulated.stages[s].held;
    stage.recomputes = recomputes;
    // Beside the versions: the sum of gradients and the momentum.
    const std::int64_t bytes = stage_bytes(layers, stage, simulated.stages[s].versions + 2);
    largest = std::max(largest, bytes);
    sum += bytes;
  }
  return {largest, sum};
}

/// Sets the times of a machine from those in picoseconds (settings mac_ps, link_ps, reduce_ps).
/// Returns the ticks of a picosecond: the fewest of 1, 10, ... 10^6 that make all three whole, to
/// which they are rounded beyond. Devices of today take less than one for a multiply-add.
double read_times(const Settings& settings, Machine& machine) {
  constexpr double kMostTicks = 1e6;
  const double times[] = {settings.number("mac_ps"), settings.number("link_ps"),
                          settings.number("reduce_ps")};
  // Of what a decimal fraction times a power of ten misses a whole number by.
  const auto whole = [](double x) {
    return std::fabs(x - std::round(x)) <= 1e-9 * std::max(x, 1.0);
  };
  double ticks = 1;
  while (ticks < kMostTicks &&
         !std::ranges::all_of(times, [&](double time) { return whole(time * ticks); }))
    ticks *= 10;
  Ticks* const of[] = {&machine.multiply_add, &machine.link_byte, &machine.reduce_byte};
  for (std::size_t i = 0; i < std::size(of); ++i)
    *of[i] = static_cast<Ticks>(std::llround(times[i] * ticks));
  return ticks;
}

/// Throws Error where all batches one after the other, with all their transfers, are more ticks
/// than fit.
void check_times(const std::vector<LayerCost>& layers, const Machine& machine,
                 std::int64_t batches) {
  constexpr double kMostTicks = 0x1p60;
  double time = 0;
  for (const LayerCost& layer : layers) {
    time += static_cast<double>(machine.multiply_add) *
            static_cast<double>(2 * layer.forward + layer.backward);
    time += 2 * static_cast<double>(machine.link_byte) * static_cast<double>(layer.inputs);
    time += 2 * static_cast<double>(machine.reduce_byte) * static_cast<double>(layer.parameters);
  }
  if (time * static_cast<double>(machine.micro_batches * batches) > kMostTicks)
    throw usage_error(
        "--set: mac_ps, link_ps, reduce_ps: expected shorter or rounder times, or fewer samples, "
        "micro_batches or batches: the simulation has 2^60 ticks of the last digit given");
}

}  // namespace

void add_schedules(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t batches = settings.integer("batches");
  ResultTable table{fmt::format("Equal stages over {} batches, simulated (predicted)", batches),
                    {"schedule", "stages", "micro-batches", "idle, %", "micro-batches held",
                     "versions of weights"},
                    {}};
  for (const Schedule schedule : kSchedules) {
    for (const std::int64_t depth : settings.whole_numbers("depths")) {
      for (const std::int64_t per_depth : settings.whole_numbers("per_depth")) {
        const std::int64_t m = depth * per_depth;
        const bool one = schedule == Schedule::pipedream;
        const EqualStages of{schedule, depth, one ? 1 : m, one ? m * batches : batches};
        const Simulated simulated = simulate(equal_stages(of));
        const StageUse& first = simulated.stages[0];
        const std::string what =
            fmt::format("{}, {} stages, {} micro-batches: ", to_string(schedule), depth, m);
        conclusion.add(exact_finding(what + "idle share", of.bubble(), simulated.bubble,
                                     simulated.makespan == kBoth * of.passes()),
                       "idle");
        const auto count = [&](const char* of_what, std::int64_t predicted, std::int64_t counted) {
          conclusion.add(exact_finding(what + of_what, static_cast<double>(predicted),
                                       static_cast<double>(counted), predicted == counted),
                         "held");
        };
        count("versions", of.versions(), first.versions);
        count("micro-batches held", of.held(), first.held);
        table.rows.push_back(
            {std::string(to_string(schedule)), fmt::format("{}", depth), fmt::format("{}", m),
             fmt::format("{} ({})", percent(simulated.bubble), percent(of.bubble())),
             fmt::format("{} ({})", first.held, of.held()),
             fmt::format("{} ({})", first.versions, of.versions())});
      }
    }
  }
  conclusion.tables.push_back(std::move(table));
}

void add_links(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t batches = settings.integer("batches");
  Chart chart{.title = "Time per micro-batch of equal stages with links",
              .caption =
                  "PipeDream-2BW, forward and backward pass together 1. With as many "
                  "micro-batches in flight as stages, and with as many as hide the links.",
              .x = "transfer over forward and backward pass",
              .y = "time per micro-batch"};
  for (const std::int64_t depth : settings.whole_numbers("depths")) {
    for (const double share : settings.numbers("links")) {
      const auto link = static_cast<Ticks>(std::llround(share * kBoth));
      Pipeline p = equal_stages({Schedule::two_bw, depth, 8 * depth, batches}, link);
      p.stages.back().link = 0;
      const auto d = static_cast<double>(depth);
      // The ends of batches lie within a round trip of their mean distance.
      const double window = static_cast<double>(batches / 2 * p.micro_batches) / (2 * d);
      const auto compare = [&](const char* what, double predicted) {
        const double period = simulate(p).period(p);
        const Allowed allowed = near(predicted, predicted / window);
        conclusion.add(
            exact_finding(fmt::format("{} stages, links of {:g}: time per micro-batch, {}", depth,
                                      share, what),
                          predicted / kBoth, period / kBoth,
                          period >= allowed.low && period <= allowed.high),
            "links");
        chart.add(fmt::format("{} stages, {},", depth, what), {.x = share, .y = period / kBoth},
                  {.x = share, .y = predicted / kBoth});
      };
      compare("as many in flight",
              static_cast<double>(kBoth) + 2 * static_cast<double>(link) * (d - 1) / d);
      const Ticks period = depth > 1 ? std::max(kBoth, link) : kBoth;
      // Enough gradients between two updates that no stage waits for weights.
      p.micro_batches = std::max(p.micro_batches, set_in_flight(p.stages, period));
      compare("links hidden", static_cast<double>(period));
    }
  }
  conclusion.charts.push_back(std::move(chart));
}

void add_plans(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t samples = settings.integer("samples");
  const std::int64_t batches = settings.integer("batches");
  Machine machine;
  machine.micro_batches = settings.integer("micro_batches");
  const double ticks = read_times(settings, machine);
  ResultTable plans{fmt::format("Plans for batches of {} micro-batches of {} samples",
                                machine.micro_batches, samples),
                    {"network", "devices", "memory, %", "layers of the stages", "used",
                     "speed-up planned", "simulated", "idle, %"},
                    {}};
  ResultTable bytes{"Bytes of a device, the largest, and of all; one replica for each stage",
                    {"network", "schedule", "activations", "layers of the stages",
                     "MB of the largest", "MB of all"},
                    {}};
  Chart chart{.title = "Throughput of plans",
              .caption =
                  "Times the throughput of one device without limit of memory. PipeDream-2BW "
                  "under limits of memory, in per cent of what one device would need.",
              .x = "devices",
              .y = "speed-up"};
  for (const std::string& name : settings.list("cut_nets")) {
    net::Graph graph = net::build_net(name, data);
    net::initialize(graph, run.seed);
    const std::vector<LayerCost> layers = layer_costs(graph, samples);
    PlannedStage whole{0, layers.size()};
    const double all = static_cast<double>(stage_bytes(layers, whole, machine.copies));
    check_times(layers, machine, batches);
    Ticks alone = 0;
    for (const LayerCost& layer : layers)
      alone += machine.multiply_add * (layer.forward + layer.backward);
    for (const std::int64_t devices : settings.whole_numbers("devices")) {
      machine.devices = devices;
      for (const double share : settings.numbers("memory")) {
        machine.memory = static_cast<std::int64_t>(share * all);
        std::vector<std::string> row = {name, fmt::format("{}", devices), percent(share)};
        const std::optional<Plan> plan = plan_stages(layers, machine);
        if (!plan) {
          row.insert(row.end(), {"none fits", "-", "-", "-", "-"});
          plans.rows.push_back(std::move(row));
          continue;
        }
        const Pipeline p = plan->pipeline(machine.micro_batches, batches);
        const Simulated simulated = simulate(p);
        const double period = simulated.period(p), planned = static_cast<double>(plan->period);
        const auto speed = [&](double of) { return static_cast<double>(alone) / of; };
        const std::string what =
            fmt::format("{} on {} devices of {} % memory: ", name, devices, percent(share));
        const double most = planned * static_cast<double>(p.count() + plan->in_flight() - 1);
        const auto makespan = static_cast<double>(simulated.makespan);
        const auto seconds = [&](double time) { return 1e-12 * time / ticks; };
        conclusion.add(exact_finding(what + "seconds of all batches, at most", seconds(most),
                                     seconds(makespan), makespan <= most, at_most(seconds(most))),
                       "bound");
        // The planned number in flight is enough, not always necessary: a simulation may be faster.
        conclusion.add(exact_finding(what + "speed-up", speed(planned), speed(period),
                                     period <= (1 + kPlanHolds) * planned,
                                     at_least(speed(planned) / (1 + kPlanHolds))),
                       "plan");
        row.insert(row.end(), {text_of(*plan), fmt::format("{}", plan->devices()),
                               fmt::format("{:.3f}", speed(planned)),
                               fmt::format("{:.3f}", speed(period)), percent(simulated.bubble)});
        plans.rows.push_back(std::move(row));
        const auto x = static_cast<double>(devices);
        chart.add(fmt::format("{}, {} % memory,", name, percent(share)),
                  {.x = x, .y = speed(period)}, {.x = x, .y = speed(planned)});
      }
    }
    Machine single = machine;
    single.memory = static_cast<std::int64_t>(machine.copies * all * 64);
    single.replicas = 1;
    const std::optional<Plan> plan = plan_stages(layers, single);
    if (!plan) continue;
    for (const Schedule schedule : kSchedules) {
      for (const bool recomputes : {false, true}) {
        const auto [largest, sum] =
            bytes_of(layers, *plan, schedule, machine.micro_batches, batches, recomputes);
        bytes.rows.push_back({name, std::string(to_string(schedule)),
                              recomputes ? "computed again" : "kept", text_of(*plan),
                              fmt::format("{:.3f}", 1e-6 * static_cast<double>(largest)),
                              fmt::format("{:.3f}", 1e-6 * static_cast<double>(sum))});
      }
    }
  }
  conclusion.tables.push_back(std::move(plans));
  conclusion.tables.push_back(std::move(bytes));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::delayed_weights

namespace numemu::experiments {

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
  const net::Dataset data = load_data(run);
  delayed_weights::add_plans(run, data, conclusion);
  const auto limits = delayed_weights::add_rates(run, data, conclusion);
  delayed_weights::add_trainings(run, data, limits, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_delayed_weights = {
    "delayed-weights",
    "what does training on weights that are one update old cost in stability and accuracy, and how "
    "busy does it keep a pipeline",
    "Narayanan et al. (ICML 2021, arXiv 2006.09503) claim that PipeDream-2BW, whose gradients are "
    "those of the weights one update ago, trains as accurately as without delay, holds two "
    "versions of the weights and never empties the pipeline. That it trains up to 20 times faster "
    "is not tested here.",
    {{"limit",
      "On a quadratic SGD is stable up to a rate x curvature of 2 (1 + momentum) without delay, 1 "
      "- momentum with a delay of 1, and the root of Jury's conditions beyond; 1 % below it "
      "decays, 1 % above it grows (derived here)."},
     {"rate",
      "The largest stable rate of a network shrinks with a delay of 1 as that of a quadratic, "
      "within a factor of 2 (derived here).",
      "seeds"},
     {"training",
      "A delay of 1 loses at most 0.5 points of top-1 by Adam at the same rate, here the "
      "recommended one (published; the margin is ours).",
      "seeds"},
     {"other optimizers",
      "So it does by other optimizers, SGD above the largest rate at which 32 images are stable "
      "with a delay, too (a contrast).",
      "seeds"},
     {"lower rates", "The same holds at parts of the recommended rates (a contrast).", "seeds"},
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
     {"samples", "8", "samples of a micro-batch of a plan", whole(1, 4096)},
     {"micro_batches", "32", "micro-batches of a batch of a plan", whole(1, 4096)},
     {"mac_ps", "1", "picoseconds per multiply-add of a device", real(1 / 1e6, 1e6)},
     {"link_ps", "100", "picoseconds per byte between stages", real(0, 1e6)},
     {"reduce_ps", "1000", "picoseconds per byte between replicas of a stage", real(0, 1e6)},
     {"rate_net", "mlp", "lenet", "lenet", "network whose largest stable rates are bisected",
      takes_network()},
     {"rate_momenta", "0.9", "0,0.9", "0,0.5,0.9", "of its training by sgd", reals(0, 0.999)},
     {"rate_epochs", "512", "512", "1024", "epochs before, by adam-l2 at its recommended rate",
      whole(1, 10'000)},
     {"rate_decay", "0.01", "weight decay before and at each rate", real(0, 1)},
     {"rate_steps", "128", "512", "1024",
      "epochs at each rate: steps, where all images are a batch", whole(1, 100'000)},
     {"rate_batch", "32", "32", "128", "images of a step of them", whole(1, 100'000)},
     {"rate_train_samples", "32", "32", "128", "their training images; 0: all",
      whole(0, 1'000'000'000)},
     {"rate_eval_samples", "10", "their test images, which decide nothing",
      whole(0, 1'000'000'000)},
     {"rate_seeds", "1", "5", "5", "seeds of them", whole(1, 1000)},
     data_setting("of images"),
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks trained with and without delay",
      takes_networks()},
     {"optimizers", "adam", "sgd,adam", "sgd,adam", "optimizers, each at its recommended rate",
      takes_optimizers()},
     {"rate_parts", "1", "1,0.25,0.0625", "1,0.5,0.25,0.125,0.0625", "of that rate",
      reals(1e-6, 1)},
     training_settings({"1", "3", "6"}, "128", {"512", "4096", "8192"}, {"500", "0", "0"}),
     {"coalesced", "4", "micro-batches whose gradients a step sums", whole(1, 1024)},
     seeds_setting({"1", "5", "10"})},
    run_delayed_weights};

}  // namespace numemu::experiments

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "emu/net/nets.hpp"
#include "experiments/delayed_weights/partition.hpp"
#include "experiments/delayed_weights/pipeline.hpp"
#include "experiments/delayed_weights/questions.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::delayed_weights {
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
        const Claimed claimed = near(predicted, predicted / window);
        conclusion.add(
            exact_finding(fmt::format("{} stages, links of {:g}: time per micro-batch, {}", depth,
                                      share, what),
                          predicted / kBoth, period / kBoth,
                          period >= claimed.low && period <= claimed.high),
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

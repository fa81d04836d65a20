// Networks cut into stages that compute their gradients at once, on stage variables of their own:
// which stages stand still, what penalty, multipliers and formats do to gradients, and how fast it
// can be (Practical layer-parallel training of residual networks, arXiv 2009.01462).
#include "experiments/layer_parallel/layer_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/backward.hpp"
#include "emu/net/nets.hpp"
#include "experiments/delayed_weights/partition.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/layer_parallel/training.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::layer_parallel {

namespace {

constexpr int kMostSteps = 1'000'000;
constexpr double kConverged = 1e-13;  // of a derivative over beta

double slope(double y) { return 1 - y * y; }  // of tanh where it is y

/// Derivatives along what enters each stage; the last is that of the loss along the output.
std::vector<double> adjoints(const Chain& chain, const std::vector<double>& x) {
  std::vector<double> a(x.size());
  a.back() = x.back() - chain.target;
  for (std::size_t k = chain.weights.size(); k-- > 0;) {
    const double y = portable::tanh(chain.weights[k] * x[k]);
    a[k] = a[k + 1] * slope(y) * chain.weights[k];
  }
  return a;
}

/// What enters the stages, and the output; each but the output less `shift` of its number.
template <class Shift>
std::vector<double> trajectory(const Chain& chain, const Shift& shift) {
  std::vector<double> x = {chain.input};
  const std::size_t count = chain.weights.size();
  for (std::size_t k = 0; k < count; ++k)
    x.push_back(portable::tanh(chain.weights[k] * x[k]) - (k + 1 < count ? shift(k + 1) : 0));
  return x;
}

std::vector<double> along_weights(const Chain& chain, const std::vector<double>& x) {
  const std::vector<double> a = adjoints(chain, x);
  std::vector<double> gradients;
  for (std::size_t k = 0; k < chain.weights.size(); ++k)
    gradients.push_back(a[k + 1] * slope(portable::tanh(chain.weights[k] * x[k])) * x[k]);
  return gradients;
}

}  // namespace

Chain Chain::drawn(std::int64_t stages, std::uint64_t seed, std::int64_t number) {
  const RandomSource source{seed, Stream::vectors,
                            tensor_word("layer-parallel/" + std::to_string(number))};
  Chain chain;
  chain.input = normal::draw(source, 0);
  chain.target = normal::draw(source, 1);
  for (std::int64_t k = 0; k < stages; ++k) {
    const double w = 1 + normal::draw(source, static_cast<std::uint64_t>(k + 2)) / 4;
    chain.weights.push_back(std::clamp(w, -2.0, 2.0));
  }
  return chain;
}

std::vector<double> Chain::gradients() const {
  return along_weights(*this, trajectory(*this, [](std::size_t) { return 0.0; }));
}

std::vector<double> Chain::shifted_gradients(double beta) const {
  const std::vector<double> a = adjoints(*this, trajectory(*this, [](std::size_t) { return 0.0; }));
  return along_weights(*this, trajectory(*this, [&](std::size_t k) { return a[k] / beta; }));
}

std::vector<double> Chain::penalty_gradients(double beta) const {
  const std::size_t count = weights.size();
  std::vector<double> x = trajectory(*this, [](std::size_t) { return 0.0; });
  // The curvature along a variable is at most 5 beta: |w| is at most 2.
  const double step = 1 / (5 * beta + 4);
  std::vector<double> y(count), pull(count + 1);
  for (int t = 0; t < kMostSteps; ++t) {
    for (std::size_t k = 0; k < count; ++k) y[k] = portable::tanh(weights[k] * x[k]);
    for (std::size_t k = 1; k < count; ++k) pull[k] = beta * (x[k] - y[k - 1]);
    pull[count] = target - y[count - 1];  // minus the derivative of the loss along the output
    double largest = 0;
    for (std::size_t k = 1; k < count; ++k) {
      const double derivative = pull[k] - pull[k + 1] * slope(y[k]) * weights[k];
      largest = std::max(largest, std::fabs(derivative));
      x[k] -= step * derivative;
    }
    if (largest < kConverged * beta) break;
  }
  std::vector<double> gradients;
  for (std::size_t k = 0; k < count; ++k) gradients.push_back(-pull[k + 1] * slope(y[k]) * x[k]);
  return gradients;
}

namespace {

constexpr double kChainHolds = 0.1;
/// Of sums of float32 products in another order of stages.
constexpr double kFloat32 = 1e-4;
/// Of sums where derivatives are differences of variables, beta times their roundings.
constexpr double kDifferences = 1e-3;

}  // namespace

void add_chains(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t stages = run.settings.integer("chain_stages"),
                     chains = run.settings.integer("chains");
  for (const double beta : run.settings.numbers("chain_betas")) {
    double found = 0, predicted = 0;
    for (std::int64_t i = 0; i < chains; ++i) {
      const Chain chain = Chain::drawn(stages, run.seed, i);
      const double exact = chain.gradients()[0];
      found += std::fabs(chain.penalty_gradients(beta)[0] - exact);
      predicted += std::fabs(chain.shifted_gradients(beta)[0] - exact);
    }
    const auto n = static_cast<double>(chains);
    conclusion.add(
        exact_finding(fmt::format("mean error of the first stage's gradient, beta {:g}", beta),
                      predicted / n, found / n, std::fabs(found / predicted - 1) <= kChainHolds,
                      near(predicted / n, kChainHolds * predicted / n)),
        "penalty");
  }
}

namespace {

double square(double x) { return x * x; }

double distance(const std::vector<net::Tensor>& a, const std::vector<net::Tensor>& b) {
  double off = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].data.size(); ++j) {
      off += square(double{a[i].data[j]} - double{b[i].data[j]});
      size += square(double{b[i].data[j]});
    }
  }
  return std::sqrt(off / size);
}

}  // namespace

void add_gradients(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string& name = settings.text("net");
  const std::int64_t count = settings.integer("stages");
  TrainTrial trial = training_of(settings, name);
  trial.seed = run.seed;
  net::Graph graph = initial_network(trial, data);
  Stages stages = cut_into_stages(graph, count);
  net::Targets targets;
  const net::Tensor x = data.calibration_batch(
      0, std::min<std::int64_t>(trial.options.batch, data.calibration_count()), targets);
  net::Numerics float32;
  const net::Step step{.phase = net::Phase::training};
  const auto at = [&](const StageVariables& variables) {
    return local_gradients(stages, variables, targets.classes, float32, step, 0);
  };
  const auto size = static_cast<std::size_t>(count);

  // Backpropagation, by multipliers from its own derivatives along the variables.
  const net::Injection injection{stages.ends.back(), [&](const net::Tensor& logits) {
                                   net::Tensor gradient(logits.shape);
                                   net::cross_entropy(logits, targets.classes, &gradient);
                                   return gradient;
                                 }};
  const net::Gradients whole = net::gradients(graph, {&x, 1}, float32, step,
                                              {stages.ends.data(), size - 1}, {&injection, 1});
  std::vector<std::vector<net::Tensor>> exact;
  std::ptrdiff_t next = 0;
  for (const net::Graph& part : stages.parts) {
    const std::ptrdiff_t own = std::ssize(part.parameters());
    const auto first = whole.parameters.begin() + next;
    exact.emplace_back(first, first + own);
    next += own;
  }
  StageVariables known = feasible(stages, x, 1, float32, step, 0);
  known.kappa.resize(size);
  for (std::size_t k = 1; k < size; ++k) {
    known.kappa[k] = whole.values[k - 1];
    for (float& element : known.kappa[k].data) element *= -static_cast<float>(x.dim(0));
  }
  const LocalGradients with_known = at(known);
  for (std::size_t k = 0; k < size; ++k) {
    const double off = distance(with_known.parameters[k], exact[k]);
    conclusion.add(exact_finding(fmt::format("{}, stage {}: relative distance to backpropagation "
                                             "at its multipliers",
                                             name, k),
                                 0, off, off <= kFloat32, at_most(kFloat32)),
                   "multipliers");
  }

  ResultTable table{
      fmt::format("Relative distance of each stage's gradient to backpropagation, {}", name),
      {"beta", "steps", "stages at zero"},
      {}};
  for (std::size_t k = 0; k < size; ++k) table.header.push_back(fmt::format("stage {}", k));
  for (const double beta : settings.numbers("betas")) {
    StageVariables variables = feasible(stages, x, beta, float32, step, 0);
    for (std::int64_t round = 0; round < count; ++round) {
      const LocalGradients local = at(variables);
      const auto still = std::ranges::count_if(local.parameters, [](const auto& part) {
        return std::ranges::all_of(part, [](const net::Tensor& gradient) {
          return std::ranges::all_of(gradient.data, [](float g) { return g == 0; });
        });
      });
      const auto expected = static_cast<double>(count - 1 - round);
      conclusion.add(
          exact_finding(fmt::format("{}, beta {:g}: stages without a gradient after {} steps of "
                                    "the variables",
                                    name, beta, round),
                        expected, static_cast<double>(still),
                        static_cast<double>(still) == expected),
          "locking");
      const auto unlocked = static_cast<std::size_t>(count - 1 - round);
      const double off = distance(local.parameters[unlocked], exact[unlocked]);
      conclusion.add(exact_finding(fmt::format("{}, beta {:g}: relative distance to "
                                               "backpropagation of stage {}, unlocked by step {}",
                                               name, beta, unlocked, round),
                                   0, off, off <= kDifferences, at_most(kDifferences)),
                     "sweep");
      std::vector<std::string> row = {fmt::format("{:g}", beta), fmt::format("{}", round),
                                      fmt::format("{}", still)};
      for (std::size_t k = 0; k < size; ++k)
        row.push_back(fmt::format("{:.5f}", distance(local.parameters[k], exact[k])));
      table.rows.push_back(std::move(row));
      step_variables(variables, local, 1);
    }
  }
  conclusion.tables.push_back(std::move(table));

  for (const std::string& format : settings.list("formats")) {
    StageVariables variables = feasible(stages, x, 1, float32, step, 0);
    net::Tensor& lambda = variables.lambda[1];
    float largest = 0;
    for (const float value : lambda.data) largest = std::max(largest, std::fabs(value));
    const Format& of = find_format(format);
    const double expected =
        static_cast<double>(lambda.size()) *
        error_moments(cells(of, {}, true), static_cast<float>(largest / largest_value(of)),
                      lambda.data.data(), lambda.size())
            .mse;
    store({.name = format, .format = format}, lambda);
    const LocalGradients local = at(variables);
    double found = 0;
    for (std::size_t i = 0; i < lambda.data.size(); ++i)
      found += square(double{lambda.data[i]} - double{local.outputs[0].data[i]});
    conclusion.add(exact_finding(fmt::format("{}: square of what pulls the output of the first, "
                                             "locked stage over beta^2, variables in {}",
                                             name, format),
                                 expected, found, std::fabs(found / expected - 1) <= kFloat32,
                                 near(expected, kFloat32 * expected)),
                   "noise");
  }
}

namespace {

constexpr double kSpeedHolds = 0.02;
constexpr double kMostLost = 1;  // points of top-1

void add_speed(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  constexpr std::int64_t kSteps = 1000, kMemory = std::int64_t{1} << 50;
  // Sums of gradients so slow that every stage has one replica.
  delayed_weights::Machine machine{.memory = kMemory,
                                   .multiply_add = settings.integer("mac_ps"),
                                   .link_byte = settings.integer("link_ps"),
                                   .reduce_byte = 1'000'000,
                                   .micro_batches = 1024};
  ResultTable table{"Speed-up over one device, predicted and simulated",
                    {"network", "stages", "rounds", "serial steps", "predicted", "simulated"},
                    {}};
  Chart chart{.kind = Chart::Kind::points,
              .title = "Speed-up of stages that compute at once",
              .caption = "One round for each step, every step parallel.",
              .x = "stages",
              .y = "speed-up"};
  for (const std::string& name : settings.list("speed_nets")) {
    const auto layers =
        delayed_weights::layer_costs(net::build_net(name, data), settings.integer("samples"));
    for (const std::int64_t count : settings.whole_numbers("speed_stages")) {
      machine.devices = count;
      const auto plan = delayed_weights::plan_stages(layers, machine);
      if (!plan || plan->stages.size() < 2) continue;
      Rounds of;
      for (const delayed_weights::PlannedStage& stage : plan->stages)
        of.stages.push_back(stage.times);
      const auto k = static_cast<std::int64_t>(of.stages.size());
      std::vector<std::pair<std::int64_t, std::int64_t>> ways = {{1, 0}, {1, 4}};
      if (k > 2) ways.emplace_back(k - 1, 0);
      for (const auto& [rounds, every] : ways) {
        of.rounds = rounds;
        of.serial_every = every;
        const double predicted = of.speed_up(),
                     found = static_cast<double>(kSteps * of.serial()) /
                             static_cast<double>(simulated_time(of, kSteps));
        const std::string what = fmt::format("{}, {} stages, {} rounds, {}", name, k, rounds,
                                             every == 0 ? "no serial step" : "1 of 4 serial");
        conclusion.add(every == 0 ? exact_finding("speed-up of " + what, predicted, found,
                                                  std::fabs(found / predicted - 1) <= kSpeedHolds,
                                                  near(predicted, kSpeedHolds * predicted))
                                  : exact_finding("speed-up of " + what + ", at least", predicted,
                                                  found, found >= (1 - kSpeedHolds) * predicted,
                                                  at_least((1 - kSpeedHolds) * predicted)),
                       "speed");
        table.rows.push_back({name, fmt::format("{}", k), fmt::format("{}", rounds),
                              every == 0 ? "none" : "1 of 4", fmt::format("{:.3f}", predicted),
                              fmt::format("{:.3f}", found)});
        const double x = static_cast<double>(k), bound = x / (x - 1);
        if (rounds == 1 && every == 0)
          chart.add(name, {.x = x, .y = found}, {.x = x, .y = predicted});
        if (every == 0 && rounds == k - 1)
          conclusion.add(exact_finding("speed-up with every stage unlocked, " + what, bound, found,
                                       found <= bound, at_most(bound)),
                         "unlocked");
      }
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

std::vector<Method> methods_of(const Settings& settings) {
  const std::int64_t rounds = settings.integer("rounds"), every = settings.integer("serial_every");
  std::vector<Method> methods = {
      {.name = "serial"},
      {.name = "penalty", .rounds = rounds},
      {.name = "augmented", .rounds = rounds, .augmented = true},
      {.name = "hybrid", .rounds = rounds, .serial_every = every},
      {.name = "hybrid, filtered", .rounds = rounds, .serial_every = every, .filtered = true}};
  for (const std::string& format : settings.list("formats"))
    methods.push_back(
        {.name = "hybrid, " + format, .rounds = rounds, .serial_every = every, .format = format});
  return methods;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<Method> methods = methods_of(settings);
  const std::int64_t stages = settings.integer("stages");
  const double beta = settings.number("beta");
  TrainingPlan plan{.trial = training_of(settings, settings.text("net")),
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .at_once = true};
  for (const Method& method : methods) {
    plan.methods.push_back({.name = method.name,
                            .counted = {{"stages", stages},
                                        {"beta", beta},
                                        {"rounds", method.rounds},
                                        {"augmented", method.augmented},
                                        {"serial_every", method.serial_every},
                                        {"format", method.format},
                                        {"filtered", method.filtered}}});
  }
  const auto study =
      run_training_study<Trained>(run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return train_stages(trial, data, methods[m], stages, beta);
      });
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const SeedFigures scores = study.figures(&Trained::score);
  PairedClaims claims;
  for (std::size_t m = 1; m < study.size(); ++m)
    claims.add(
        fmt::format("points of top-1 gained by {}, at least -{}", methods[m].name, kMostLost),
        gain(scores, m), -kMostLost,
        !methods[m].format.empty() ? "few bits"
        : methods[m].filtered      ? "filtered"
                                   : "training");
  conclusion.add(claims.judged());
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {} stages, {}, paired by seed", plan.trial.net, data.name(), stages,
                  counted(study.seeds(), "seed")),
      study.size(),
      {name_column("method", study.methods),
       mean_column("top-1, %", scores),
       difference_column("difference, points", scores),
       interval_column(scores),
       {"bytes of variables of a sample",
        [&](std::size_t m) { return fmt::format("{:.0f}", study.mean(m, &Trained::bytes)); }}}));
  conclusion.charts.push_back(gain_chart("Top-1 gained by stages that compute at once",
                                         "Mean difference to backpropagation, paired by seed.",
                                         "gain, points", study.methods, scores));
}

Conclusion run_layer_parallel(const ExperimentRun& run) {
  Conclusion conclusion;
  const net::Dataset data = load_data(run);
  add_chains(run, conclusion);
  add_gradients(run, data, conclusion);
  add_speed(run, data, conclusion);
  add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::layer_parallel

namespace numemu::experiments {

extern const Experiment experiment_layer_parallel = {
    "layer-parallel",
    "which stages of a network cut into stages get gradients at once, how far are these from "
    "backpropagation, how fast is it, and what does training lose",
    "Practical layer-parallel training of residual networks (arXiv 2009.01462) claims that stages "
    "with variables of their own, under a penalty or an augmented Lagrangian and corrected by "
    "serial steps, train faster than backpropagation at comparable accuracy.",
    {{"penalty",
      "The penalty's gradient is backpropagation's along a trajectory that each stage shifts by "
      "its derivative over beta, to first order within 10 % (derived here)."},
     {"multipliers",
      "At multipliers that are backpropagation's derivatives and at a forward pass's variables "
      "every local gradient is backpropagation's (derived here)."},
     {"locking",
      "After j steps of the variables from a forward pass all of K stages but the last j + 1 have "
      "no gradient (derived here)."},
     {"sweep",
      "The stage that a step of 1 / beta unlocks gets backpropagation's gradient, whatever beta "
      "is, up to float32 (derived here)."},
     {"noise",
      "Variables in a format pull even a locked stage, by beta times their rounding errors "
      "(derived here)."},
     {"speed",
      "Stages that wait for neighbours alone have the period of their slowest cycle of waits, "
      "within 2 % of the simulation; with serial steps it is at most 2 % slower (derived here)."},
     {"unlocked",
      "With the K - 1 rounds that unlock all stages the speed-up is at most K / (K - 1) (derived "
      "here)."},
     {"training",
      "Training loses at most 1 point of top-1 to backpropagation (published; the margin is ours).",
      "seeds"},
     {"filtered", "So it does with variables that are means of 2 x 2 pixels (a contrast).",
      "seeds"},
     {"few bits", "So it does with variables in few bits (a contrast).", "seeds"}},
    {{"chain_stages", "4", "scalar stages of tanh", whole(2, 64)},
     {"chain_betas", "100,1000", "30,100,1000", "30,100,1000", "of their penalty", reals(1, 1e6)},
     {"chains", "10", "50", "200", "of them", whole(1, 10'000)},
     {"net", "mlp-deep", "lenet", "resnet20", "network cut into stages", takes_network()},
     {"data", "glyphs", "glyphs", "cifar10", "data set of images", takes_data_set()},
     {"stages", "3", "of the network", whole(2, 64)},
     {"betas", "1,10", "0.1,1,10", "0.1,1,10", "of gradients of one batch", reals(0.01, 1e4)},
     {"formats", "float8_e4m3fn,int4", "float8_e4m3fn,int8,int4", "float8_e4m3fn,int8,int4",
      "of stage variables", list_of()},
     {"speed_nets", "resnet20", "resnet20,resnet56", "resnet20,resnet56", "networks timed",
      takes_networks()},
     {"speed_stages", "2,4,8,16", "2,4,8,16", "2,3,4,6,8,12,16", "devices", wholes(2, 64)},
     {"samples", "8", "samples of a step of them", whole(1, 4096)},
     {"mac_ps", "1", "picoseconds per multiply-add of a device", whole(1, 1'000'000)},
     {"link_ps", "100", "picoseconds per byte between stages", whole(0, 1'000'000)},
     {"beta", "1", "of trainings", real(0.01, 1e4)},
     {"rounds", "1", "steps of the variables before an update", whole(1, 64)},
     {"serial_every", "4", "of so many updates of a hybrid one is backpropagation's",
      whole(2, 1'000'000)},
     rate_settings(),
     training_settings({"1", "3", "1"}, {"128", "128", "32"}, {"512", "4096", "2048"},
                       {"500", "4000", "1000"}),
     seeds_setting({"1", "5", "5"})},
    layer_parallel::run_layer_parallel};

}  // namespace numemu::experiments

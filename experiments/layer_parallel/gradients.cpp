#include "experiments/layer_parallel/gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/backward.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/layer_parallel/training.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"

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

}  // namespace numemu::experiments::layer_parallel

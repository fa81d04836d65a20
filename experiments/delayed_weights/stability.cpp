#include "experiments/delayed_weights/stability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "emu/net/graph.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "formats/portable/math.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments::delayed_weights {
namespace {

/// The last number up to which `holds`, which is true of `low` and false of `high`.
template <class Holds>
double bisected(double low, double high, const Holds& holds) {
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2)
    (holds(middle) ? low : high) = middle;
  return low;
}

policies::Recipe recipe_of(const Descent& descent) {
  Json recipe = {{"update", {{"optimizer", "sgd"}}}};
  if (descent.delay > 0) recipe["update"]["rule"] = fmt::format("delayed({})", descent.delay);
  return policies::Recipe::make(std::move(recipe));
}

}  // namespace

std::string Descent::name() const {
  return fmt::format("delay {}, momentum {:g}", delay, momentum);
}

std::vector<double> characteristic(const Descent& descent, double eta) {
  std::vector<double> polynomial(static_cast<std::size_t>(std::max(2, descent.delay + 1)) + 1);
  polynomial[0] = 1;
  polynomial[1] = -(1 + descent.momentum);
  polynomial[2] = descent.momentum;
  polynomial[static_cast<std::size_t>(descent.delay) + 1] += eta;
  return polynomial;
}

bool roots_within(std::vector<double> polynomial, double radius) {
  double power = 1;
  for (double& coefficient : polynomial) {  // that of the roots over the radius
    coefficient *= power;
    power /= radius;
  }
  while (polynomial.size() > 1) {
    const double k = polynomial.back() / polynomial.front();
    if (!(std::fabs(k) < 1)) return false;
    std::vector<double> next(polynomial.size() - 1);
    for (std::size_t i = 0; i < next.size(); ++i)
      next[i] = polynomial[i] - k * polynomial[polynomial.size() - 1 - i];
    polynomial = std::move(next);
  }
  return true;
}

double spectral_radius(const std::vector<double>& polynomial) {
  return bisected(0x1p-10, 0x1p10,
                  [&](double radius) { return !roots_within(polynomial, radius); });
}

double jury_limit(const Descent& descent) {
  return bisected(0, 2 * (1 + descent.momentum) + 1, [&](double eta) {
    return eta == 0 || roots_within(characteristic(descent, eta));
  });
}

double stability_limit(const Descent& descent) {
  return descent.delay == 0   ? 2 * (1 + descent.momentum)
         : descent.delay == 1 ? 1 - descent.momentum
                              : jury_limit(descent);
}

std::vector<Course> descend(const Descent& descent, std::span<const double> etas,
                            std::int64_t steps) {
  net::Graph graph;
  graph.inputs = {{"input", {1}}};
  graph.add("w", std::make_unique<net::Linear>(1, static_cast<std::int64_t>(etas.size())), {0});
  net::Parameter& w = *graph.parameters()[0];
  std::fill(w.value.data.begin(), w.value.data.end(), 1.0f);
  policies::RecipeNumerics numerics(recipe_of(descent), graph);
  net::TrainOptions options;
  options.optimizer = "sgd";
  options.momentum = descent.momentum;
  options.weight_decay = 0;
  const std::vector<const net::Parameter*> parameters = {&w};
  const auto optimizer = net::make_optimizer(options, parameters);
  net::Tensor gradient = w.value;
  std::vector<float> delta;
  std::vector<Course> courses(etas.size());
  const std::int64_t tenth = std::max<std::int64_t>(1, steps / 10);
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::size_t i = 0; i < etas.size(); ++i)
      gradient.data[i] = static_cast<float>(etas[i]) * w.value.data[i];
    optimizer->begin_step(1);
    optimizer->step(0, w, gradient, delta);
    numerics.update({net::Phase::training, t}, {w.name, &w.value, &gradient, &delta});
    for (std::size_t i = 0; i < etas.size(); ++i) {
      const double value = double{w.value.data[i]};  // NaN behind an infinity
      const double size = std::isfinite(value) ? std::fabs(value) : HUGE_VAL;
      if (t < tenth) courses[i].first = std::max(courses[i].first, size);
      if (t >= steps - tenth) courses[i].last = std::max(courses[i].last, size);
    }
  }
  return courses;
}

std::int64_t telling_steps(const Descent& descent, double below, double above) {
  const auto change = [&](double eta) {
    return std::fabs(portable::log(spectral_radius(characteristic(descent, eta))));
  };
  return static_cast<std::int64_t>(std::ceil(3 / std::min(change(below), change(above))));
}

namespace {

bool stable(TrainTrial trial, const net::Dataset& data, double octaves) {
  trial.options.learning_rate = portable::exp2(octaves);
  double first = NAN;
  bool within = true;
  trial.on_loss = [&](double loss) {
    if (std::isnan(first)) first = loss;
    within = within && loss <= kDiverged * first;
  };
  run_train_trial(trial, data);
  return within;
}

}  // namespace

StableRate largest_stable_rate(TrainTrial trial, const net::Dataset& data, std::int64_t before) {
  TrainTrial first = trial;
  first.options.optimizer = "adam-l2";
  net::use_recommended_rates(first.options, trial.net);
  first.options.weight_decay = trial.options.weight_decay;
  first.options.schedule = "cosine";  // which ends at the minimum
  first.options.epochs = before;
  const net::Graph trained = trained_in_float32(first, data);
  for (const net::Parameter* parameter : trained.parameters())
    trial.start.push_back({parameter->name, parameter->value});
  double low = kLowestRate, high = kHighestRate;
  while (high - low > kRateResolution) {
    const double middle = (low + high) / 2;
    (stable(trial, data, middle) ? low : high) = middle;
  }
  const bool found = low > kLowestRate && high < kHighestRate;
  return {found ? (low + high) / 2 : NAN};
}

}  // namespace numemu::experiments::delayed_weights

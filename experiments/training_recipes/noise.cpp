// Noise of weight gradients: closed forms on float32 tensors, and what a step under the recipe has.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/ops/cross_entropy.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/pairwise.hpp"
#include "experiments/predict/block_factors.hpp"
#include "experiments/training_recipes/parts.hpp"
#include "formats/analysis/cells.hpp"
#include "formats/float_guard.hpp"
#include "policies/policy.hpp"
#include "policies/quantize_columns.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/rotation.hpp"

namespace numemu::experiments::training_recipes {
namespace {

/// A product of wgrad: operands before the recipe touched them, [rows, width] each, and the result.
struct WeightGradient {
  net::Tensor g, x;
  std::vector<float> d, exact;  ///< of the recipe; of float32 from the same operands
};
using Gradients = std::map<std::string, WeightGradient>;

/// Keeps the weight gradients of layers with a weight.
class Recorder final : public net::Forwarding {
 public:
  Recorder(net::Numerics& inner, const net::Graph& graph) : Forwarding(inner) {
    for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
      if (layer.weight != nullptr) weights_.insert(layer.name);
    }
  }

  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(step, p);
    if (p.kind != net::GemmKind::wgrad || !weights_.contains(std::string(p.layer))) return;
    WeightGradient& gradient = gradients[std::string(p.layer)];
    gradient.g = *p.a.source;
    gradient.x = *p.b.source;
    gradient.d.assign(p.d, p.d + p.m * p.n);
    gradient.exact.resize(gradient.d.size());
    net::Product as_is = p;
    as_is.d = gradient.exact.data();
    net::Numerics().product(step, as_is);
  }

  Gradients gradients;

 private:
  std::set<std::string> weights_;
};

/// Two steps forward and backward on the same batch without an update; the gradients of the second.
Gradients gradients_of(const net::Graph& graph, const net::Dataset& data, net::Numerics& numerics,
                       std::int64_t batch, std::uint64_t seed) {
  const FloatGuard guard;
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), seed, 0);
  ids.resize(static_cast<std::size_t>(std::min(batch, data.train_count())));
  net::Targets targets;
  const net::Tensor x = data.train_batch(ids, targets);
  Recorder recorder(numerics, graph);
  for (std::int64_t index = 0; index < 2; ++index) {
    const net::Step step{.phase = net::Phase::training, .index = index};
    recorder.begin_step(step);
    const float scale = recorder.loss_scale(step);
    net::Tape tape = net::forward_training(graph, x, recorder, step, seed);
    net::Tensor grad_output;
    net::cross_entropy(tape.output, targets.classes, &grad_output, scale);
    net::backward(graph, std::move(tape), std::move(grad_output), recorder);
    recorder.end_step(step);
    for (auto& [name, gradient] : recorder.gradients) {
      for (std::vector<float>* values : {&gradient.d, &gradient.exact, &gradient.g.data}) {
        for (float& v : *values) v /= scale;
      }
    }
  }
  return std::move(recorder.gradients);
}

double squares(const std::vector<float>& x) {
  return stats::pairwise_sum(static_cast<std::int64_t>(x.size()),
                             [&](std::int64_t i) { return double{x[i]} * x[i]; });
}

double square_distance(const std::vector<float>& x, const std::vector<float>& y) {
  return stats::pairwise_sum(static_cast<std::int64_t>(x.size()), [&](std::int64_t i) {
    return (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  });
}

/// The operand as wgrad reads it, [width, rows], rotated where the layer's transform does.
std::vector<float> lines_of(const net::Tensor& x, std::int64_t block, bool left,
                            std::uint64_t seed) {
  const std::int64_t width = x.shape.back(), rows = x.size() / width;
  std::vector<float> copy = x.data, lines(copy.size());
  if (block > 0)
    policies::rotate(copy.data(), 1, width, policies::random_signs({.seed = seed}, rows), block,
                     left);
  policies::transpose(copy.data(), 1, rows, width, lines.data());
  return lines;
}

/// Sums over the lines of an operand [lines, rows] in every row.
struct Rows {
  std::vector<double> signal, error;  ///< of squares
  Rows(const std::vector<float>& x, const std::vector<double>& errors, std::int64_t rows)
      : signal(static_cast<std::size_t>(rows)), error(signal.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      signal[i % signal.size()] += double{x[i]} * x[i];
      error[i % signal.size()] += errors[i];
    }
  }
};

/// The block in which wgrad of a layer is rotated; 0: it is not.
std::int64_t rotation_of(const policies::Recipe& recipe, const std::string& layer) {
  for (const auto& choice : recipe.policies(layer)) {
    if (!choice || choice->kind->name != "hadamard-backward") continue;
    const Json options = policies::policy_json(*choice);
    return options.at("products") == "dgrad" ? 0 : options.at("block").get<std::int64_t>();
  }
  return 0;
}

}  // namespace

namespace {

/// The cells of a role, those of a format of 16 bits being many.
const std::vector<Cell>& cells_of(const policies::RolePolicy& policy) {
  thread_local std::map<std::string, std::vector<Cell>> made;
  std::vector<Cell>& grid = made[policy.format->name + " " + to_string(policy.rounding)];
  if (grid.empty())
    grid = policy.rounding.stochastic() ? brackets(*policy.format, true)
                                        : cells(*policy.format, policy.rounding, true);
  return grid;
}

}  // namespace

std::vector<double> squared_errors(const std::optional<policies::RolePolicy>& policy,
                                   std::int64_t length, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<double> errors(x.size(), 0.0);
  if (!policy || n == 0) return errors;
  const bool stochastic = policy->rounding.stochastic();
  const std::vector<Cell>& grid = cells_of(*policy);
  const auto error_of = [&](double v) {
    const auto above = std::upper_bound(grid.begin() + 1, grid.end(), v,
                                        [](double at, const Cell& cell) { return at < cell.low; });
    const Cell& cell = *(above - 1);
    if (!stochastic) return (v - cell.value) * (v - cell.value);
    const double low = std::max(cell.low, grid.front().value), inside = std::max(v, low);
    if (v > cell.high) return (v - cell.high) * (v - cell.high);
    return v < low ? (low - v) * (low - v) : (inside - low) * (cell.high - inside);
  };
  const auto add = [&](std::int64_t i, double factor) {
    errors[i] = factor > 0 ? factor * factor * error_of(x[i] / factor) : 0;
  };
  if (policy->block == nullptr) {
    const double scale = policies::RoleQuantizer(*policy).scale(x.data(), n);
    for (std::int64_t i = 0; i < n; ++i) add(i, scale);
    return errors;
  }
  const BlockLayout layout = block_layout(*policy->block, {n / length, length}, 1);
  const std::vector<double> factors = block_factors(*policy, layout, x.data());
  for (std::int64_t i = 0; i < n; ++i) add(i, factors[layout.block_of(i)]);
  return errors;
}

GradientNoise gradient_noise(const net::Graph& graph, const net::Dataset& data,
                             const policies::Recipe& recipe, std::int64_t batch,
                             std::uint64_t seed) {
  net::Numerics float32;
  const Gradients plain = gradients_of(graph, data, float32, batch, seed);
  policies::RecipeNumerics numerics(recipe, graph);
  const Gradients rounded = gradients_of(graph, data, numerics, batch, seed);
  double signal = 0, own_signal = 0;
  GradientNoise noise;
  for (const auto& [name, p] : plain) {
    const policies::LayerRecipe layer = recipe.layer(name);
    const std::int64_t block = rotation_of(recipe, name);
    const std::int64_t rows = p.x.size() / p.x.shape.back();
    const float scale = numerics.loss_scale({.phase = net::Phase::training});
    std::vector<float> g = lines_of(p.g, block, true, seed);
    const std::vector<float> x = lines_of(p.x, block, false, seed);
    for (float& v : g) v *= scale;
    const Rows of_g(g, squared_errors(layer.gradient_wgrad, rows, g), rows),
        of_x(x, squared_errors(layer.activation, rows, x), rows);
    for (std::int64_t t = 0; t < rows; ++t) {
      const double noise_g = of_g.error[t] / scale / scale, g_t = of_g.signal[t] / scale / scale;
      noise.predicted += noise_g * of_x.signal[t] + g_t * of_x.error[t] + noise_g * of_x.error[t];
    }
    signal += squares(p.d);
    const WeightGradient& r = rounded.at(name);
    noise.own += square_distance(r.d, r.exact);
    own_signal += squares(r.exact);
    noise.total += square_distance(r.d, p.d);
  }
  noise.predicted /= signal;
  noise.total /= signal;
  noise.own /= own_signal;
  return noise;
}

}  // namespace numemu::experiments::training_recipes

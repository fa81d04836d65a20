// Noise of weight gradients: closed forms on float32 tensors, and what a step under the recipe has.
#include "experiments/training_recipes/gradient_noise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/squares.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/predict/block_noise.hpp"
#include "formats/analysis/cells.hpp"
#include "formats/float_guard.hpp"
#include "formats/scaling/quantize_columns.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/numerics/rotation.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::experiments::training_recipes {
namespace {

/// A product of wgrad: operands before the recipe touched them, [rows, width] each, and the result.
struct WeightGradient {
  net::Tensor g, x;
  std::vector<float> d, exact;  ///< of the recipe; of float32 from the same operands
};
using Gradients = std::map<std::string, WeightGradient>;

/// Two steps forward and backward on the same batch without an update; the gradients of the second.
Gradients gradients_of(const net::Graph& graph, const net::Dataset& data, net::Numerics& numerics,
                       std::int64_t batch, std::uint64_t seed) {
  const FloatGuard guard;
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), seed, 0);
  ids.resize(static_cast<std::size_t>(std::min(batch, data.train_count())));
  net::Targets targets;
  const net::Tensor x = data.train_batch(ids, targets);
  std::set<std::string> weights;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) weights.insert(layer.name);
  }
  Gradients gradients;
  Observers show;
  show.after = [&](const net::Product& p, std::int64_t step) {
    if (p.kind != net::GemmKind::wgrad || !weights.contains(std::string(p.layer))) return;
    WeightGradient& gradient = gradients[std::string(p.layer)];
    gradient.g = *p.a.source;
    gradient.x = *p.b.source;
    gradient.d.assign(p.d, p.d + p.m * p.n);
    gradient.exact.resize(gradient.d.size());
    net::Product as_is = p;
    as_is.d = gradient.exact.data();
    net::Numerics().product({.phase = net::Phase::training, .index = step}, as_is);
  };
  Observed recorder(numerics, show);
  for (std::int64_t index = 0; index < 2; ++index) {
    const float scale = training_pass(graph, x, targets.classes, recorder, index, seed).scale;
    for (auto& [name, gradient] : gradients) {
      for (const std::span<float> values :
           {std::span(gradient.d), std::span(gradient.exact), std::span<float>(gradient.g.data)}) {
        for (float& v : values) v /= scale;
      }
    }
  }
  return gradients;
}

double squares(const std::vector<float>& x) {
  return stats::sum_of_squares(static_cast<std::int64_t>(x.size()), x.data());
}

double square_distance(const std::vector<float>& x, const std::vector<float>& y) {
  return stats::sum_of_squared_differences(static_cast<std::int64_t>(x.size()), x.data(), y.data());
}

/// The operand as wgrad reads it, [width, rows], rotated where the layer's transform does.
std::vector<float> lines_of(const net::Tensor& x, std::int64_t block, bool left,
                            std::uint64_t seed) {
  const std::int64_t width = x.shape.back(), rows = x.size() / width;
  std::vector<float> copy = x.data, lines(copy.size());
  if (block > 0)
    policies::rotate(x.data.data(), copy.data(), 1, width,
                     policies::random_signs({.seed = seed}, rows), block, left);
  transpose(copy.data(), 1, rows, width, lines.data());
  return lines;
}

/// What the prediction needs of an operand [lines, rows].
struct Side {
  std::vector<double> mean, bias;  ///< of the numbers of a line, and of their expected errors
  /// Sums of squares over the lines in every row: of the numbers, of the numbers without the mean
  /// of their line; of the errors, of those without the bias, and what draws add to that.
  std::vector<double> square, centred, error, residual, drawn;

  Side(const std::vector<float>& x, const ElementErrors& errors, std::int64_t rows)
      : mean(x.size() / static_cast<std::size_t>(rows)),
        bias(mean.size()),
        square(static_cast<std::size_t>(rows)),
        centred(square.size()),
        error(square.size()),
        residual(square.size()),
        drawn(square.size()) {
    const auto n = static_cast<std::size_t>(rows);
    for (std::size_t line = 0; line < mean.size(); ++line) {
      const std::size_t first = line * n;
      for (std::size_t t = 0; t < n; ++t) {
        mean[line] += double{x[first + t]} / static_cast<double>(n);
        bias[line] += errors.mean[first + t] / static_cast<double>(n);
      }
      for (std::size_t t = 0; t < n; ++t) {
        const double v = x[first + t], e = errors.mean[first + t], e2 = errors.square[first + t];
        square[t] += v * v;
        centred[t] += (v - mean[line]) * (v - mean[line]);
        error[t] += e2;
        residual[t] += (e - bias[line]) * (e - bias[line]);
        drawn[t] += e2 - e * e;
      }
    }
  }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The expected squared error of the product of g and x over their rows. The means of a line add up
/// over all rows; what is left of errors and numbers counts as independent.
double product_error(const Side& g, const Side& x) {
  const auto n = static_cast<double>(g.square.size());
  std::vector<double> read(x.mean);  // means of what the product reads
  for (std::size_t i = 0; i < read.size(); ++i) read[i] += x.bias[i];
  double sum =
      n * n *
      (dot(g.bias, g.bias) * dot(read, read) + 2 * dot(g.bias, g.mean) * dot(x.bias, read) +
       dot(g.mean, g.mean) * dot(x.bias, x.bias));
  for (std::size_t t = 0; t < g.square.size(); ++t) {
    sum +=
        g.residual[t] * x.centred[t] + g.centred[t] * x.residual[t] + g.residual[t] * x.residual[t];
    sum += g.drawn[t] * (x.square[t] + x.error[t]) +
           (g.square[t] + g.error[t] - g.drawn[t]) * x.drawn[t];
  }
  return sum;
}

/// The block in which wgrad of a layer is rotated; 0: it is not.
std::int64_t rotation_of(const policies::Recipe& recipe, const std::string& layer) {
  for (const auto& choice : recipe.policies(layer)) {
    if (!choice || choice->kind->name != "hadamard-backward") continue;
    const Json options = policies::policy_json(*choice);
    return options.at("products") == "dgrad" ? 0 : options.at("block").get<std::int64_t>();
  }
  return 0;
}

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

ElementErrors element_errors(const std::optional<policies::RolePolicy>& policy, std::int64_t length,
                             const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  ElementErrors errors{std::vector<double>(x.size(), 0.0), std::vector<double>(x.size(), 0.0)};
  if (!policy || n == 0) return errors;
  const bool stochastic = policy->rounding.stochastic();
  const std::vector<Cell>& grid = cells_of(*policy);
  // Mean and square, in steps of the format.
  const auto error_of = [&](double v) -> std::pair<double, double> {
    const auto sure = [&](double q) { return std::pair((q - v), (q - v) * (q - v)); };
    const auto above = std::upper_bound(grid.begin() + 1, grid.end(), v,
                                        [](double at, const Cell& cell) { return at < cell.low; });
    const Cell& cell = *(above - 1);
    if (!stochastic) return sure(cell.value);
    const double low = std::max(cell.low, grid.front().value);
    if (v > cell.high) return sure(cell.high);
    if (v < low) return sure(low);
    return {0.0, (v - low) * (cell.high - v)};
  };
  const auto add = [&](std::int64_t i, double factor) {
    if (!(factor > 0)) return;
    const auto [mean, square] = error_of(x[i] / factor);
    errors.mean[i] = factor * mean;
    errors.square[i] = factor * factor * square;
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
    const policies::LayerRecipe& layer = numerics.bound().layer(name);
    const std::int64_t block = rotation_of(recipe, name);
    const std::int64_t rows = p.x.size() / p.x.shape.back();
    const float scale = numerics.loss_scale({.phase = net::Phase::training});
    std::vector<float> g = lines_of(p.g, block, true, seed);
    const std::vector<float> x = lines_of(p.x, block, false, seed);
    for (float& v : g) v *= scale;
    const Side of_g(g, element_errors(layer[policies::RolePart::gradient_wgrad], rows, g), rows),
        of_x(x, element_errors(layer[policies::RolePart::activation], rows, x), rows);
    noise.predicted += product_error(of_g, of_x) / scale / scale;
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

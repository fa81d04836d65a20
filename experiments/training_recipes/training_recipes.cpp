// Recipes that train today's networks in few bits: loss over steps beside float32, and the noise of
// their weight gradients predicted and measured.
#include "experiments/training_recipes/training_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/text.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/predict/block_noise.hpp"
#include "formats/analysis/cells.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/numerics/rotation.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::experiments::training_recipes {

// Noise of weight gradients: closed forms on float32 tensors, and what a step under the recipe has.
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
  net::Observing observing(
      numerics, {.after = [&](const net::Step& step, const net::Product& p) {
        if (p.kind != net::GemmKind::wgrad || !weights.contains(std::string(p.layer))) return;
        WeightGradient& gradient = gradients[std::string(p.layer)];
        gradient.g = *p.a.source;
        gradient.x = *p.b.source;
        gradient.d.assign(p.d, p.d + p.m * p.n);
        gradient.exact.resize(gradient.d.size());
        net::Product as_is = p;
        as_is.d = gradient.exact.data();
        net::Numerics().product(step, as_is);
      }});
  for (std::int64_t index = 0; index < 2; ++index) {
    const float scale = training_pass(graph, x, targets.classes, observing, index, seed).scale;
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

namespace {

constexpr double kMostLost = 1;        // per cent of float32's bits per character
constexpr double kNoiseTolerance = 1;  // dB
constexpr double kMostSpikes = 10;     // per cent of the runs
/// One for each paper that the table of published systems names. Scales of the current tensor are a
/// library's, the units of an H100 are modelled here, bfloat16 has a paper of its own.
constexpr std::string_view kPublished[] = {"fp8-delayed", "fp8-block", "mxfp8-train", "mxfp4-train",
                                           "nvfp4-train"};

/// Key of a claim about published recipes, or of the same about others.
std::string claim_of(const std::string& recipe, const char* about) {
  const bool published = std::ranges::find(kPublished, recipe) != std::end(kPublished);
  return std::string(about) + (published ? "" : ", others");
}

struct Plan {
  TrainTrial trial;  ///< without seed and recipe
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> names = {"float32"};
  std::vector<Json> recipes = {Json::object()};
  double spike = 0;
  std::size_t spike_steps = 0;
  std::size_t points = 0;
};

Plan plan_of(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  Plan plan;
  plan.trial = training_of(settings, settings.text("net"));
  plan.spike = settings.number("spike");
  plan.spike_steps = static_cast<std::size_t>(settings.integer("spike_steps"));
  plan.points = static_cast<std::size_t>(settings.integer("points"));
  plan.seeds = seeds_of(run);
  for (const std::string& name : settings.list("recipes")) {
    const std::string file = recipe_file(name, run.folders.data, "--set: recipes");
    plan.names.push_back(recipe_name(file));
    plan.recipes.push_back(parse_json(read_text(file), file));
  }
  return plan;
}

/// One training: the loss of every step, the loss on the test split, the noise of the first step.
struct Curve {
  std::vector<double> losses;  ///< in nats
  double bits = NAN;           ///< per character, of the test
  GradientNoise noise;
};

using Curves = std::vector<std::vector<Curve>>;  ///< [recipe][seed]

/// What is remembered of a training, and of its noise in a trial of its own.
struct Training {
  std::vector<double> losses;
  TrainOutcome outcome;

  static void fields(auto& self, const auto& visit) {
    visit("losses", self.losses);
    visit("outcome", self.outcome);
  }
};

Training train(TrainTrial trial, const net::Dataset& data) {
  Training training;
  trial.on_loss = [&](double loss) { training.losses.push_back(loss); };
  training.outcome = run_train_trial(trial, data);
  return training;
}

GradientNoise measure_noise(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = initial_network(trial, data);
  return gradient_noise(graph, data, parsed_recipe(trial), trial.options.batch, trial.seed);
}

/// Raised where gradient_noise() predicts other figures: recorded trials of another one are made
/// anew.
constexpr int kNoisePrediction = 2;

Curves trained(const ExperimentRun& run, const net::Dataset& data, const Plan& plan) {
  std::vector<Trial> trials;
  for (std::size_t r = 0; r < plan.recipes.size(); ++r) {
    for (const std::uint64_t seed : plan.seeds) {
      TrainTrial trial = plan.trial;
      trial.recipe = plan.recipes[r];
      trial.seed = seed;
      Json point = point_of(trial, data);
      const std::string label = fmt::format("{}, seed {}", plan.names[r], seed);
      trials.push_back({point, label, [trial, &data] { return json_of(train(trial, data)); }});
      point["part"] = "noise of the first gradients";
      point["prediction"] = kNoisePrediction;
      trials.push_back({point, label + ", noise",
                        [trial, &data] { return json_of(measure_noise(trial, data)); }});
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  Curves curves(plan.recipes.size());
  for (std::size_t i = 0; i < results.size() / 2; ++i) {
    auto training = read_fields<Training>(results[2 * i], "trials.jsonl");
    curves[i / plan.seeds.size()].push_back(
        {std::move(training.losses), training.outcome.metric,
         read_fields<GradientNoise>(results[2 * i + 1], "trials.jsonl")});
  }
  return curves;
}

template <class Value>
std::vector<double> over_seeds(const std::vector<Curve>& curves, const Value& value) {
  std::vector<double> values;
  for (const Curve& curve : curves) values.push_back(value(curve));
  return values;
}

double decibels_of(double ratio) { return 10 * portable::log10(ratio); }

/// Means of the loss over equal shares of the steps, in bits: share i of n.
double share_of(const Curve& curve, std::size_t i, std::size_t n) {
  const std::size_t steps = curve.losses.size(), first = i * steps / n, last = (i + 1) * steps / n;
  double sum = 0;
  for (std::size_t s = first; s < last; ++s) sum += curve.losses[s];
  return sum / static_cast<double>(last - first) / std::numbers::ln2;
}

/// One series per recipe over the steps: its losses, or what they exceed float32's by.
Chart chart_of(const Plan& plan, const Curves& curves, bool difference) {
  Chart chart;
  const std::size_t steps = curves[0][0].losses.size(), n = std::min(plan.points, steps);
  chart.title = difference ? "Bits per character above float32 over training"
                           : "Bits per character over training";
  chart.caption = fmt::format(
      "{}, {} steps of {} windows; each point is the mean training loss of {} step{}{}. Encoding, "
      "rounding, scales and unit of each recipe: its file.",
      plan.trial.net, steps, plan.trial.options.batch, steps / n, steps / n == 1 ? "" : "s",
      plan.seeds.size() > 1 ? fmt::format(", over {} seeds with its 95 % interval{}",
                                          plan.seeds.size(), difference ? " paired by seed" : "")
                            : "");
  chart.x = "step";
  chart.y = difference ? "bits per character above float32" : "bits per character";
  for (std::size_t r = difference ? 1 : 0; r < curves.size(); ++r) {
    ChartSeries series{plan.names[r], {}, false};
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = [&](const Curve& curve) { return share_of(curve, i, n); };
      const std::vector<double> values = over_seeds(curves[r], value);
      const stats::PairedInterval interval =
          difference ? stats::paired_interval(values, over_seeds(curves[0], value))
                     : stats::paired_interval(values);
      series.points.push_back(
          gain_point(static_cast<double>((2 * i + 1) * steps) / (2.0 * n), "", interval));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string shown(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

/// What one recipe did, over all seeds.
struct Row {
  std::string name;
  stats::PairedInterval bits, lost;          ///< per character; above float32, per cent of it
  double predicted = 0, own = 0, total = 0;  ///< dB
  stats::PairedInterval missed;              ///< dB measured above predicted
  std::int64_t spikes = 0;                   ///< runs
  Events first;                              ///< of the first run with any
};

Row row_of(const Plan& plan, const Curves& curves, std::size_t r) {
  Row row;
  row.name = plan.names[r];
  const std::vector<double> bits = over_seeds(curves[r], [](const Curve& c) { return c.bits; });
  row.bits = stats::paired_interval(bits);
  std::vector<double> lost;
  for (std::size_t s = 0; s < bits.size(); ++s)
    lost.push_back(100 * (bits[s] / curves[0][s].bits - 1));
  row.lost = stats::paired_interval(lost);
  const auto mean_of = [&](double GradientNoise::*ratio) {
    return stats::paired_interval(
        over_seeds(curves[r], [&](const Curve& c) { return decibels_of(c.noise.*ratio); }));
  };
  row.predicted = mean_of(&GradientNoise::predicted).mean;
  row.total = mean_of(&GradientNoise::total).mean;
  row.own = mean_of(&GradientNoise::own).mean;
  row.missed = stats::paired_interval(over_seeds(curves[r], [](const Curve& c) {
    return decibels_of(c.noise.own) - decibels_of(c.noise.predicted);
  }));
  for (const Curve& curve : curves[r]) {
    const Events events = events_of(curve.losses, plan.spike, plan.spike_steps);
    if (events.spike < 0 && events.not_finite < 0) continue;
    if (row.spikes++ == 0) row.first = events;
  }
  return row;
}

void add_tables(const Plan& plan, const std::vector<Row>& rows, std::size_t steps,
                Conclusion& conclusion) {
  ResultTable table{fmt::format("{}, {} steps, {} seed{}, paired by seed", plan.trial.net, steps,
                                plan.seeds.size(), plan.seeds.size() == 1 ? "" : "s"),
                    {"recipe", "bits per character", "above float32, %", "95 % interval",
                     "first spike", "first NaN", "noise of weight gradients, dB: predicted",
                     "measured", "against float32's gradients"},
                    {}};
  for (const Row& row : rows) {
    const auto step = [](std::int64_t s) {
      return s < 0 ? std::string("-") : fmt::format("{}", s);
    };
    table.rows.push_back({row.name, shown(row.bits.mean, "{:.4f}"),
                          row.name == "float32" ? "-" : shown(row.lost.mean, "{:+.2f}"),
                          row.name == "float32" ? "-" : interval_text(row.lost),
                          step(row.first.spike), step(row.first.not_finite),
                          shown(row.predicted, "{:.1f}"), shown(row.own, "{:.1f}"),
                          shown(row.total, "{:.1f}")});
  }
  conclusion.tables.push_back(std::move(table));
}

/// Predicted noise against what a recipe loses, and how their ranks agree.
void add_ranking(const std::vector<Row>& rows, Conclusion& conclusion) {
  std::vector<double> noise, lost;
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title = "What recipes lose against the noise predicted in their weight gradients";
  chart.caption =
      "Noise of the first step in closed form from float32 tensors; loss after training, against "
      "float32 with the same seeds.";
  chart.x = "predicted noise-to-signal ratio of weight gradients, dB";
  chart.y = "bits per character above float32, %";
  ChartSeries series{"measured", {}, false};
  for (const Row& row : rows) {
    if (!std::isfinite(row.predicted) || !std::isfinite(row.lost.mean)) continue;
    noise.push_back(row.predicted);
    lost.push_back(row.lost.mean);
    series.points.push_back(gain_point(row.predicted, row.name, row.lost));
  }
  chart.series.push_back(std::move(series));
  conclusion.charts.push_back(std::move(chart));
  if (noise.size() < 4) return;
  const double rho = stats::spearman(noise, lost);
  if (!std::isfinite(rho)) return;
  conclusion.add(interval_finding(
                     fmt::format("rank correlation of predicted noise and loss over {} recipes "
                                 "(claimed above 0)",
                                 noise.size()),
                     1, rho, stats::spearman_interval(rho, static_cast<std::int64_t>(noise.size())),
                     at_least(0)),
                 "ranking");
}

}  // namespace

Events events_of(const std::vector<double>& losses, double threshold, std::size_t window) {
  Events events;
  double least = HUGE_VAL;
  for (std::size_t s = 0; s < losses.size(); ++s) {
    if (!std::isfinite(losses[s])) {
      events.not_finite = static_cast<std::int64_t>(s);
      break;
    }
    if (s + 1 < window) continue;
    const double mean = pairwise_sum(static_cast<std::int64_t>(window),
                                     [&](std::int64_t i) { return losses[s - i]; }) /
                        static_cast<double>(window);
    if (events.spike < 0 && mean > least + threshold) events.spike = static_cast<std::int64_t>(s);
    least = std::min(least, mean);
  }
  return events;
}

void add_recipes(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Plan plan = plan_of(run);
  if (data.kind() != net::DataKind::text)
    throw usage_error("--set: data: expected a text, for losses in bits per character");
  const Curves curves = trained(run, data, plan);
  const std::size_t steps = curves[0][0].losses.size();
  if (plan.spike_steps > steps)
    throw usage_error(
        fmt::format("--set: spike_steps: expected at most the {} steps of a training, found {}",
                    steps, plan.spike_steps));
  std::vector<Row> rows;
  for (std::size_t r = 0; r < curves.size(); ++r) rows.push_back(row_of(plan, curves, r));
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const std::string what = fmt::format("dB of noise in the weight gradients, {}", row.name);
    if (row.missed.n < 2) {  // one draw has no interval
      Finding finding = model_finding(what, row.predicted, row.own, 0, kNoiseTolerance);
      finding.low = finding.high = NAN;
      conclusion.add(std::move(finding), "noise");
    } else {
      conclusion.add(
          interval_finding(what + ", measured above predicted", 0, row.missed.mean,
                           {row.missed.low, row.missed.high}, {-kNoiseTolerance, kNoiseTolerance}),
          "noise");
    }
  }
  add_ranking({rows.begin() + 1, rows.end()}, conclusion);
  PairedClaims losses;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const stats::PairedInterval& lost = rows[r].lost;
    losses.add(fmt::format("bits per character below float32, %, {} (at least -{} claimed)",
                           rows[r].name, kMostLost),
               negated(lost), -kMostLost, claim_of(rows[r].name, "loss"));
  }
  conclusion.add(losses.judged());
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const auto runs = std::ssize(plan.seeds);
    const stats::Interval share = stats::wilson(rows[r].spikes, runs);
    conclusion.add(
        interval_finding(fmt::format("% of {} with a spike or NaN, {} (at most {} allowed)",
                                     counted(runs, "run"), rows[r].name, kMostSpikes),
                         0, 100 * static_cast<double>(rows[r].spikes) / static_cast<double>(runs),
                         {100 * share.low, 100 * share.high}, at_most(kMostSpikes)),
        claim_of(rows[r].name, "stable").c_str());
  }
  const auto order = [](const Row& a, const Row& b) { return a.lost.mean < b.lost.mean; };
  const auto [best, worst] = std::minmax_element(rows.begin() + 1, rows.end(), order);
  conclusion.sentences.push_back(fmt::format(
      "After {} steps float32 has {} bits per character; {} differs from it by {} %, {} by {} %.{}",
      steps, shown(rows[0].bits.mean, "{:.4f}"), best->name, shown(best->lost.mean, "{:+.2f}"),
      worst->name, shown(worst->lost.mean, "{:+.2f}"),
      plan.seeds.size() == 1 ? " One seed does not tell which of two near recipes is better."
                             : ""));
  if (data.name() == "chain") {
    conclusion.sentences.push_back(
        fmt::format("No model of this text goes below its entropy rate of {} bits per character.",
                    net::chain::kEntropyRate));
  }
  add_tables(plan, rows, steps, conclusion);
  conclusion.charts.insert(conclusion.charts.begin(), chart_of(plan, curves, false));
  conclusion.charts.insert(conclusion.charts.begin() + 1, chart_of(plan, curves, true));
}

}  // namespace numemu::experiments::training_recipes

namespace numemu::experiments {

extern const Experiment experiment_training_recipes = {
    "training-recipes",
    "do the recipes that train today's networks in 16, 8 and 4 bits keep the loss of float32, and "
    "does the noise of their weight gradients foretell what they lose",
    "Publications of FP8, MXFP8, MXFP4 and NVFP4 training (docs/recipes.md) claim losses close to "
    "those of 16 or 32 bits without divergence.",
    {{"noise",
      "The noise that a recipe's rounding adds to weight gradients in the first step is that of "
      "its formats under the float32 tensors (derived here)."},
     {"ranking",
      "The more noise is predicted in the weight gradients, the more a recipe loses (Spearman) "
      "(derived here)."},
     {"loss",
      "A published recipe ends at most 1 % above the bits per character of float32 (published; the "
      "margin is ours).",
      "train_samples"},
     {"loss, others", "So do others, such as variants of ours (a contrast).", "train_samples"},
     {"stable",
      "In at most 10 % of a published recipe's runs the mean loss of `spike_steps` steps rises by "
      "more than `spike` above the least such mean before, which 35 runs without one show "
      "(published; the margins are ours).",
      "spike_steps"},
     {"stable, others", "So it is with others (a contrast).", "spike_steps"}},
    {{"net", "char-transformer", "network to train", takes_network()},
     {"data", "chain", "text to train on", takes_data_set()},
     {"recipes", "fp8-current,mxfp4-train", training_recipes::kRecipes, training_recipes::kRecipes,
      "shipped recipes or files, compared with float32"},
     {"lr", "0.004", "learning rate of AdamW, with a cosine schedule", real(1e-9, 1e3)},
     {"warmup", "0", "20", "20", "steps of the rising learning rate", whole(0, 1'000'000'000)},
     training_settings("1", {"2", "4", "4"}, {"6", "1920", "1920"}, {"8", "160", "160"},
                       {.of = "window"}),
     {"spike", "0.5", "nats of a mean loss above the least such mean before it", real(0, 1e6)},
     {"spike_steps", "1", "8", "8", "steps of such a mean", whole(1, 1'000'000)},
     {"points", "3", "12", "12", "means of the loss that the figure shows", whole(1, 1000)},
     seeds_setting({"1", "1", "3"}, "recipes")},
    conclude<training_recipes::add_recipes>};

}  // namespace numemu::experiments

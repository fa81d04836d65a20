// Recipes that train today's networks in few bits: loss over steps beside float32, and the noise of
// their weight gradients predicted and measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/text.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/training_recipes/gradient_noise.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::experiments {
namespace training_recipes {

namespace {

constexpr double kMostLost = 1;        // per cent of float32's bits per character
constexpr double kNoiseTolerance = 1;  // dB

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
               negated(lost), -kMostLost, "loss");
  }
  conclusion.add(losses.judged());
  for (std::size_t r = 1; r < rows.size(); ++r) {
    conclusion.add(exact_finding(fmt::format("runs with a spike or NaN, {}", rows[r].name), 0,
                                 static_cast<double>(rows[r].spikes), rows[r].spikes == 0),
                   "stable");
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

}  // namespace training_recipes

namespace {

Conclusion run_training_recipes(const ExperimentRun& run) {
  Conclusion conclusion;
  const net::Dataset data = load_data(run);
  training_recipes::add_recipes(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_training_recipes;
const Experiment experiment_training_recipes = {
    "training-recipes",
    "do the recipes that train today's networks in 16, 8 and 4 bits keep the loss of float32, and "
    "does the noise of their weight gradients foretell what they lose",
    "Publications of FP8, MXFP8, MXFP4 and NVFP4 training (docs/recipes.md) claim losses within "
    "about 1 % of 16 or 32 bits without divergence.",
    {{"noise",
      "The noise that a recipe's rounding adds to weight gradients in the first step is that of "
      "its formats under the float32 tensors (derived here)."},
     {"ranking",
      "The more noise is predicted in the weight gradients, the more a recipe loses (Spearman) "
      "(derived here)."},
     {"loss",
      "A recipe ends at most 1 % above the bits per character of float32 (published; the margin is "
      "ours).",
      "train_samples"},
     {"stable",
      "No recipe's mean loss of `spike_steps` steps rises by more than `spike` above the least "
      "such mean before (published; the margin is ours).",
      "spike_steps"}},
    {{"net", "char-transformer", "char-transformer", "char-transformer", "network to train",
      takes_network()},
     {"data", "chain", "chain", "chain", "text to train on", takes_data_set()},
     {"recipes", "fp8-current,mxfp4-train", training_recipes::kRecipes, training_recipes::kRecipes,
      "shipped recipes or files, compared with float32"},
     {"lr", "0.004", "0.004", "0.004", "learning rate of AdamW, with a cosine schedule",
      real(1e-9, 1e3)},
     {"warmup", "0", "20", "20", "steps of the rising learning rate", whole(0, 1'000'000'000)},
     training_settings("1", {"2", "4", "4"}, {"6", "1920", "1920"}, {"8", "160", "160"},
                       {.of = "window"}),
     {"spike", "0.5", "0.5", "0.5", "nats of a mean loss above the least such mean before it",
      real(0, 1e6)},
     {"spike_steps", "1", "8", "8", "steps of such a mean", whole(1, 1'000'000)},
     {"points", "3", "12", "12", "means of the loss that the figure shows", whole(1, 1000)},
     seeds_setting({"1", "1", "3"}, "recipes")},
    run_training_recipes};

}  // namespace numemu::experiments

// Networks trained with every way to store states and masters, paired by seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/optimizer_state/methods.hpp"
#include "experiments/optimizer_state/parts.hpp"
#include "experiments/optimizer_state/watch.hpp"
#include "policies/numerics/staged_numerics.hpp"
#include "policies/recipe/parameter_bytes.hpp"

namespace numemu::experiments::optimizer_state {
namespace {

constexpr double kMargin = 0.5;      // points of top-1
constexpr double kZerosNear = 0.01;  // of the share of zeros
constexpr double kNear = 0.05;       // of shares that another run's float32 numbers predict
/// Steps before second moments of 0 are counted: few, before what they do to updates drives the run
/// away from float32's.
constexpr std::int64_t kZerosAfter = 4;
constexpr std::int64_t kEvery = 4;  // steps between two whose updates are counted

policies::Recipe parsed(const Json& given, std::uint64_t seed) {
  Json recipe = given;
  recipe["numemu_recipe"] = 1;
  recipe["seed"] = seed;
  return policies::Recipe::parse(recipe, "optimizer-state");
}

/// Trains, measures and evaluates; `predicted` where the method is float32.
Json train(const TrainTrial& trial, const net::Dataset& data, std::vector<Method> predicted) {
  net::Graph graph = net::build_net(trial.net, data);
  net::initialize(graph, trial.seed);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  const policies::Recipe recipe = parsed(trial.recipe, trial.seed);
  policies::StagedNumerics staged(recipe, graph);
  const net::Dataset cut = restricted(data, trial.train_samples, false);
  const std::int64_t steps =
      options.epochs * ((cut.train_count() + options.batch - 1) / options.batch);
  Watch watch(staged, options, std::min(steps, kZerosAfter), kEvery, std::move(predicted));
  net::train(graph, cut, options, watch);
  net::Numerics float32;
  const net::Evaluation tested =
      net::evaluate(graph, data, net::Split::test, trial.eval_samples, float32);
  const policies::ParameterBytes bytes = policies::parameter_bytes(recipe, graph, options);
  Json result = watch.json();
  result["top1"] = static_cast<double>(tested.correct) / static_cast<double>(tested.n);
  result["master_bytes"] = bytes.master;
  result["state_bytes"] = bytes.state;
  return result;
}

/// One method over the seeds.
struct Row {
  const Method* method = nullptr;
  std::vector<Json> results;
  stats::PairedInterval difference;  ///< of top-1 to float32, points

  std::vector<double> all(const char* key, double factor = 1) const {
    std::vector<double> values;
    for (const Json& result : results)
      values.push_back(result.at(key).is_number() ? factor * result.at(key).get<double>() : NAN);
    return values;
  }
  double mean(const char* key) const { return stats::paired_interval(all(key)).mean; }
};

void judge(const std::string& net, const std::vector<Row>& rows, Conclusion& conclusion) {
  const Row& float32 = rows[0];
  // Seed by seed: the float32 run of a seed predicts the others'.
  const auto near_it = [&](std::string what, const std::vector<double>& predicted,
                           const std::vector<double>& shares, double tolerance) {
    const double p = stats::paired_interval(predicted).mean;
    const stats::PairedInterval off = stats::paired_interval(shares, predicted);
    conclusion.findings.push_back(interval_finding(
        std::move(what), p, p + off.mean, {p + off.low, p + off.high}, near(p, tolerance)));
  };
  for (const Row& row : rows) {
    if (row.method->second.empty()) continue;
    std::vector<double> predicted;
    for (const Json& result : float32.results)
      predicted.push_back(result.at("zeros_of").at(row.method->name));
    near_it(fmt::format("{}: second moments of 0, {}", net, row.method->name), predicted,
            row.all("zeros"), kZerosNear);
  }
  conclusion.about("zeros");
  for (const Row& row : rows) {
    if (!row.method->masters) continue;
    near_it(fmt::format("{}: updates lost, {}", net, row.method->name),
            float32.all(row.method->stochastic ? "lost_stochastic" : "lost_nearest"),
            row.all("lost"), kNear);
  }
  conclusion.about("lost");
  PairedClaims claims;
  for (const Row& row : rows) {
    if (row.method->top1 == Method::Expected::harmless) {
      claims.add(fmt::format("{}: points gained on float32 by {}, at least -{}", net,
                             row.method->name, kMargin),
                 row.difference, -kMargin, "harmless");
    } else if (row.method->top1 == Method::Expected::harmful) {
      stats::PairedInterval loss = row.difference;
      loss = {-loss.mean, -loss.high, -loss.low, loss.n};
      claims.add(fmt::format("{}: points lost to float32 by {}, at least {}", net, row.method->name,
                             kMargin),
                 loss, kMargin, "harmful");
    }
  }
  for (Finding& finding : claims.judged()) conclusion.findings.push_back(std::move(finding));
}

ResultTable table_of(const TrainTrial& trial, const std::string& data,
                     const std::vector<Row>& rows) {
  ResultTable table{
      fmt::format("{} on {}, {}, {} epochs, {} seeds, paired by seed", trial.net, data,
                  trial.options.optimizer, trial.options.epochs, rows[0].results.size()),
      {"stored", "bytes per parameter: master, state", "top-1, %", "difference, points",
       "95 % interval", "second moments of 0, %", "predicted, %", "updates lost, %", "predicted, %",
       "largest update / rate"},
      {}};
  // A run too short to update anything has lost no share of its updates.
  const auto percent = [](double x) {
    return std::isfinite(x) ? fmt::format("{:.1f}", 100 * x) : std::string("-");
  };
  for (const Row& row : rows) {
    const stats::PairedInterval& d = row.difference;
    const bool first = &row == &rows[0];
    double zeros = 0;
    for (const Json& result : rows[0].results) {
      if (!row.method->second.empty())
        zeros += result.at("zeros_of").at(row.method->name).get<double>() /
                 static_cast<double>(rows[0].results.size());
    }
    table.rows.push_back(
        {row.method->name,
         fmt::format("{:.2f}, {:.2f}", row.mean("master_bytes"), row.mean("state_bytes")),
         fmt::format("{:.2f}", 100 * row.mean("top1")),
         first ? "-" : fmt::format("{:+.2f}", d.mean),
         first || d.n < 2 ? "-" : fmt::format("[{:+.2f}, {:+.2f}]", d.low, d.high),
         percent(row.mean("zeros")), row.method->second.empty() ? "-" : percent(zeros),
         percent(row.mean("lost")),
         row.method->masters
             ? percent(rows[0].mean(row.method->stochastic ? "lost_stochastic" : "lost_nearest"))
             : "-",
         fmt::format("{:.3g}", row.mean("largest"))});
  }
  return table;
}

Chart chart_of(const TrainTrial& trial, const std::string& data, const std::vector<Row>& rows) {
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = fmt::format("What stored states and masters cost {} on {}", trial.net, data);
  chart.caption = fmt::format(
      "Difference of top-1 to float32 over {} seeds, with its 95 % interval by Student's t law "
      "paired by seed; below 0 is worse. Products are float32.",
      rows[0].results.size());
  chart.y = "difference, points";
  ChartSeries series{"measured", {}, false};
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const stats::PairedInterval& d = rows[r].difference;
    series.points.push_back({.x = static_cast<double>(r),
                             .name = rows[r].method->name,
                             .y = d.mean,
                             .low = d.low,
                             .high = d.high});
  }
  chart.series.push_back(std::move(series));
  return chart;
}

}  // namespace

void add_net(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
             Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const TrainTrial trial = training_of(settings, net, {.optimizer = "adam"});
  const std::vector<Method> compared = methods(settings.integer("block", 1, 65536));
  std::vector<Method> predicted;
  for (const Method& method : compared) {
    if (!method.second.empty()) predicted.push_back(method);
  }
  const std::int64_t seeds = settings.integer("seeds", 1, 1000);
  std::vector<Trial> trials;
  for (const Method& method : compared) {
    for (std::int64_t s = 0; s < seeds; ++s) {
      TrainTrial one = trial;
      one.seed = run.seed + static_cast<std::uint64_t>(s);
      one.recipe = method.recipe;
      Json point = point_of(one, data);
      point["counted"] =
          fmt::format("updates of every {}th step, zeros after {}", kEvery, kZerosAfter);
      const bool float32 = &method == &compared[0];
      for (const Method& other : predicted) {
        if (float32) point["predicted"][other.name] = other.recipe;
      }
      trials.push_back({std::move(point),
                        fmt::format("{}: {}, seed {}", net, method.name, one.seed),
                        [one, float32, &data, &predicted] {
                          return train(one, data, float32 ? predicted : std::vector<Method>{});
                        }});
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  std::vector<Row> rows;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    Row row;
    row.method = &compared[m];
    for (std::size_t s = 0; s < static_cast<std::size_t>(seeds); ++s)
      row.results.push_back(results[m * static_cast<std::size_t>(seeds) + s]);
    row.difference =
        stats::paired_interval(row.all("top1", 100), (m == 0 ? row : rows[0]).all("top1", 100));
    rows.push_back(std::move(row));
  }
  judge(net, rows, conclusion);
  conclusion.tables.push_back(table_of(trial, data.name(), rows));
  conclusion.charts.push_back(chart_of(trial, data.name(), rows));
  for (const Row& row : rows) {
    if (row.method->top1 == Method::Expected::nothing || row.difference.n < 2) continue;
    conclusion.sentences.push_back(fmt::format(
        "{}: {} ({:.2f} bytes per parameter, float32 {:.2f}): {:+.2f} points [{:+.2f}, {:+.2f}].",
        net, row.method->name, row.mean("master_bytes") + row.mean("state_bytes"),
        rows[0].mean("master_bytes") + rows[0].mean("state_bytes"), row.difference.mean,
        row.difference.low, row.difference.high));
  }
}

}  // namespace numemu::experiments::optimizer_state

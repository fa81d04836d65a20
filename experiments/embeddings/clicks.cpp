// DLRM-like networks trained on clicks, evaluated with the tables of every method.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/squares.hpp"
#include "experiments/embeddings/parts.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::embeddings {
namespace {

constexpr Method kMethods[] = {kSymmetric, kAsymmetric, kGreedy, kGreedySeen,
                               kKmeans,    kTwoTier,    kTable};
constexpr double kMargin = 0.001;  // of AUC: what counts as neutral

struct Plan {
  std::vector<std::string> nets;
  std::vector<std::uint64_t> seeds;
  TrainTrial trial;  ///< without net and seed
};

Plan plan_of(const ExperimentRun& run) {
  Plan plan;
  const Settings& settings = run.settings;
  for (const std::string& width : settings.list("widths")) {
    plan.nets.push_back("dlrm(" + width + ")");
    net::net_kind(plan.nets.back());  // throws for a width that is none
  }
  plan.trial.eval_samples = settings.integer("eval_samples", 0, 1'000'000'000);
  plan.trial.train_samples = settings.integer("train_samples", 0, 1'000'000'000);
  plan.trial.options.epochs = settings.integer("epochs", 1, 10'000);
  plan.trial.options.batch = settings.integer("batch", 1, 100'000);
  plan.seeds = seeds_of(run);
  return plan;
}

/// ||T - Q(T)|| / ||T|| over all tables of the network, and their mean bits per element.
Json table_losses(const net::Graph& graph, const policies::TableRule& rule) {
  double error = 0, signal = 0, bits = 0, elements = 0;
  for (const net::Node& node : graph.nodes) {
    const net::Tensor* const table = net::table_of(node);
    if (table == nullptr) continue;
    const net::Tensor quantized = rule.quantized(*table);
    const float *x = table->data.data(), *y = quantized.data.data();
    signal += stats::sum_of_squares(table->size(), x);
    error += stats::sum_of_squared_differences(table->size(), x, y);
    bits += rule.stored_bits(table->shape);
    elements += static_cast<double>(table->size());
  }
  return {{"loss", std::sqrt(error / signal)}, {"bits", bits / elements}};
}

/// Trains in float32, then evaluates with each method's tables.
Json measure(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const std::vector<const net::Score*> scores = net::scores_for(data, {"auc", "log_loss"});
  const auto evaluated = [&](net::Numerics& numerics) {
    return net::evaluate(graph, data, net::Split::test, trial.eval_samples, numerics, scores);
  };
  const net::Evaluation baseline = evaluated(float32);
  Json methods = Json::array();
  for (const Method& method : kMethods) {
    const policies::Recipe recipe =
        policies::Recipe::parse({{"numemu_recipe", 1}, {"table", method.rule}}, "embeddings");
    policies::RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, 0, {});
    Json result = table_losses(graph, *rule_of(method));
    result["scores"] = scores_json(data, scores, evaluated(numerics), baseline);
    methods.push_back(std::move(result));
  }
  return methods;
}

double number_of(const Json& json) { return json.is_number() ? json.get<double>() : NAN; }

/// What a method loses to float32 in AUC: over seeds by Student's law, of one seed over records.
stats::PairedInterval auc_loss(const std::vector<const Json*>& seeds, std::size_t method) {
  std::vector<double> losses;
  for (const Json* seed : seeds)
    losses.push_back(-number_of(seed->at(method).at("scores").at(0).at("difference")));
  stats::PairedInterval loss = stats::paired_interval(losses);
  if (losses.size() > 1) return loss;
  const Json& ends = seeds[0]->at(method).at("scores").at(0).at("difference_ci95");
  return {loss.mean, -number_of(ends.at(1)), -number_of(ends.at(0)), 1};
}

double mean_of(const std::vector<const Json*>& seeds, std::size_t method, const char* key) {
  double sum = 0;
  for (const Json* seed : seeds) sum += number_of(seed->at(method).at(key));
  return sum / static_cast<double>(seeds.size());
}

double mean_score(const std::vector<const Json*>& seeds, std::size_t method, int score,
                  const char* key) {
  double sum = 0;
  for (const Json* seed : seeds)
    sum += number_of(seed->at(method).at("scores").at(static_cast<std::size_t>(score)).at(key));
  return sum / static_cast<double>(seeds.size());
}

}  // namespace

void add_clicks(const ExperimentRun& run, Conclusion& conclusion) {
  const Plan plan = plan_of(run);
  const net::Dataset data = net::load_dataset("clicks", run.folders.cache);
  std::vector<Trial> trials;
  for (const std::string& net : plan.nets) {
    for (const std::uint64_t seed : plan.seeds) {
      TrainTrial trial = plan.trial;
      trial.net = net;
      trial.seed = seed;
      trial.options.optimizer = net::recommended_optimizer(net);
      net::use_recommended_rates(trial.options, net);
      Json point = point_of(trial, data);
      for (const Method& method : kMethods) point["tables"].push_back(method.rule);
      trials.push_back({std::move(point), fmt::format("{}, seed {}", net, seed),
                        [trial, &data] { return measure(trial, data); }});
    }
  }
  const std::vector<Json> results = run_trials(run, trials);
  ResultTable table{
      fmt::format("4-bit tables of networks trained on clicks, {} seeds", plan.seeds.size()),
      {"network", "method", "bits per element", "% of float32's bytes", "||T - Q(T)|| / ||T||",
       "AUC in float32", "AUC", "AUC lost", "95 % interval", "log loss added"},
      {}};
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title = "AUC lost by 4-bit tables against their size";
  chart.caption =
      "Difference to float32 on the same records, with 95 % intervals (over seeds; of one seed "
      "over "
      "records). All else of the network is float32.";
  chart.x = "stored bits per element";
  chart.y = "AUC lost";
  for (std::size_t n = 0; n < plan.nets.size(); ++n) {
    std::vector<const Json*> seeds;
    for (std::size_t s = 0; s < plan.seeds.size(); ++s)
      seeds.push_back(&results[n * plan.seeds.size() + s]);
    ChartSeries series{plan.nets[n], {}, false};
    for (std::size_t m = 0; m < std::size(kMethods); ++m) {
      const stats::PairedInterval loss = auc_loss(seeds, m);
      const double bits = mean_of(seeds, m, "bits");
      conclusion.findings.push_back(
          interval_finding(fmt::format("AUC lost by {} in {} (at most {} predicted)",
                                       kMethods[m].name, plan.nets[n], kMargin),
                           0, loss.mean, {loss.low, loss.high}, at_most(kMargin)));
      table.rows.push_back({plan.nets[n], kMethods[m].name, fmt::format("{:.2f}", bits),
                            fmt::format("{:.1f}", 100 * bits / 32),
                            fmt::format("{:.4f}", mean_of(seeds, m, "loss")),
                            fmt::format("{:.4f}", mean_score(seeds, m, 0, "baseline")),
                            fmt::format("{:.4f}", mean_score(seeds, m, 0, "value")),
                            fmt::format("{:+.5f}", loss.mean),
                            fmt::format("[{:+.5f}, {:+.5f}]", loss.low, loss.high),
                            fmt::format("{:+.5f}", mean_score(seeds, m, 1, "difference"))});
      series.points.push_back({.x = bits,
                               .name = kMethods[m].name,
                               .y = loss.mean,
                               .low = loss.low,
                               .high = loss.high});
    }
    chart.series.push_back(std::move(series));
  }
  conclusion.about("auc");
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::embeddings

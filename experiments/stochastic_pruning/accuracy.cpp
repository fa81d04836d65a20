// Accuracy against the sparsity that gradients reach in training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/stochastic_pruning/methods.hpp"
#include "experiments/stochastic_pruning/parts.hpp"
#include "experiments/stochastic_pruning/pruned.hpp"
#include "policies/mask/threshold_history.hpp"

namespace numemu::experiments::stochastic_pruning {
namespace {

using policies::MaskPolicy;

/// Distance of the zeros reached from those planned under laws of one moment in training.
constexpr double kPlanHolds = 0.05;

/// Share of zeros in what weight gradients read, by elements and by their products' MACs, once the
/// history is full. Thresholds are those of the run; the draws are others.
class Reached {
 public:
  Reached(const Method& method, std::uint64_t seed) : method_(method), seed_(seed) {}

  void see(const net::Product& product, std::int64_t step) {
    constexpr std::int64_t kEvery = 4;  // steps between two that are counted
    if (product.kind != net::GemmKind::wgrad) return;
    const std::string layer(product.layer);
    const std::vector<float>& g = product.a.source->data;
    const auto n = static_cast<std::int64_t>(g.size());
    const std::string& text = method_.mask_of(layer);
    double threshold = 0;
    Pruning pruning = Pruning::stochastic;
    if (!text.empty()) {
      const MaskPolicy policy = policies::parse_mask(text);
      pruning = policy.rule->unbiased ? Pruning::stochastic : Pruning::hard;
      if (!policy.propagated) threshold = threshold_of(policy, layer, g);
      if (step < policy.history) return;
    }
    if (step % kEvery != 0) return;
    const RandomSource random{seed_, Stream::mask, static_cast<std::uint32_t>(step), 1};
    const PrunedTensor t = prune_and_measure(pruning, g.data(), n, threshold, random);
    const double macs = static_cast<double>(product.m * product.n) *
                        static_cast<double>(product.k * product.a.stack.count());
    zeros_ += static_cast<double>(t.zeros);
    elements_ += static_cast<double>(n);
    idle_macs_ += macs * t.zero_share();
    macs_ += macs;
  }

  Json json() const {
    return {{"zeros", elements_ > 0 ? zeros_ / elements_ : 0},
            {"idle_macs", macs_ > 0 ? idle_macs_ / macs_ : 0}};
  }

 private:
  double threshold_of(const MaskPolicy& policy, const std::string& layer,
                      const std::vector<float>& g) {
    const double own = policy.rule->threshold(policy, g.data(), std::ssize(g));
    if (policy.history == 0) return own;
    policies::ThresholdHistory& history = histories_[layer];
    const double predicted = history.prediction(policy.history).value_or(0);
    history.push(own, policy.history);
    return predicted;
  }

  const Method& method_;
  std::uint64_t seed_;
  std::map<std::string, policies::ThresholdHistory> histories_;
  double zeros_ = 0, elements_ = 0, idle_macs_ = 0, macs_ = 0;
};

Json train(TrainTrial trial, const net::Dataset& data, const Method& method) {
  Reached reached(method, trial.seed);
  trial.before = [&](const net::Product& product, std::int64_t step) {
    reached.see(product, step);
  };
  Json result = {{"outcome", json_of(run_train_trial(trial, data))}};
  result["reached"] = reached.json();
  return result;
}

/// One method over the seeds.
struct Row {
  const Method* method = nullptr;
  std::vector<double> top1;  ///< per cent
  std::vector<double> zeros_of;
  double zeros = 0, idle = 0;
  stats::PairedInterval difference;  ///< to dense
};

/// Without bias little is lost (specs/sparsity.md (e)); with bias more is; sharing zeros between
/// layers may gain on equal p.
std::vector<Finding> judge(const std::string& net, const std::vector<Row>& rows) {
  constexpr double kSmallLoss = 0.5;  // points
  PairedClaims claims;
  const auto gains = [&](const Row& row, const Row& on, const char* claim) {
    claims.add(fmt::format("{}: {} gains on {}", net, row.method->name, on.method->name),
               stats::paired_interval(row.top1, on.top1), 0, claim);
  };
  const Row* equal = nullptr;
  for (const Row& row : rows) {
    if (row.method->series == kShared) {
      if (equal != nullptr) gains(row, *equal, "sharing");
      if (equal == nullptr) equal = &row;
    }
    if (row.method->series != kStochastic) continue;
    claims.add(
        fmt::format("{}: {} loses less than {} points to dense", net, row.method->name, kSmallLoss),
        row.difference, -kSmallLoss, "accuracy");
    for (const Row& hard : rows) {
      if (hard.method->series == kHard && hard.method->share == row.method->share)
        gains(row, hard, "bias");
    }
  }
  return claims.judged();
}

/// Whether plans reach the zeros that they were made for.
std::vector<Finding> judge_plans(const std::string& net, double planned,
                                 const std::vector<Row>& rows) {
  std::vector<Finding> findings;
  for (const Row& row : rows) {
    if (row.method->series != kShared) continue;
    const stats::PairedInterval reached = stats::paired_interval(row.zeros_of);
    findings.push_back(
        interval_finding(fmt::format("{}: zeros reached with {}", net, row.method->name), planned,
                         reached.mean, {reached.low, reached.high}, near(planned, kPlanHolds)));
  }
  return findings;
}

std::string interval_text(const stats::PairedInterval& d) {
  return d.n < 2 ? "(one seed, no interval)" : fmt::format("[{:+.2f}, {:+.2f}]", d.low, d.high);
}

ResultTable table_of(const TrainTrial& trial, const std::string& data,
                     const std::vector<Row>& rows) {
  ResultTable table{fmt::format("{} on {}, {}, {} seeds: gradients pruned for dgrad and wgrad",
                                trial.net, data, trial.options.optimizer, rows[0].top1.size()),
                    {"method", "zeros, %", "idle wgrad MACs, %", "top-1, %", "difference, points",
                     "95 % interval"},
                    {}};
  for (const Row& row : rows) {
    table.rows.push_back({row.method->name, fmt::format("{:.1f}", 100 * row.zeros),
                          fmt::format("{:.1f}", 100 * row.idle),
                          fmt::format("{:.2f}", stats::paired_interval(row.top1).mean),
                          fmt::format("{:+.2f}", row.difference.mean),
                          interval_text(row.difference)});
  }
  return table;
}

/// The share below the threshold that each plan sets for each layer.
ResultTable plan_table(const std::string& net, const std::vector<Method>& methods,
                       const std::vector<ObservedLayer>& layers) {
  ResultTable table{
      fmt::format("{}: share of the non-zero elements below each layer's threshold", net),
      {"layer"},
      {}};
  for (const ObservedLayer& layer : layers) table.rows.push_back({layer.layer});
  for (const Method& method : methods) {
    if (method.layers.empty()) continue;
    table.header.push_back(method.name);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string& mask = method.layers.at(layers[l].layer);
      table.rows[l].push_back(
          mask.empty() ? "dense" : fmt::format("{:.4f}", policies::parse_mask(mask).share));
    }
  }
  return table;
}

Chart chart_of(const std::string& net, const std::string& data, const std::vector<Row>& rows) {
  Chart chart;
  chart.title = fmt::format("Accuracy of {} on {} against gradient sparsity", net, data);
  chart.caption = fmt::format(
      "Difference of top-1 to dense training over {} seeds, with its 95 % interval by Student's t "
      "law paired by seed, against the share of zeros in what weight gradients read. Thresholds "
      "are means of those of the last steps, by the normal law (plans: by the law that they are "
      "made under); everything else float32.",
      rows[0].top1.size());
  chart.x = "zeros, %";
  chart.y = "top-1 difference to dense, points";
  for (const char* const series : {kDense, kStochastic, kHard, kInput, kShared}) {
    ChartSeries drawn{series, {}, false};
    for (const Row& row : rows) {
      if (row.method->series != series) continue;
      const bool apart = row.difference.n > 1 && row.method->series != kDense;
      drawn.points.push_back({.x = 100 * row.zeros,
                              .name = row.method->name,
                              .y = row.difference.mean,
                              .low = apart ? row.difference.low : NAN,
                              .high = apart ? row.difference.high : NAN});
    }
    std::sort(drawn.points.begin(), drawn.points.end(),
              [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    chart.series.push_back(std::move(drawn));
  }
  return chart;
}

void describe(const std::string& net, const std::vector<Row>& rows, Conclusion& conclusion) {
  for (const char* const series : {kStochastic, kHard}) {
    const Row* sparsest = nullptr;
    for (const Row& row : rows) {
      if (row.method->series == series && (sparsest == nullptr || row.zeros > sparsest->zeros))
        sparsest = &row;
    }
    if (sparsest == nullptr) continue;
    conclusion.sentences.push_back(fmt::format(
        "{}: {} leaves {:.0f} % of the gradient zero (dense: {:.0f} %) at {:+.2f} points of top-1 "
        "{}.",
        net, sparsest->method->name, 100 * sparsest->zeros, 100 * rows[0].zeros,
        sparsest->difference.mean, interval_text(sparsest->difference)));
  }
  const Row *equal = nullptr, *best = nullptr;
  for (const Row& row : rows) {
    if (row.method->series != kShared) continue;
    if (equal == nullptr) equal = &row;
    if (best == nullptr || row.difference.mean > best->difference.mean) best = &row;
  }
  if (equal == nullptr) return;
  if (equal->top1.size() < 2) {
    conclusion.sentences.push_back(net + ": one seed does not tell which plan is best.");
    return;
  }
  const stats::PairedInterval gain = stats::paired_interval(best->top1, equal->top1);
  conclusion.sentences.push_back(
      best == equal
          ? fmt::format("{}: no other plan does better than {}.", net, equal->method->name)
          : fmt::format("{}: of the plans, {} does best: {:+.2f} points against {} {}.", net,
                        best->method->name, gain.mean, equal->method->name, interval_text(gain)));
}

}  // namespace

void add_accuracy(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
                  const std::vector<ObservedLayer>& layers, Conclusion& conclusion) {
  const std::vector<std::uint64_t> seeds = seeds_of(run);
  const std::vector<Method> methods = methods_of(run, layers);
  std::vector<Trial> trials;
  for (const Method& method : methods) {
    for (const std::uint64_t seed : seeds) {
      TrainTrial trial = training_of(run.settings, net);
      trial.seed = seed;
      trial.recipe = recipe_of(method);
      Json point = point_of(trial, data);
      point["counted"] = "zeros";
      trials.push_back({point, fmt::format("{}: {}, seed {}", net, method.name, trial.seed),
                        [trial, &data, &method] { return train(trial, data, method); }});
    }
  }
  const std::vector<Json> results = run_trials(run, trials);
  std::vector<Row> rows;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    Row row;
    row.method = &methods[m];
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      const Json& result = results[m * seeds.size() + s];
      row.top1.push_back(100 *
                         read_fields<TrainOutcome>(result.at("outcome"), "trials.jsonl").metric);
      row.zeros_of.push_back(result.at("reached").at("zeros"));
      row.idle +=
          result.at("reached").at("idle_macs").get<double>() / static_cast<double>(seeds.size());
    }
    row.zeros = stats::paired_interval(row.zeros_of).mean;
    row.difference = stats::paired_interval(row.top1, rows.empty() ? row.top1 : rows.front().top1);
    rows.push_back(std::move(row));
  }
  for (const Finding& finding : judge(net, rows)) conclusion.findings.push_back(finding);
  for (const Finding& finding : judge_plans(net, planned_zeros(run, layers), rows))
    conclusion.findings.push_back(finding);
  conclusion.about("plans");
  conclusion.tables.push_back(
      table_of(training_of(run.settings, net), run.settings.text("data"), rows));
  conclusion.tables.push_back(plan_table(net, methods, layers));
  conclusion.charts.push_back(chart_of(net, run.settings.text("data"), rows));
  describe(net, rows, conclusion);
}

}  // namespace numemu::experiments::stochastic_pruning

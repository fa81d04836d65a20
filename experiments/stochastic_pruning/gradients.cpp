// Gradients of a network in training: the effects of pruning under two laws, and measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "experiments/engine/judge.hpp"
#include "experiments/engine/training_study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/stochastic_pruning/parts.hpp"
#include "experiments/stochastic_pruning/pruned.hpp"
#include "experiments/stochastic_pruning/watcher.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::stochastic_pruning {
namespace {

/// Distance of cosines that a law is trusted with.
constexpr double kCosineHolds = 0.02;

Json observe(TrainTrial trial, const net::Dataset& data, const WatchPlan& plan) {
  Watcher watcher(plan);
  trial.before = [&](const net::Product& product, std::int64_t step) {
    watcher.see(product, step);
  };
  const TrainOutcome outcome = run_train_trial(trial, data);
  return {{"outcome", json_of(outcome)}, {"records", watcher.records()}};
}

double at(const Json& record, const char* law, const char* part, const char* key) {
  return record.at(law).at(part).at(key);
}

/// Every model's findings on one tensor, and whether the elements' own expectation holds.
void judge(const Json& record, const std::string& where, Conclusion& conclusion) {
  std::vector<Finding>& findings = conclusion.findings;
  for (const Model& model : kModels) {
    const char* const name = model.name;
    const Estimate zeros{at(record, name, "measured", "zeros"),
                         at(record, name, "expected", "zeros_error")};
    const Estimate error{at(record, name, "measured", "error"),
                         at(record, name, "expected", "error_error")};
    // cosine = (1 + error)^(-1/2) but for what the draws add to the product.
    const Estimate cosine{at(record, name, "measured", "cosine"),
                          error.error / 2 / portable::pow(1 + error.value, 1.5)};
    findings.push_back(model_finding(fmt::format("cosine by the {} law: {}", name, where),
                                     at(record, name, "predicted", "cosine"), cosine.value,
                                     cosine.error, kCosineHolds));
    if (model.cut) continue;
    findings.push_back(model_finding(fmt::format("zeros by the {} law: {}", name, where),
                                     at(record, name, "predicted", "zeros"), zeros.value,
                                     zeros.error, kLawHolds));
    const std::size_t given = findings.size();
    findings.push_back(
        closed_form(fmt::format("zeros given the elements, {} threshold: {}", name, where),
                    at(record, name, "expected", "zeros"), zeros.value, zeros.error));
    findings.push_back(
        closed_form(fmt::format("added variance given the elements, {} threshold: {}", name, where),
                    at(record, name, "expected", "error"), error.value, error.error));
    for (std::size_t i = given; i < findings.size(); ++i) findings[i].claim = "elements";
  }
  conclusion.about("gradients");
}

std::vector<std::string> row_of(const Json& record, const char* law) {
  const auto pair = [&](const char* key) {
    return fmt::format("{:.4f} | {:.4f}", at(record, law, "predicted", key),
                       at(record, law, "measured", key));
  };
  return {record.at("layer"),
          fmt::format("{}", record.at("step").get<std::int64_t>()),
          law,
          fmt::format("{:.3f}", 1 - record.at("nonzero").get<double>()),
          fmt::format("{:.2e}", record.at(law).at("threshold").get<double>()),
          fmt::format("{:.3f}", record.at(law).at("below").get<double>()),
          pair("zeros"),
          pair("error"),
          pair("cosine")};
}

Chart scatter(const Json& records, const std::string& net, double share) {
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title = fmt::format("Zeros of gradients of {}: predicted against measured", net);
  chart.caption = fmt::format(
      "Every point is the output gradient of a layer at one step of float32 training, pruned "
      "stochastically with the threshold that a law puts the share {} of its non-zero elements "
      "below; structural zeros count.",
      share);
  chart.x = "share of zeros by the law's closed form";
  chart.y = "share of zeros measured";
  double low = 1, high = 0;
  for (const Model& model : kModels) {
    if (model.cut) continue;
    ChartSeries series{fmt::format("{} law", model.name), {}, false};
    for (const Json& record : records) {
      const double x = at(record, model.name, "predicted", "zeros");
      series.points.push_back(
          {.x = x,
           .name = fmt::format("{}, step {}", record.at("layer").get<std::string>(),
                               record.at("step").get<std::int64_t>()),
           .y = at(record, model.name, "measured", "zeros")});
      low = std::min(low, x);
      high = std::max(high, x);
    }
    chart.series.push_back(std::move(series));
  }
  chart.series.push_back(
      {"equal", {{.x = low, .name = "", .y = low}, {.x = high, .name = "", .y = high}}, true});
  return chart;
}

Chart over_training(const Json& records, const std::string& net, double share) {
  Chart chart;
  chart.title = fmt::format("Zeros of gradients of {} over training", net);
  chart.caption = fmt::format(
      "Share of zeros after stochastic pruning at p = {} of the non-zero elements, threshold by "
      "the lognormal law; dashed: its closed form.",
      share);
  chart.x = "step";
  chart.y = "share of zeros";
  std::map<std::string, std::pair<ChartSeries, ChartSeries>> layers;
  std::vector<std::string> order;
  for (const Json& record : records) {
    const std::string layer = record.at("layer");
    if (layers.count(layer) == 0) order.push_back(layer);
    auto& [measured, predicted] = layers[layer];
    const double step = record.at("step");
    measured.points.push_back(
        {.x = step, .name = "", .y = at(record, "lognormal", "measured", "zeros")});
    predicted.points.push_back(
        {.x = step, .name = "", .y = at(record, "lognormal", "predicted", "zeros")});
  }
  for (const std::string& layer : order) {
    auto& [measured, predicted] = layers[layer];
    measured.name = layer;
    predicted.name = layer + ", predicted";
    predicted.predicted = true;
    chart.series.push_back(measured);
    chart.series.push_back(predicted);
  }
  return chart;
}

/// How far each law's shares of zeros lie from the measured ones.
struct Distance {
  double sum = 0, largest = 0;
  std::int64_t count = 0;
  void add(double difference) {
    sum += std::fabs(difference);
    largest = std::max(largest, std::fabs(difference));
    ++count;
  }
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

void describe(const Json& records, const std::string& net, double share, std::int64_t history,
              Conclusion& conclusion) {
  std::array<Distance, kModels.size()> of_zeros, of_cosines;
  Distance thresholds, zeros;
  for (const Json& record : records) {
    for (std::size_t m = 0; m < kModels.size(); ++m) {
      const auto miss = [&](const char* key) {
        return at(record, kModels[m].name, "predicted", key) -
               at(record, kModels[m].name, "measured", key);
      };
      of_zeros[m].add(miss("zeros"));
      of_cosines[m].add(miss("cosine"));
    }
    if (!record.contains("history")) continue;
    const Json& h = record["history"];
    thresholds.add(h["threshold"].get<double>() / h["own"].get<double>() - 1);
    zeros.add(h["zeros"].get<double>() - at(record, "normal", "measured", "zeros"));
  }
  conclusion.sentences.push_back(fmt::format(
      "{}: at p = {} the normal law predicts the zeros of a layer's gradient to {:.3f} on average "
      "(worst {:.3f}), the lognormal law to {:.3f} (worst {:.3f}), over {} tensors.",
      net, share, of_zeros[0].mean(), of_zeros[0].largest, of_zeros[1].mean(), of_zeros[1].largest,
      of_zeros[0].count));
  conclusion.sentences.push_back(fmt::format(
      "{}: cosines are predicted to {:.3f} by the normal law, to {:.3f} by the lognormal law, to "
      "{:.3f} by the lognormal law cut at its largest 1/300.",
      net, of_cosines[0].mean(), of_cosines[1].mean(), of_cosines[2].mean()));
  if (thresholds.count > 0) {
    conclusion.sentences.push_back(fmt::format(
        "{}: the mean threshold of the last {} steps is {:.0f} % from the step's own on average "
        "(worst {:.0f} %) and changes the share of zeros by {:.3f} (worst {:.3f}).",
        net, history, 100 * thresholds.mean(), 100 * thresholds.largest, zeros.mean(),
        zeros.largest));
  }
}

}  // namespace

std::vector<ObservedLayer> add_gradients(const ExperimentRun& run, const std::string& net,
                                         const net::Dataset& data, Conclusion& conclusion) {
  WatchPlan plan;
  plan.share = run.settings.number("share", 0.01, 0.999);
  plan.history = run.settings.integer("history", 1, 1000);
  plan.observations = run.settings.integer("observations", 1, 1000);
  plan.seed = run.seed;
  TrainTrial trial = training_of(run.settings, net);
  trial.seed = run.seed;
  const std::int64_t images = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  plan.steps = trial.options.epochs * std::max<std::int64_t>(1, images / trial.options.batch);
  Json point = point_of(trial, data);
  point["observed"] = {
      {"share", plan.share}, {"history", plan.history}, {"observations", plan.observations}};
  const std::vector<Json> results =
      run_trials(run, {{point, fmt::format("{}: gradients over training", net),
                        [&] { return observe(trial, data, plan); }}});
  const Json& records = results[0].at("records");
  if (records.empty()) throw Error(net + ": expected layers with gradients");

  const std::int64_t last = records.back().at("step");
  ResultTable table{fmt::format("{} at p = {}: predicted | measured", net, plan.share),
                    {"layer", "step", "law", "structural zeros", "threshold", "below of non-zeros",
                     "zeros", "added variance / power", "cosine"},
                    {}};
  std::set<std::int64_t> steps;
  for (const Json& record : records) {
    const std::int64_t step = record.at("step");
    steps.insert(step);
    judge(record, fmt::format("{}, {}, step {}", net, record.at("layer").get<std::string>(), step),
          conclusion);
    if (step != last && step != records[0].at("step")) continue;
    for (const Model& model : kModels) table.rows.push_back(row_of(record, model.name));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(scatter(records, net, plan.share));
  conclusion.charts.push_back(over_training(records, net, plan.share));
  describe(records, net, plan.share, plan.history, conclusion);

  const bool normal = run.settings.text("plan_law") == "normal";
  const std::int64_t middle = *std::next(steps.begin(), std::ssize(steps) / 2);
  std::vector<ObservedLayer> layers;
  for (const Json& record : records) {
    if (record.at("step") != middle) continue;
    const Json& fitted = record.at(normal ? "normal" : "lognormal, cut");
    MagnitudeLaw of_layer{normal ? ThresholdLaw::normal : ThresholdLaw::lognormal,
                          fitted.at("scale"), fitted.at("spread"), record.at("nonzero")};
    if (fitted.at("cut").is_number()) of_layer.cut = fitted.at("cut");
    layers.push_back({record.at("layer"), {of_layer, record.at("n"), 1}});
  }
  std::reverse(layers.begin(), layers.end());  // weight gradients come from the last layer on
  return layers;
}

}  // namespace numemu::experiments::stochastic_pruning

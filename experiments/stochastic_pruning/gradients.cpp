// Gradients of a network in training: the effects of pruning under two laws, and measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "policies/mask/prune.hpp"

namespace numemu::experiments::stochastic_pruning {
namespace {

/// Distance of cosines that a law is trusted with.
constexpr double kCosineHolds = 0.02;

/// A law, and whether its second moments leave out the largest elements: which changes its
/// errors and cosines, not its zeros.
struct Model {
  const char* name;
  ThresholdLaw law;
  bool cut;
};
inline constexpr std::array<Model, 3> kModels = {
    {{"normal", ThresholdLaw::normal, false},
     {"lognormal", ThresholdLaw::lognormal, false},
     {"lognormal, cut", ThresholdLaw::lognormal, true}}};

/// What is looked at, and when.
struct WatchPlan {
  double share = 0;
  std::int64_t history = 0, observations = 0, steps = 0;
  std::uint64_t seed = 0;

  bool observes(std::int64_t step) const {
    return step == 0 || step * observations / steps != (step - 1) * observations / steps;
  }
};

/// What pruning makes of a gradient.
struct Effects {
  double zeros = 0, error = 0, cosine = 0;
  static void fields(auto& self, const auto& visit) {
    visit("zeros", self.zeros);
    visit("error", self.error);
    visit("cosine", self.cosine);
  }
};

/// Given the elements: expectations over the draws, and their deviations.
struct Expected {
  double zeros = 0, zeros_error = 0, error = 0, error_error = 0;
  static void fields(auto& self, const auto& visit) {
    visit("zeros", self.zeros);
    visit("zeros_error", self.zeros_error);
    visit("error", self.error);
    visit("error_error", self.error_error);
  }
};

/// Of one model: its fit, the share of non-zeros below its threshold, and what pruning there does.
struct OfModel {
  double scale = 0, spread = 0, cut = 0, threshold = 0, below = 0;
  Effects predicted;
  Expected expected;
  Effects measured;
  static void fields(auto& self, const auto& visit) {
    visit("scale", self.scale);
    visit("spread", self.spread);
    visit("cut", self.cut);
    visit("threshold", self.threshold);
    visit("below", self.below);
    visit("predicted", self.predicted);
    visit("expected", self.expected);
    visit("measured", self.measured);
  }
};

/// The threshold predicted from the last steps beside the step's own, and its zeros.
struct History {
  double threshold = 0, own = 0, zeros = 0;
  static void fields(auto& self, const auto& visit) {
    visit("threshold", self.threshold);
    visit("own", self.own);
    visit("zeros", self.zeros);
  }
};

/// The gradient of a layer at an observed step.
struct Record {
  std::int64_t step = 0;
  std::string layer;
  std::int64_t n = 0;
  double nonzero = 0;
  std::array<OfModel, kModels.size()> of = {};
  std::optional<History> history = {};

  const OfModel& normal() const { return of[0]; }
  const OfModel& lognormal() const { return of[1]; }
  const OfModel& cut() const { return of[2]; }
  static void fields(auto& self, const auto& visit) {
    visit("step", self.step);
    visit("layer", self.layer);
    visit("n", self.n);
    visit("nonzero", self.nonzero);
    for (std::size_t m = 0; m < kModels.size(); ++m) visit(kModels[m].name, self.of[m]);
    visit("history", self.history);
  }
};

struct Measured {
  TrainOutcome outcome;
  std::vector<Record> records;
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("records", self.records);
  }
};

OfModel of_model(const Model& model, double share, std::span<const float> g,
                 const RandomSource& random) {
  const auto n = static_cast<std::int64_t>(g.size());
  MagnitudeLaw fitted = fit_law(model.law, g.data(), n);
  if (model.cut) fitted = with_cut(fitted, g.data(), n);
  const double threshold = threshold_below(fitted, share);
  const PruningEffect effect = stochastic_pruning::effect(Pruning::stochastic, fitted, threshold);
  const PrunedTensor t = prune_and_measure(Pruning::stochastic, g.data(), n, threshold, random);
  const double count = static_cast<double>(n), squares = t.squares;
  return {.scale = fitted.scale,
          .spread = fitted.spread,
          .cut = fitted.cut,
          .threshold = threshold,
          .below = static_cast<double>(t.below) / (count * fitted.nonzero),
          .predicted = {effect.zeros, effect.error, effect.cosine},
          .expected = {t.expected_zeros.value / count, t.expected_zeros.error / count,
                       t.expected_error.value / squares, t.expected_error.error / squares},
          .measured = {t.zero_share(), t.relative_error(), t.cosine()}};
}

/// Weight gradients' left operands: what models say pruning does to them, and what it does.
Measured observe(TrainTrial trial, const net::Dataset& data, const WatchPlan& plan) {
  Measured measured;
  std::map<std::string, policies::ThresholdHistory> histories;
  trial.before = [&](const net::Product& product, std::int64_t step) {
    if (product.kind != net::GemmKind::wgrad) return;
    const std::string layer(product.layer);
    const net::Elements& g = product.a.source->data;
    const auto n = static_cast<std::int64_t>(g.size());
    policies::ThresholdHistory& history = histories[layer];
    const MagnitudeLaw normal = fit_law(ThresholdLaw::normal, g.data(), n);
    const double own = threshold_below(normal, plan.share);
    if (plan.observes(step) && normal.usable()) {
      Record record{.step = step, .layer = layer, .n = n, .nonzero = normal.nonzero};
      const RandomSource random{plan.seed, Stream::mask,
                                tensor_word(fmt::format("{}/observed/{}", layer, step)), 0};
      for (std::size_t m = 0; m < kModels.size(); ++m)
        record.of[m] = of_model(kModels[m], plan.share, g, random);
      if (const auto predicted = history.prediction(plan.history)) {
        const PrunedTensor t =
            prune_and_measure(Pruning::stochastic, g.data(), n, *predicted, random);
        record.history = {*predicted, own, t.zero_share()};
      }
      measured.records.push_back(std::move(record));
    }
    history.push(own, plan.history);
  };
  measured.outcome = run_train_trial(trial, data);
  return measured;
}

/// Every model's findings on one tensor, and whether the elements' own expectation holds.
void judge(const Record& record, const std::string& where, Conclusion& conclusion) {
  for (std::size_t m = 0; m < kModels.size(); ++m) {
    const char* const name = kModels[m].name;
    const OfModel& of = record.of[m];
    // cosine = (1 + error)^(-1/2) but for what the draws add to the product.
    const double cosine_error =
        of.expected.error_error / 2 / portable::pow(1 + of.measured.error, 1.5);
    conclusion.add(
        model_finding(fmt::format("cosine by the {} law: {}", name, where), of.predicted.cosine,
                      of.measured.cosine, cosine_error, kCosineHolds),
        "gradients");
    if (kModels[m].cut) continue;
    conclusion.add(
        model_finding(fmt::format("zeros by the {} law: {}", name, where), of.predicted.zeros,
                      of.measured.zeros, of.expected.zeros_error, kLawHolds),
        "gradients");
    conclusion.add(
        closed_form(fmt::format("zeros given the elements, {} threshold: {}", name, where),
                    of.expected.zeros, of.measured.zeros, of.expected.zeros_error),
        "elements");
    conclusion.add(
        closed_form(fmt::format("added variance given the elements, {} threshold: {}", name, where),
                    of.expected.error, of.measured.error, of.expected.error_error),
        "elements");
  }
}

std::vector<std::string> row_of(const Record& record, std::size_t m) {
  const OfModel& of = record.of[m];
  const auto pair = [&](double Effects::*what) {
    return fmt::format("{:.4f} | {:.4f}", of.predicted.*what, of.measured.*what);
  };
  return {record.layer,
          fmt::format("{}", record.step),
          kModels[m].name,
          fmt::format("{:.3f}", 1 - record.nonzero),
          fmt::format("{:.2e}", of.threshold),
          fmt::format("{:.3f}", of.below),
          pair(&Effects::zeros),
          pair(&Effects::error),
          pair(&Effects::cosine)};
}

Chart scatter(const std::vector<Record>& records, const std::string& net, double share) {
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
  for (std::size_t m = 0; m < kModels.size(); ++m) {
    if (kModels[m].cut) continue;
    ChartSeries series{fmt::format("{} law", kModels[m].name), {}, false};
    for (const Record& record : records) {
      const double x = record.of[m].predicted.zeros;
      series.points.push_back({.x = x,
                               .name = fmt::format("{}, step {}", record.layer, record.step),
                               .y = record.of[m].measured.zeros});
      low = std::min(low, x);
      high = std::max(high, x);
    }
    chart.series.push_back(std::move(series));
  }
  chart.series.push_back(
      {"equal", {{.x = low, .name = "", .y = low}, {.x = high, .name = "", .y = high}}, true});
  return chart;
}

Chart over_training(const std::vector<Record>& records, const std::string& net, double share) {
  Chart chart{.title = fmt::format("Zeros of gradients of {} over training", net),
              .caption = fmt::format(
                  "Share of zeros after stochastic pruning at p = {} of the non-zero elements, "
                  "threshold by the lognormal law; dashed: its closed form.",
                  share),
              .x = "step",
              .y = "share of zeros"};
  for (const Record& record : records) {
    const auto step = static_cast<double>(record.step);
    chart.of(record.layer).points.push_back({.x = step, .y = record.lognormal().measured.zeros});
    chart.of(record.layer + ", predicted", true)
        .points.push_back({.x = step, .y = record.lognormal().predicted.zeros});
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

void describe(const std::vector<Record>& records, const std::string& net, double share,
              std::int64_t history, Conclusion& conclusion) {
  std::array<Distance, kModels.size()> of_zeros, of_cosines;
  Distance thresholds, zeros;
  for (const Record& record : records) {
    for (std::size_t m = 0; m < kModels.size(); ++m) {
      const OfModel& of = record.of[m];
      of_zeros[m].add(of.predicted.zeros - of.measured.zeros);
      of_cosines[m].add(of.predicted.cosine - of.measured.cosine);
    }
    if (!record.history) continue;
    thresholds.add(record.history->threshold / record.history->own - 1);
    zeros.add(record.history->zeros - record.normal().measured.zeros);
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
  plan.share = run.settings.number("share");
  plan.history = run.settings.integer("history");
  plan.observations = run.settings.integer("observations");
  plan.seed = run.seed;
  TrainTrial trial = training_of(run.settings, net);
  trial.seed = run.seed;
  const std::int64_t images = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  plan.steps = trial.options.epochs * std::max<std::int64_t>(1, images / trial.options.batch);
  Json point = point_of(trial, data);
  point["observed"] = {
      {"share", plan.share}, {"history", plan.history}, {"observations", plan.observations}};
  const std::vector<Record> records =
      run_typed<Measured>(run, {{point, fmt::format("{}: gradients over training", net),
                                 [&] { return observe(trial, data, plan); }}})[0]
          .records;
  if (records.empty()) throw Error(net + ": expected layers with gradients");

  const std::int64_t last = records.back().step;
  ResultTable table{fmt::format("{} at p = {}: predicted | measured", net, plan.share),
                    {"layer", "step", "law", "structural zeros", "threshold", "below of non-zeros",
                     "zeros", "added variance / power", "cosine"},
                    {}};
  std::set<std::int64_t> steps;
  for (const Record& record : records) {
    steps.insert(record.step);
    judge(record, fmt::format("{}, {}, step {}", net, record.layer, record.step), conclusion);
    if (record.step != last && record.step != records[0].step) continue;
    for (std::size_t m = 0; m < kModels.size(); ++m) table.rows.push_back(row_of(record, m));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(scatter(records, net, plan.share));
  conclusion.charts.push_back(over_training(records, net, plan.share));
  describe(records, net, plan.share, plan.history, conclusion);

  const bool normal = run.settings.text("plan_law") == "normal";
  const std::int64_t middle = *std::next(steps.begin(), std::ssize(steps) / 2);
  std::vector<ObservedLayer> layers;
  for (const Record& record : records) {
    if (record.step != middle) continue;
    const OfModel& fitted = normal ? record.normal() : record.cut();
    MagnitudeLaw of_layer{normal ? ThresholdLaw::normal : ThresholdLaw::lognormal, fitted.scale,
                          fitted.spread, record.nonzero};
    if (std::isfinite(fitted.cut)) of_layer.cut = fitted.cut;
    layers.push_back({record.layer, {of_layer, static_cast<double>(record.n), 1}});
  }
  std::reverse(layers.begin(), layers.end());  // weight gradients come from the last layer on
  return layers;
}

}  // namespace numemu::experiments::stochastic_pruning

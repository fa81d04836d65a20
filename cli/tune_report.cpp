#include "cli/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "emu/net/at_layer.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/load_network.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/report/decimals.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kNoiseSamples = 64;
constexpr int kDigits = 6;

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kDigits);
}

std::string decibel_text(double db) { return std::isfinite(db) ? fmt::format("{:.2f}", db) : "-"; }

double top1(const net::Evaluation& metrics) {
  return static_cast<double>(metrics.correct) / static_cast<double>(metrics.n);
}

Json ends_json(const std::optional<double>& low, const std::optional<double>& high) {
  return {number(low.value_or(NAN)), number(high.value_or(NAN))};
}

}  // namespace

TuneReport::TuneReport(const net::Dataset& dataset, const TuneSamples& samples, bool quiet)
    : dataset_(dataset), samples_(samples), quiet_(quiet) {
  std::vector<std::string> names;
  for (const net::Score* score : experiments::judged_scores(dataset))
    names.emplace_back(score->name);
  scores_ = net::scores_for(dataset, names);
}

experiments::JudgedFigure TuneReport::judged(const net::Evaluation& own,
                                             const net::Evaluation& other) const {
  return experiments::judged_of(dataset_, scores_, own, other);
}

Json TuneReport::metrics_json(const std::optional<net::Evaluation>& metrics) const {
  if (!metrics) return nullptr;
  Json json = {{"n", metrics->n}, {"loss", number(metrics->loss)}};
  if (metrics->n == 0) return json;
  const bool itself = &*metrics == &*float32_;
  if (const experiments::JudgedFigure figure = judged(*metrics, *float32_);
      !figure.measure->is_top1()) {
    json["metric"] = figure.measure->name;
    json["value"] = number(figure.value.value_or(NAN));
    json["value_ci95"] = ends_json(figure.low, figure.high);
    if (!itself) {
      json["change"] = number(figure.difference.value_or(NAN));
      json["change_ci95"] = ends_json(figure.difference_low, figure.difference_high);
    }
  }
  if (dataset_.target() != net::TargetKind::classes) return json;
  const experiments::Top1Intervals ci =
      experiments::top1_intervals(dataset_, *metrics, *float32_,
                                  experiments::scores_json(dataset_, scores_, *metrics, *float32_));
  json["top1"] = number(top1(*metrics));
  json["ci95"] = {number(ci.top1.low), number(ci.top1.high)};
  if (itself) return json;
  json["difference"] = number(top1(*metrics) - top1(*float32_));
  json["difference_ci95"] = {number(ci.difference.low), number(ci.difference.high)};
  return json;
}

TuneSamples tune_samples(const net::Graph& graph, const net::Dataset& dataset, std::int64_t images,
                         std::int64_t beside) {
  TuneSamples samples;
  experiments::require_bench_memory(graph, graph, dataset, images, beside, kNoiseSamples);
  const std::int64_t most = std::min(kNoiseSamples, experiments::reference_count(graph, dataset));
  const std::int64_t available = dataset.validation_count();
  if (available == 0) samples.split = net::Split::calibration;
  samples.noise = std::min(most, available > 0 ? available : dataset.calibration_count());
  if (dataset.target() != net::TargetKind::none) samples.metrics = std::min(images, available);
  return samples;
}

std::optional<net::Evaluation> TuneReport::evaluated(const net::Graph& graph,
                                                     net::Numerics& numerics) const {
  if (samples_.metrics == 0) return std::nullopt;
  return net::evaluate(graph, dataset_, samples_.split, samples_.metrics, numerics, scores_);
}

TuneReport::Figures TuneReport::measure(const net::Graph& graph, net::Numerics& numerics) const {
  return {evaluated(graph, numerics), experiments::measure_layers(graph, numerics, reference_)};
}

void TuneReport::refer_to(const net::Graph& reference) {
  net::Targets targets;
  reference_ = {};  // not beside the new one
  reference_ = policies::float_reference(
      reference, samples_.split == net::Split::validation
                     ? dataset_.validation_batch(0, samples_.noise, targets)
                     : dataset_.calibration_batch(0, samples_.noise, targets));
}

void TuneReport::before(const policies::Tuning& tuning) {
  if (!quiet_) say("measuring before the first step");
  refer_to(tuning.reference);
  net::Numerics float32;
  float32_ = evaluated(tuning.reference, float32);
  before_ = measure(tuning.graph, *policies::tuned_numerics(tuning));
  layers_ = net::gemm_layer_names(tuning.graph);
}

void TuneReport::after(const policies::Tuning& tuning, const std::string& checkpoint) {
  if (!quiet_) say("measuring the checkpoint");
  // As eval reads it.
  const net::Graph graph = net::load_network(checkpoint, dataset_).graph;
  policies::RecipeNumerics numerics(
      policies::with_checkpoint_ranges(tuning.recipe, checkpoint, tuning.where), graph,
      tuning.where);
  numerics.freeze(graph, dataset_.calibration_count(), tuning.calibration.batch);
  refer_to(tuning.reference);  // whose layers a step may have scaled or rotated
  after_ = measure(graph, numerics);
}

void TuneReport::step(const std::string& text, const std::string& summary) {
  steps_.emplace_back(text, summary);
}

Json TuneReport::json() const {
  Json json;
  for (const auto& [text, summary] : steps_)
    json["steps"].push_back({{"step", text}, {"done", summary}});
  json["notes"] = notes_;
  json["split"] = samples_.split == net::Split::validation ? "validation" : "calibration";
  json["noise_samples"] = samples_.noise;
  json["metrics"] = {{"float32", metrics_json(float32_)},
                     {"before", metrics_json(before_.metrics)},
                     {"after", metrics_json(after_.metrics)}};
  json["output_db"] = {{"before", number(before_.noise.output.db)},
                       {"after", number(after_.noise.output.db)}};
  json["layers"] = Json::array();
  for (const std::string& layer : layers_)
    json["layers"].push_back({{"name", layer},
                              {"before_db", number(net::at_layer(before_.noise.db, layer))},
                              {"after_db", number(net::at_layer(after_.noise.db, layer))}});
  return json;
}

std::string TuneReport::text() const {
  std::string text;
  for (const auto& [step, summary] : steps_)
    text += fmt::format("{}: {}\n", harmless(step), harmless(summary));
  for (const std::string& note : notes_) text += fmt::format("note: {}\n", harmless(note));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& layer : layers_)
    rows.push_back({layer, decibel_text(net::at_layer(before_.noise.db, layer)),
                    decibel_text(net::at_layer(after_.noise.db, layer))});
  rows.push_back(
      {"output", decibel_text(before_.noise.output.db), decibel_text(after_.noise.output.db)});
  const bool validation = samples_.split == net::Split::validation;
  text += fmt::format("\nSQNR in dB on {} {} samples\n{}", samples_.noise,
                      validation ? "validation" : "calibration",
                      text_table({"layer", "before", "after"}, rows));
  if (!float32_) return text + "\n";
  rows.clear();
  const experiments::JudgedFigure gain = judged(*after_.metrics, *before_.metrics);
  const experiments::Measure& measure = *gain.measure;
  const auto change = [&](const experiments::JudgedFigure& of) {
    return experiments::interval_text(measure, of.difference_low, of.difference_high, true);
  };
  const auto add = [&](const char* name, const net::Evaluation& metrics) {
    const experiments::JudgedFigure of = judged(metrics, *float32_);
    const bool itself = &metrics == &*float32_;
    rows.push_back({name, experiments::figure_text(measure, of.value),
                    experiments::interval_text(measure, of.low, of.high),
                    itself ? "-" : experiments::figure_text(measure, of.difference, true),
                    itself ? "-" : change(of), experiments::decimal_text(metrics.loss, 4)});
  };
  add("float32", *float32_);
  add("before", *before_.metrics);
  add("after", *after_.metrics);
  const std::string unit = measure.factor == 100 ? "points" : measure.prefix;
  return text + fmt::format(
                    "\n{} validation samples{}; changes from float32 are paired\n{}"
                    "the steps changed {} by {}{}{}, 95 % interval {}\n\n",
                    float32_->samples, samples_.unread ? ", which no step read" : "",
                    text_table({"network", experiments::value_title(measure), "95 %", "change",
                                "95 %", "loss"},
                               rows),
                    measure.words, experiments::figure_text(measure, gain.difference, true),
                    unit.empty() ? "" : " ", unit, change(gain));
}

}  // namespace numemu::cli

#include "api/task_metrics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "api/text/table.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "policies/canonical_json.hpp"

namespace numemu::api {
namespace {

Json digits_of(double value) {
  constexpr int kDigits = 6;
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kDigits);
}

Json ends_json(const std::optional<double>& low, const std::optional<double>& high) {
  return {digits_of(low.value_or(NAN)), digits_of(high.value_or(NAN))};
}

}  // namespace

std::vector<net::OutputScore> task_scores(const Dataset& dataset) {
  std::vector<std::string> names;
  for (const net::OutputScore& score : experiments::judged_scores(dataset))
    names.emplace_back(score->name);
  return net::scores_for(dataset, names);
}

TaskMetrics metrics_of(const Dataset& dataset, const std::vector<net::OutputScore>& scores,
                       const Evaluation& own, const Evaluation& float32) {
  TaskMetrics out{own.n, own.loss, experiments::judged_of(dataset, scores, own, float32)};
  if (own.n == 0 || dataset.target() != net::TargetKind::classes) return out;
  const experiments::Top1Intervals intervals = experiments::top1_intervals(
      dataset, own, float32, experiments::scores_of(dataset, scores, own, float32));
  const auto top1 = [](const Evaluation& of) {
    return static_cast<double>(of.correct) / static_cast<double>(of.n);
  };
  out.top1 = {top1(own), top1(own) - top1(float32), intervals.top1, intervals.difference};
  return out;
}

Json metrics_json(const std::optional<TaskMetrics>& metrics, bool itself) {
  if (!metrics) return nullptr;
  Json json = {{"n", metrics->n}, {"loss", digits_of(metrics->loss)}};
  if (metrics->n == 0) return json;
  if (const experiments::JudgedFigure& figure = metrics->figure; !figure.measure->is_top1()) {
    json["metric"] = figure.measure->name;
    json["value"] = digits_of(figure.value.value_or(NAN));
    json["value_ci95"] = ends_json(figure.low, figure.high);
    if (!itself) {
      json["change"] = digits_of(figure.difference.value_or(NAN));
      json["change_ci95"] = ends_json(figure.difference_low, figure.difference_high);
    }
  }
  if (!metrics->top1) return json;
  const TaskMetrics::Top1& top1 = *metrics->top1;
  json["top1"] = digits_of(top1.value);
  json["ci95"] = {digits_of(top1.interval.low), digits_of(top1.interval.high)};
  if (itself) return json;
  json["difference"] = digits_of(top1.difference);
  json["difference_ci95"] = {digits_of(top1.difference_interval.low),
                             digits_of(top1.difference_interval.high)};
  return json;
}

std::string metrics_table(const std::vector<std::pair<std::string, const TaskMetrics*>>& networks) {
  const experiments::Measure& measure = *networks.front().second->figure.measure;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, metrics] : networks) {
    const experiments::JudgedFigure& of = metrics->figure;
    const bool itself = metrics == networks.front().second;
    rows.push_back(
        {name, experiments::figure_text(measure, of.value),
         experiments::interval_text(measure, of.low, of.high),
         itself ? "-" : experiments::figure_text(measure, of.difference, true),
         itself ? "-"
                : experiments::interval_text(measure, of.difference_low, of.difference_high, true),
         experiments::decimal_text(metrics->loss, 4)});
  }
  return text_table(
      {"network", experiments::value_title(measure), "95 %", "change", "95 %", "loss"}, rows);
}

std::string gain_text(const std::string& what, const experiments::JudgedFigure& gain) {
  const experiments::Measure& measure = *gain.measure;
  const std::string unit = measure.factor == 100 ? "points" : measure.prefix;
  return fmt::format(
      "{} changed {} by {}{}{}, 95 % interval {}", what, measure.words,
      experiments::figure_text(measure, gain.difference, true), unit.empty() ? "" : " ", unit,
      experiments::interval_text(measure, gain.difference_low, gain.difference_high, true));
}

}  // namespace numemu::api

#include "api/text/metrics_table.hpp"

#include <fmt/format.h>

#include "api/text/table.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"

namespace numemu::api {

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

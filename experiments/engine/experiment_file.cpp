#include "experiments/engine/experiment_file.hpp"

#include <algorithm>
#include <utility>

namespace numemu::experiments {
namespace {

Member<double> finite(double value) {
  return std::isfinite(value) ? Member<double>(value) : Member<double>::null();
}

}  // namespace

ChartSeries& Chart::of(const std::string& name, bool predicted) {
  for (ChartSeries& one : series)
    if (one.name == name) return one;
  series.push_back({name, {}, predicted});
  return series.back();
}

void Chart::add(const std::string& name, ChartPoint measured, ChartPoint predicted) {
  of(name + " measured").points.push_back(std::move(measured));
  of(name + " predicted", true).points.push_back(std::move(predicted));
}

ChartRow chart_row(const Chart& chart) {
  ChartRow row{.kind = chart.kind == Chart::Kind::line     ? "line"
                       : chart.kind == Chart::Kind::points ? "points"
                                                           : "bars",
               .title = chart.title,
               .caption = chart.caption,
               .x = chart.x,
               .y = chart.y,
               .log_x = chart.log_x,
               .log_y = chart.log_y,
               .series = {}};
  for (const ChartSeries& series : chart.series) {
    ChartSeriesRow& one = row.series.emplace_back();
    one.name = series.name;
    one.predicted = series.predicted;
    for (const ChartPoint& point : series.points) {
      one.points.push_back({point.name, finite(point.x), finite(point.y), {}});
      if (std::isfinite(point.low) && std::isfinite(point.high))
        one.points.back().ci95 = Ends{point.low, point.high};
    }
  }
  return row;
}

VerdictCounts ClaimRow::counts() const {
  const auto count = [](std::int64_t n) {
    return static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
  };
  return {count(holds), count(undecided), count(fails)};
}

ExperimentFile read_experiment(const Json& json) {
  FieldLog log;
  return read_known<ExperimentFile>(json, log);
}

}  // namespace numemu::experiments

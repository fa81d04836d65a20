#include "experiments/engine/experiment_file.hpp"

#include <algorithm>
#include <utility>

namespace numemu {

using experiments::Chart;

namespace {

constexpr std::pair<Chart::Kind, const char*> kKinds[] = {
    {Chart::Kind::line, "line"}, {Chart::Kind::points, "points"}, {Chart::Kind::bars, "bars"}};

}  // namespace

Json FieldCodec<Chart::Kind>::write(Chart::Kind kind) {
  for (const auto& [known, name] : kKinds)
    if (known == kind) return name;
  return {};
}

bool FieldCodec<Chart::Kind>::read(const Json& json, Chart::Kind& kind) {
  if (!json.is_string()) return false;
  kind = Chart::Kind::line;
  for (const auto& [known, name] : kKinds)
    if (json.text() == name) kind = known;
  return true;
}

}  // namespace numemu

namespace numemu::experiments {

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

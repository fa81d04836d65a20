// Charts as experiment.json holds them: what is not finite is null, what has no name is unnamed.
#include "experiments/engine/chart.hpp"

namespace numemu::experiments {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

const char* to_string(Chart::Kind kind) {
  return kind == Chart::Kind::line ? "line" : kind == Chart::Kind::points ? "points" : "bars";
}

Json point_json(const ChartPoint& point) {
  Json json = Json::object();
  if (!point.name.empty()) json["name"] = point.name;
  json["x"] = number(point.x);
  json["y"] = number(point.y);
  if (std::isfinite(point.low) && std::isfinite(point.high)) json["ci95"] = {point.low, point.high};
  return json;
}

}  // namespace

Json to_json(const Chart& chart) {
  Json series = Json::array();
  for (const ChartSeries& one : chart.series) {
    Json points = Json::array();
    for (const ChartPoint& point : one.points) points.push_back(point_json(point));
    series.push_back({{"name", one.name}, {"predicted", one.predicted}, {"points", points}});
  }
  return {{"kind", to_string(chart.kind)},
          {"title", chart.title},
          {"caption", chart.caption},
          {"x", chart.x},
          {"y", chart.y},
          {"log_x", chart.log_x},
          {"log_y", chart.log_y},
          {"series", series}};
}

}  // namespace numemu::experiments

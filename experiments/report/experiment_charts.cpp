// The charts of experiment.json, made ready to be drawn: what cannot be drawn is left out here, so
// that the page's script has nothing to check.
#include "experiments/report/experiment_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/report/escape.hpp"
#include "experiments/report/record.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kDensePoints = 12;  // from here on error bars would hide the line

const Json& list_at(const Json& json, const char* key) {
  static const Json none = Json::array();
  const Json* found = json_at(json, {key});
  return found && found->is_array() ? *found : none;
}

bool flag(const Json& json, const char* key) { return json_text(json, {key}) == "true"; }

struct Axes {
  bool bars, log_x, log_y;

  bool draws(std::optional<double> x, std::optional<double> y) const {
    return (bars || (x && (!log_x || *x > 0))) && y && (!log_y || *y > 0);
  }
};

/// The series' points that can be drawn; `least` gets the smallest value of them.
Json records_of(const Json& series, const Axes& axes, double& least) {
  Json records = Json::array();
  for (const Json& point : list_at(series, "points")) {
    const std::optional<double> x = json_number(point, {"x"}), y = json_number(point, {"y"});
    if (!axes.draws(x, y)) continue;
    const Json& ends = list_at(point, "ci95");
    const bool interval = ends.size() == 2 && ends[0].is_number() && ends[1].is_number() &&
                          (!axes.log_y || ends[1].get<double>() > 0);
    least = std::min(least, *y);
    if (interval && ends[0].get<double>() > 0) least = std::min(least, ends[0].get<double>());
    records.push_back({{"series", json_text(series, {"name"})},
                       {"predicted", flag(series, "predicted")},
                       {"name", json_text(point, {"name"})},
                       {"x", axes.bars ? Json() : Json(*x)},
                       {"y", *y},
                       {"low", interval ? ends[0] : Json()},
                       {"high", interval ? ends[1] : Json()}});
  }
  for (Json& record : records) record["dense"] = records.size() > kDensePoints;
  return records;
}

/// "conv1, predicted" -> "conv1".
std::string stem(std::string name) {
  for (const std::string word : {"measured", "predicted"}) {
    if (const std::size_t at = name.find(word); at != name.npos) name.erase(at, word.size());
  }
  const auto first = name.find_first_not_of(" ,:()"), last = name.find_last_not_of(" ,:()");
  return first == name.npos ? "" : name.substr(first, last + 1 - first);
}

Json ready(const Json& chart) {
  const std::string kind = json_text(chart, {"kind"});
  const Axes axes{kind == "bars", flag(chart, "log_x"), flag(chart, "log_y")};
  double least = HUGE_VAL;
  std::map<std::string, std::pair<std::size_t, std::string>> groups;  // colour and name by stem
  Json series = Json::array(), records = Json::array();
  for (const Json& one : list_at(chart, "series")) {
    const Json drawn = records_of(one, axes, least);
    if (drawn.empty()) continue;
    const std::string name = json_text(one, {"name"});
    const std::string of = stem(name);
    const auto& [colour, group] =
        groups.emplace(of, std::pair(groups.size(), of.empty() ? name : of)).first->second;
    series.push_back({{"name", name},
                      {"predicted", flag(one, "predicted")},
                      {"colour", colour},
                      {"group", group}});
    for (const Json& record : drawn) records.push_back(record);
  }
  for (Json& record : records) {
    if (axes.log_y && !record["low"].is_null())
      record["low"] = std::max(least, record["low"].get<double>());
  }
  return {{"kind", axes.bars || kind == "points" ? kind : "line"},
          {"title", json_text(chart, {"title"})},
          {"caption", json_text(chart, {"caption"})},
          {"x", json_text(chart, {"x"})},
          {"y", json_text(chart, {"y"})},
          {"log_x", axes.log_x},
          {"log_y", axes.log_y},
          {"series", series},
          {"records", records}};
}

}  // namespace

Json experiment_charts(const Json* experiment) {
  Json charts = Json::array();
  if (!experiment) return charts;
  for (const Json& chart : list_at(*experiment, "charts")) {
    Json one = ready(chart);
    if (!one["records"].empty()) charts.push_back(std::move(one));
  }
  return charts;
}

std::string experiment_figures(const Json& charts) {
  std::string out;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    out += fmt::format(
        "<figure id=\"fig-e{0}\"><div class=\"plot\" data-chart=\"experiment\" data-number=\"{1}\">"
        "</div><figcaption><b>Figure E{0}. {2}.</b> {3}</figcaption></figure>\n",
        i + 1, i, html_text(charts[i]["title"].get<std::string>()),
        html_text(charts[i]["caption"].get<std::string>()));
  }
  return out.empty() ? "" : "<div class=\"figures\">" + out + "</div>";
}

}  // namespace numemu::experiments

#include "experiments/report/row_scores.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu::experiments {
namespace {

template <class Use>
void each_score(const Record& record, const Use& use) {
  const Json* const scores = record.row == nullptr ? nullptr : record.row->find_path("/scores");
  if (scores == nullptr || !scores->is_array()) return;
  for (const Json& score : *scores) {
    if (score.is_object() && score.contains("name") && score["name"].is_string())
      use(score, score["name"].get<std::string>());
  }
}

}  // namespace

std::vector<std::string> score_columns(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& record : records) {
    each_score(record, [&](const Json&, const std::string& name) {
      if (name != "top1" && std::count(names.begin(), names.end(), name) == 0)
        names.push_back(name);
    });
  }
  return names;
}

std::optional<double> score_number(const Record& record, const std::string& name, const char* key,
                                   std::optional<std::size_t> side) {
  std::optional<double> found;
  each_score(record, [&](const Json& score, const std::string& own) {
    if (own != name || !score.contains(key)) return;
    const Json* value = &score[key];
    if (side) value = value->is_array() && value->size() == 2 ? &(*value)[*side] : nullptr;
    if (value != nullptr && value->is_number()) found = value->get<double>();
  });
  return found;
}

std::optional<double> score_value(const Record& record, const std::string& name) {
  return score_number(record, name, "value");
}

std::string score_text(const Record& record, const std::string& name) {
  std::string text;
  each_score(record, [&](const Json& score, const std::string& own) {
    if (own != name || !score.contains("value") || !score["value"].is_number()) return;
    text = fmt::format("{:.4g}", score["value"].get<double>());
    const Json ends = score.contains("ci95") ? score["ci95"] : Json();
    if (ends.is_array() && ends.size() == 2 && ends[0].is_number() && ends[1].is_number())
      text += fmt::format(" [{:.4g}, {:.4g}]", ends[0].get<double>(), ends[1].get<double>());
  });
  return text;
}

}  // namespace numemu::experiments

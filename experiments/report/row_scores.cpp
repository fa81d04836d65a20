#include "experiments/report/row_scores.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu::experiments {

std::vector<std::string> score_columns(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& record : records) {
    for (const RowScore& score : record.row->scores) {
      if (score.name != "top1" && std::ranges::find(names, score.name) == names.end())
        names.push_back(score.name);
    }
  }
  return names;
}

std::string score_text(const Record& record, const std::string& name) {
  const RowScore* const score = record.row->score(name);
  if (!score || !score->value) return "";
  std::string text = fmt::format("{:.4g}", *score->value);
  if (score->ci95 && score->ci95->known())
    text += fmt::format(" [{:.4g}, {:.4g}]", *score->ci95->low, *score->ci95->high);
  return text;
}

}  // namespace numemu::experiments

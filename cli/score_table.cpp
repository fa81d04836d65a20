#include "cli/score_table.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "experiments/report/record.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

void print_scores(const std::vector<experiments::RowScore>& scores, std::int64_t samples) {
  std::vector<std::vector<std::string>> lines;
  for (const experiments::RowScore& score : scores) {
    lines.push_back({score.name, number_text(score.value, "{:.6g}"),
                     interval_text(score.ci95, "{:.6g}"), number_text(score.baseline, "{:.6g}"),
                     number_text(score.difference, "{:+.4g}"),
                     experiments::none_differs(score, samples).empty()
                         ? interval_text(score.difference_ci95, "{:+.4g}")
                         : "none differs"});
  }
  std::vector<std::string> counted;
  std::string intervals;
  for (const experiments::RowScore& score : scores) {
    if (!score.resampled.empty())
      intervals = "bootstrap of " + score.resampled;
    else
      counted.push_back(score.name);
  }
  if (!counted.empty())
    intervals +=
        fmt::format("{}counts of samples{}", intervals.empty() ? "" : "; ",
                    intervals.empty() ? "" : fmt::format(" for {}", joined(counted, ", ")));
  fmt::print("{}95 %: {}; differences are paired\n",
             text_table({"metric", "value", "95 %", "float32", "difference", "95 %"}, lines),
             intervals);
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // sentences and metrics
  for (const experiments::RowScore& score : scores) {
    const std::string sentence = experiments::none_differs(score, samples);
    if (sentence.empty()) continue;
    if (alike.empty() || alike.back().first != sentence) alike.push_back({sentence, {}});
    alike.back().second.push_back(score.name);
  }
  for (const auto& [sentence, names] : alike) fmt::print("{}: {}\n", joined(names, ", "), sentence);
  for (const experiments::RowScore& score : scores) {
    for (const std::string& which : score.exact) {
      const bool change = which == "difference_ci95";
      if (change && !experiments::none_differs(score, samples).empty()) continue;
      fmt::print("{}: {}, so the interval{} is that of 0 exceptions in as many (Clopper-Pearson)\n",
                 score.name,
                 !change ? "all samples have the same figure"
                 : score.difference == 0.0
                     ? "no sample's figure differs from float32"
                     : "every sample's figure differs from float32 by the same",
                 change ? " of the difference" : "");
    }
    for (const auto& [why, whose] :
         {std::pair(&score.why_no_value, ""), {&score.why_no_baseline, " of float32"}}) {
      if (!why->empty()) fmt::print("{}{}: {}\n", score.name, whose, *why);
    }
  }
  fmt::print("\n");
}

}  // namespace numemu::cli

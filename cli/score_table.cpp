#include "cli/score_table.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

void print_scores(const Json& scores, std::int64_t samples) {
  std::vector<std::vector<std::string>> lines;
  for (const Json& score : scores) {
    lines.push_back(
        {score["name"], number_text(score["value"], "{:.6g}"),
         interval_text(score["ci95"], "{:.6g}"), number_text(score["baseline"], "{:.6g}"),
         number_text(score["difference"], "{:+.4g}"),
         none_differs(score, samples).empty() ? interval_text(score["difference_ci95"], "{:+.4g}")
                                              : "none differs"});
  }
  std::vector<std::string> counted;
  std::string intervals;
  for (const Json& score : scores) {
    if (score.contains("resampled"))
      intervals = "bootstrap of " + score["resampled"].get<std::string>();
    else
      counted.push_back(score["name"].get<std::string>());
  }
  if (!counted.empty())
    intervals +=
        fmt::format("{}counts of samples{}", intervals.empty() ? "" : "; ",
                    intervals.empty() ? "" : fmt::format(" for {}", joined(counted, ", ")));
  fmt::print("{}95 %: {}; differences are paired\n",
             text_table({"metric", "value", "95 %", "float32", "difference", "95 %"}, lines),
             intervals);
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // sentences and metrics
  for (const Json& score : scores) {
    const std::string sentence = none_differs(score, samples);
    if (sentence.empty()) continue;
    if (alike.empty() || alike.back().first != sentence) alike.push_back({sentence, {}});
    alike.back().second.push_back(score["name"].get<std::string>());
  }
  for (const auto& [sentence, names] : alike) fmt::print("{}: {}\n", joined(names, ", "), sentence);
  for (const Json& score : scores) {
    for (const Json& which : score.value("exact", Json::array())) {
      const bool change = which == "difference_ci95";
      if (change && !none_differs(score, samples).empty()) continue;
      fmt::print("{}: {}, so the interval{} is that of 0 exceptions in as many (Clopper-Pearson)\n",
                 score["name"].get<std::string>(),
                 !change ? "all samples have the same figure"
                 : score["difference"] == 0
                     ? "no sample's figure differs from float32"
                     : "every sample's figure differs from float32 by the same",
                 change ? " of the difference" : "");
    }
    for (const auto& [key, whose] :
         {std::pair("why_no_value", ""), {"why_no_baseline", " of float32"}}) {
      if (score.contains(key))
        fmt::print("{}{}: {}\n", score["name"].get<std::string>(), whose,
                   score[key].get<std::string>());
    }
  }
  fmt::print("\n");
}

}  // namespace numemu::cli

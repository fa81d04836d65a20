#include "cli/score_table.hpp"

#include <fmt/format.h>

#include <vector>

#include "cli/report_files.hpp"
#include "cli/table.hpp"

namespace numemu::cli {

void print_scores(const Json& scores) {
  std::vector<std::vector<std::string>> lines;
  for (const Json& score : scores) {
    lines.push_back({score["name"], number_text(score["value"], "{:.6g}"),
                     interval_text(score["ci95"], "{:.6g}"),
                     number_text(score["baseline"], "{:.6g}"),
                     number_text(score["difference"], "{:+.4g}"),
                     interval_text(score["difference_ci95"], "{:+.4g}")});
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
                    intervals.empty() ? "" : fmt::format(" for {}", fmt::join(counted, ", ")));
  fmt::print("{}95 %: {}; differences are paired\n",
             text_table({"metric", "value", "95 %", "float32", "difference", "95 %"}, lines),
             intervals);
  for (const Json& score : scores) {
    for (const Json& which : score.value("exact", Json::array())) {
      const bool change = which == "difference_ci95";
      fmt::print("{}: {}, so the interval{} is that of 0 in as many (Clopper-Pearson)\n",
                 score["name"].get<std::string>(),
                 change ? "no sample differs from float32" : "all samples have the same figure",
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

// Scores of rows as columns: names once, intervals beside figures, nothing of malformed ones.
#include "experiments/report/row_scores.hpp"

#include "experiments/report/columns.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/rows.hpp"

namespace numemu::experiments {
namespace {

TEST_CASE("scores become columns", "[fast]") {
  const std::vector<Json> rows = {
      {{"scores",
        {{{"name", "mse"}, {"value", 0.25}, {"ci95", {0.125, 0.5}}},
         {{"name", "top1"}, {"value", 1}}}}},
      {{"scores", {{{"name", "mae"}, {"value", 2.0}, {"ci95", {nullptr, nullptr}}}, 7}}},
      Json::object()};
  const std::vector<Record> records = records_of(rows);
  CHECK(score_columns(records) == std::vector<std::string>{"mse", "mae"});
  CHECK(score_text(records[0], "mse") == "0.25 [0.125, 0.5]");
  CHECK(score_text(records[1], "mae") == "2");
  CHECK(score_text(records[2], "mae").empty());
  CHECK(exported_columns(records).size() == record_columns().size() + 14);
  CHECK(exported_columns(records).back().name == "score_mae_difference_ci95_high");
}

}  // namespace
}  // namespace numemu::experiments

// Where no row has predictions, tables have no columns for them and nothing is counted.
#include "experiments/report/predictions_off.hpp"

#include "experiments/report/findings.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

using namespace numemu::experiments;
using Catch::Contains;
using numemu::Json;

TEST_CASE("reports without predictions have neither columns nor verdicts of them", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  std::vector<Json> bare;
  for (const Row& row : without_predictions(read_rows(rows))) bare.push_back(to_json(row));
  CHECK(any_predictions(records_of(rows)));
  std::vector<Json> float32 = rows;
  std::erase_if(float32, [](const Json& row) { return !records_of({row})[0].is_float32(); });
  REQUIRE_FALSE(float32.empty());
  CHECK_FALSE(any_predictions(records_of(float32)));
  const std::vector<Record> records = records_of(bare);
  CHECK_FALSE(any_predictions(records));
  const Verdicts verdicts = judge_predictions(records);
  CHECK(verdicts.layers.compared() + verdicts.outputs.compared() + verdicts.fitted.compared() == 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(bare[i]["metrics"].size() == rows[i]["metrics"].size());
    CHECK(bare[i]["metrics"]["sqnr_db"] == rows[i]["metrics"]["sqnr_db"]);
    CHECK(records[i].left_out.empty());
  }

  const Scratch scratch("predictions-off");
  const auto texts = [&](const std::vector<Json>& shown) {
    const Json sweep = sample::sweep(), tensors = sample::tensors();
    const ReportInput input{&sweep, kept_rows(shown), &tensors};
    ReportAssets assets = embedded_assets();
    assets.libraries = "/* libraries */";
    write_markdown(input, scratch / "report.md");
    return std::pair(render_html(input, assets), scratch.read("report.md"));
  };
  const auto [page, text] = texts(rows);
  for (const char* words : {"SQNR predicted, dB</button>", "Predicted, dB",
                            "<h2 id=\"h-verdicts\">", "id=\"fig-predicted\""})
    CHECK_THAT(page, Contains(words));
  CHECK_THAT(text, Contains("predicted, dB"));
  const auto [bare_page, bare_text] = texts(bare);
  for (const char* words : {"SQNR predicted, dB</button>", "Predicted, dB", "h-verdicts",
                            "fig-predicted", "Not drawn", "{{"})
    CHECK_THAT(bare_page, !Contains(words));
  CHECK_THAT(bare_page, Contains("SQNR measured, dB") && Contains("id=\"fig-layers\""));
  CHECK_THAT(bare_text, !Contains("redicted"));
}

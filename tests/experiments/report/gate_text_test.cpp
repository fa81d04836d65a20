// Gates in the report: a sentence, a column of the page, of Markdown and of CSV, only where judged.

#include <algorithm>

#include "experiments/engine/gate.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/report.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/verdicts.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace gate_text_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
using Catch::EndsWith;

namespace {

std::vector<Json> judged_rows(const std::string& target) {
  std::vector<Json> rows = sample::rows();
  for (Json& json : rows) {
    Row row = read_row(json);
    judge_gate(parse_gate(target), row);
    json = to_json(row);
  }
  return rows;
}

std::size_t count(const std::vector<Json>& rows, const char* verdict) {
  return static_cast<std::size_t>(std::ranges::count_if(
      rows, [&](const Json& row) { return row["gate"]["verdict"] == verdict; }));
}

}  // namespace

TEST_CASE("the verdicts of the gate count rows, and points that are missing", "[fast]") {
  const std::vector<Json> rows = judged_rows("0.99");
  const std::size_t pass = count(rows, "pass"), fail = count(rows, "fail"),
                    open = count(rows, "undecided");
  REQUIRE(pass > 0);
  REQUIRE(fail > 0);
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::string first = gate_sentences(records).at(0);
  CHECK_THAT(first, Contains("Gate top1 >= 0.99 float32 at 99 %, paired: " + std::to_string(pass) +
                             " of " + std::to_string(rows.size()) + " pass; " +
                             std::to_string(fail) + " fail ("));
  CHECK((first.find(" undecided (") != first.npos) == (open > 0));
  CHECK(first.find("points present") == first.npos);
  CHECK_THAT(gate_sentences(records, "3 of 9 points present").at(0),
             EndsWith("; 3 of 9 points present."));  // a row fails, and so does the gate
  const std::vector<Json> good = judged_rows("top1>=0");
  CHECK_THAT(gate_sentences(report_rows_of(good), "3 of 9 points present").at(0),
             EndsWith(" pass; 3 of 9 points present, so the gate as a whole is undecided."));
  // A constant is compared with one accuracy; nothing is paired.
  const std::vector<Json> absolute = judged_rows("top1>=0.5");
  CHECK_THAT(gate_sentences(report_rows_of(absolute)).at(0),
             Contains("Gate top1 >= 0.5 at 99 %: "));
}

TEST_CASE("the gate's sentence counts the undecided rows that samples would decide", "[fast]") {
  std::vector<Json> rows = judged_rows("top1>=0.5");
  rows.resize(2);
  for (Json& row : rows) {
    row["gate"]["verdict"] = "undecided";
    row["gate"]["images_needed"] = nullptr;
  }
  CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
             EndsWith("), which more samples would not decide."));
  // Without an interval, as of one sample, nobody knows.
  for (Json& row : rows) {
    row["gate"]["margin_ci99"] = {nullptr, nullptr};
    CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
               EndsWith(&row == &rows[0] ? "), 1 without an interval, which needs more samples."
                                         : "), without an interval, which needs more samples."));
  }
  for (Json& row : rows) row["gate"]["margin_ci99"] = {-0.1, 0.1};
  rows[1]["gate"]["images_needed"] = 1'727'182;
  CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
             EndsWith("), about 1.8 million samples would decide 1 of them."));
  // Rounded up: 10,400 are needed where 10,000 do not decide.
  rows[1]["gate"]["images_needed"] = 10400;
  CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
             EndsWith("), about 11,000 samples would decide 1 of them."));
  rows[1]["gate"]["images_needed"] = 15533;
  CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
             EndsWith("), about 16,000 samples would decide 1 of them."));
  rows[0]["gate"]["images_needed"] = 150;
  CHECK_THAT(gate_sentences(report_rows_of(rows)).at(0),
             EndsWith("), about 16,000 samples would decide."));
}

TEST_CASE("pages and Markdown begin with the gate, before an experiment and only once", "[fast]") {
  const std::vector<Json> rows = judged_rows("0.99");
  const Json experiment = {{"name", "e"}, {"question", "who"}, {"findings", Json::array()}};
  for (const Json* const shown : {static_cast<const Json*>(nullptr), &experiment}) {
    const Json sweep = Json::object();
    const ReportInput input{.sweep = &sweep,
                            .rows = kept_rows(rows),
                            .experiment = shown,
                            .unfinished = "5 of 6 points present"};
    const std::string page = render_html(input, embedded_assets());
    const std::size_t at = page.find("Gate top1 &gt;= 0.99");
    REQUIRE(at != page.npos);
    CHECK(at < page.find("<section"));
    CHECK(page.find("5 of 6 points present") < page.find("</header>"));
    CHECK(page.find("Gate top1 &gt;= 0.99", at + 1) == page.npos);
    const Scratch scratch("gate");
    write_markdown(input, scratch / "r.md");
    const std::string text = scratch.read("r.md");
    const std::size_t told = text.find("Gate top1");
    CHECK(text.substr(0, 2) == "# ");
    CHECK(told == text.find('\n') + 2);  // the paragraph behind the title
    CHECK(text.find("Gate top1", told + 1) == text.npos);
  }
}

TEST_CASE("every table has the verdict, and none without a gate", "[fast]") {
  std::vector<Json> rows = judged_rows("top1>=0.5");
  rows[0]["gate"]["verdict"] = "undecided";
  rows[0]["gate"]["images_needed"] = 15533;
  const std::vector<Json> unjudged = sample::rows();
  const std::vector<ReportRow> records = report_rows_of(rows), plain = report_rows_of(unjudged);
  CHECK(gate_words(records[0]) == "undecided, needs about 16,000");
  CHECK_THAT(points_table(records),
             Contains(">Gate</button>") && Contains("undecided<small>needs about 16,000</small>"));
  CHECK_THAT(points_table(plain), !Contains(">Gate</button>"));
  CHECK(gate_sentences(plain).empty());
  const auto cell = [](const char* name, const ReportRow& record) {
    for (const Column& column : row_columns()) {
      if (column.name == std::string(name)) return cell_text(column.value(record));
    }
    return std::string("no such column");
  };
  CHECK(cell("gate", records[0]) == "undecided");
  CHECK(cell("gate_target", records[0]) == "top1 >= 0.5");
  CHECK(cell("gate_required", records[0]) == "0.5");
  CHECK(cell("gate_images_needed", records[0]) == "15533");
  CHECK(cell("gate_margin_ci99_low", records[0]) != "");
  CHECK(cell("gate", plain[0]) == "");
}

}  // namespace gate_text_test

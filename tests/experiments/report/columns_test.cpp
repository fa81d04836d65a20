// Columns of rows, and CSV, read by an independent reader.
#include "experiments/report/columns.hpp"

#include <fstream>
#include <iterator>

#include "experiments/report/report.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace columns_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

/// A reader of RFC 4180, independent of the writer.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      lines.back().emplace_back();
    } else if (!quoted && c == '\r') {
      lines.push_back({""});
      ++i;
    } else {
      lines.back().back() += c;
    }
  }
  lines.pop_back();
  return lines;
}

std::size_t column(const std::vector<std::string>& header, const std::string& name) {
  return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
}

}  // namespace

TEST_CASE("csv has every row, and numbers read back exactly", "[fast]") {
  const Scratch scratch("csv");
  std::vector<Json> rows = sample::rows();
  rows[3] = sample::poisoned(rows[3]);
  rows[7]["metrics"]["gain"] = 1.35;
  rows[7]["predicted"]["sqnr_gained_db"] = 16.25;
  const ReportInput input{nullptr, kept_rows(rows), nullptr};
  write_csv(input, scratch / "report.csv");
  const auto lines = parse_csv(scratch.read("report.csv"));
  REQUIRE(lines.size() == rows.size() + 1);
  for (const auto& line : lines) CHECK(line.size() == row_columns().size());
  const auto at = [&](std::size_t row, const char* name) {
    return lines[row + 1][column(lines[0], name)];
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(at(i, "key") == rows[i]["key"]);
    CHECK(at(i, "unit") == rows[i]["point"]["recipe"]["gemms"]["fprop"]["unit"]);
    CHECK(std::stod(at(i, "top1")) == rows[i]["metrics"]["top1"]);
    CHECK(std::stod(at(i, "loss")) == rows[i]["metrics"]["loss"]);
    CHECK(std::stod(at(i, "difference_ci95_low")) == rows[i]["metrics"]["difference_ci95"][0]);
    CHECK(std::stod(at(i, "bits_activation")) == rows[i]["bits"]["activation"]);
  }
  CHECK(at(0, "sqnr_db").empty());
  CHECK(at(0, "weight_format") == "float32");
  CHECK(std::stod(at(7, "predicted_sqnr_db")) == rows[7]["predicted"]["sqnr_db"]);
  CHECK(std::stod(at(7, "gain")) == 1.35);
  CHECK(std::stod(at(7, "predicted_sqnr_gained_db")) == 16.25);
}

TEST_CASE("texts that a spreadsheet would take for formulas are marked, numbers are not",
          "[fast]") {
  const Scratch scratch("formula");
  std::vector<Json> rows = {sample::rows()[1]};
  const std::vector<std::string> hostile = {"=HYPERLINK(\"x\")", "+1", "-1", "@a", "\tb", "a=b"};
  for (const std::string& text : hostile) {
    rows[0]["point"]["net"] = text;
    rows[0]["metrics"]["difference"] = -0.25;
    write_csv({nullptr, kept_rows(rows), nullptr}, scratch / "report.csv");
    const auto lines = parse_csv(scratch.read("report.csv"));
    CHECK(lines[1][column(lines[0], "net")] == (text == "a=b" ? "" : "'") + text);
    CHECK(lines[1][column(lines[0], "difference")] == "-0.25");
  }
}

TEST_CASE("a folder that does not exist is named", "[fast]") {
  const std::vector<Json> rows;
  const ReportInput input{nullptr, kept_rows(rows), nullptr};
  for (auto* write : {write_csv, write_sqlite, write_markdown, write_html}) {
    CHECK_THROWS_WITH(write(input, "/nonexistent/report.out"),
                      Catch::Contains("/nonexistent: no such folder"));
  }
}

TEST_CASE("a finished file replaces the old one and leaves nothing beside it", "[fast]") {
  const Scratch scratch("atomic");
  const std::vector<Json> rows = sample::rows();
  const ReportInput input{nullptr, kept_rows(rows), nullptr};
  std::ofstream(scratch / "report.csv") << "old";
  write_csv(input, scratch / "report.csv");
  CHECK(scratch.read("report.csv").starts_with("key,"));
  CHECK(scratch.files() == 1);
}

TEST_CASE("scores become columns", "[fast]") {
  const std::vector<Json> rows = {
      {{"scores",
        {{{"name", "mse"}, {"value", 0.25}, {"ci95", {0.125, 0.5}}},
         {{"name", "top1"}, {"value", 1}}}}},
      {{"scores", {{{"name", "mae"}, {"value", 2.0}, {"ci95", {nullptr, nullptr}}}, 7}}},
      Json::object()};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(score_columns(records) == std::vector<std::string>{"mse", "mae"});
  CHECK(score_text(records[0], "mse") == "0.25 [0.125, 0.5]");
  CHECK(score_text(records[1], "mae") == "2");
  CHECK(score_text(records[2], "mae").empty());
  CHECK(exported_columns(records).size() == row_columns().size() + 20);
  CHECK(exported_columns(records).back().name == "score_mae_predicted_ci95_high");
}

TEST_CASE("an expected figure has the ends of an interval that is cut off at 0 or 100 %",
          "[fast]") {
  const auto expected = [](double value, double low, double high) -> std::string {
    const Json row = {{"metrics", {{"top1", value}}},
                      {"predicted",
                       {{"tensors", Json::array()},
                        {"accuracy", {{"top1", {{"value", value}, {"ci95", {low, high}}}}}}}}};
    const std::vector<ReportRow> records = report_rows_of({row});
    for (const ShownColumn& column : shown_columns(records, Medium::terminal)) {
      if (column.key == "expected") return column.cell(records[0]);
    }
    return "no such column";
  };
  CHECK(expected(0.1, 0, 0.357318) == "10.00 [0.00, 35.73]");
  CHECK(expected(0.97, 0.9, 1) == "97.00 [90.00, 100.00]");
  CHECK(expected(0.5, 0.423457, 0.576544) == "50.00 +-7.65");  // rows have six digits
}

}  // namespace columns_test

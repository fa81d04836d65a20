// The measure of a row: the chosen metric, bits of texts, the first score, else top-1.
#include "experiments/report/measure.hpp"

#include "experiments/report/configurations.hpp"
#include "experiments/report/report_row.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace numemu::experiments::measure_test {
namespace {

Json score(const char* name, double value, double baseline, double half) {
  return {{"name", name},
          {"value", value},
          {"ci95", {value - half, value + half}},
          {"baseline", baseline},
          {"difference", value - baseline},
          {"difference_ci95", {value - baseline - half, value - baseline + half}}};
}

/// A segmentation: pixels hardly change where the mean IoU falls.
Json map_row(double iou) {
  const auto& format = sample::kFormats[14];
  Json row = sample::row(1, &format, &format, "u");
  row["metrics"]["top1"] = 0.97;
  row["metrics"]["difference"] = -0.001;
  row["metrics"]["difference_ci95"] = {-0.0015, -0.0005};
  row["scores"] = {score("mean_iou", iou, 0.8, 0.001),
                   score("pixel_accuracy", 0.97, 0.971, 0.0005)};
  return row;
}

TEST_CASE("class maps are judged by mean IoU, not by the share of pixels", "[fast]") {
  const std::vector<Json> rows = {map_row(0.797), map_row(0.7)};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(std::string(records[0].judged.measure->name) == "mean_iou");
  CHECK(loses_little(records[0]) == Verdict::holds);
  CHECK(loses_little(records[1]) == Verdict::fails);
  CHECK(*records[1].judged.loss() == Approx(0.1));
  CHECK(&measure_of(records) == records[0].judged.measure);
  CHECK(records[1].judged.measure->text(0.7) == "70.00 % mean IoU");
}

TEST_CASE("the first metric of the point judges", "[fast]") {
  Json row = map_row(0.7);
  row["point"]["metrics"] = {"pixel_accuracy", "mean_iou"};
  CHECK(std::string(judged_of(read_row(row)).measure->name) == "pixel_accuracy");
  row["point"]["metrics"] = {"top1"};
  const JudgedFigure top1 = judged_of(read_row(row));
  CHECK(top1.measure->is_top1());
  CHECK(*top1.difference_low == -0.0015);
}

TEST_CASE("losses of errors are shares of float32's, and fall", "[fast]") {
  Json row = sample::row(1, &sample::kFormats[14], nullptr, "u");
  row["metrics"] = {{"n", 100}};
  row["scores"] = Json::array({score("mse", 0.202, 0.2, 0.0002)});
  const JudgedFigure judged = judged_of(read_row(row));
  CHECK(*judged.loss() == Approx(0.01));
  CHECK(judged.loss_interval()->first == Approx(0.009));
  CHECK(judged.loss_interval()->second == Approx(0.011));
  CHECK(judged.measure->loss_text(judged.measure->small) == "1 % of the mean squared error");
  row["scores"][0]["baseline"] = 0.0;
  CHECK(!judged_of(read_row(row)).loss());
  row["scores"] = Json::array({score("sqnr", 21.5, 0, 0.1)});
  row["scores"][0]["baseline"] = nullptr;
  const std::vector<Json> rows = {row};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(*records[0].judged.loss() == -21.5);
  CHECK(loses_little(records[0]) == Verdict::none);
}

TEST_CASE("a figure that is not finite everywhere is still what judges", "[fast]") {
  Json row = sample::row(1, &sample::kFormats[14], nullptr, "u");
  row["metrics"] = {{"n", 100}};
  row["scores"] = Json::array({score("sqnr", 0, 0, 0)});
  row["scores"][0]["value"] = nullptr;
  const std::vector<Json> rows = {row, row};
  CHECK(std::string(measure_of(report_rows_of(rows)).name) == "sqnr");
}

TEST_CASE("bits are those of a character or of a token", "[fast]") {
  Json row = sample::text_rows()[1];
  CHECK(std::string(judged_of(read_row(row)).measure->unit) == "bits per character");
  CHECK(judged_of(read_row(row)).difference_low == judged_of(read_row(row)).difference);
  row["point"]["data"] = "tokens";  // a row of an earlier program
  CHECK(std::string(judged_of(read_row(row)).measure->unit) == "bits per token");
  row["scores"] = Json::array({score("bits_per_token", 2.5, 2.4, 0.01)});
  row["metrics"]["bits_per_token"] = 2.5;
  row["metrics"]["baseline_bits_per_token"] = 2.4;
  row["metrics"].erase("bits_per_character");
  const JudgedFigure judged = judged_of(read_row(row));
  CHECK(*judged.loss() == Approx(0.1));
  CHECK(judged.loss_interval()->second == Approx(0.11));
}

}  // namespace
}  // namespace numemu::experiments::measure_test

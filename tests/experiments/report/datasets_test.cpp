// The charts' tables: points, layers, predictions, values of formats.
#include "experiments/report/datasets.hpp"

#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace datasets_test {

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("data sets of the sample sweep", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const std::vector<ReportRow> records = report_rows_of(rows);
  const Json tensors = sample::tensors();
  const Json data = chart_datasets(records, &tensors);
  CHECK(data["points"].size() == rows.size() - 1);
  CHECK(data["baseline"].size() == 1);
  CHECK(data["baseline"][0]["top1"].get<double>() == Approx(97.95));
  CHECK(data["tensors"].size() == 10);
  CHECK(data["grids"].size() == 15);
  const Json& point = data["points"][0];
  CHECK(point["top1"].get<double>() == Approx(100 * rows[1]["metrics"]["top1"].get<double>()));
  CHECK(point["lost"].get<double>() ==
        Approx(-100 * rows[1]["metrics"]["difference"].get<double>()));
  // Five layers, measured and predicted, of every quantized row; float32 layers are exact and have
  // no bar.
  CHECK(data["layers"].size() == (rows.size() - 1) * 10);
  CHECK(swept_units(records) ==
        std::vector<std::string>{"neutral.f32.sequential", "neutral.exact"});
  double low = 1e9, high = -1e9;
  for (const Json& p : data["predictions"]) {
    low = std::min({low, p["predicted"].get<double>(), p["measured"].get<double>()});
    high = std::max({high, p["predicted"].get<double>(), p["measured"].get<double>()});
  }
  CHECK(data["diagonal"][0]["low"] == low);
  CHECK(data["diagonal"][0]["high"] == high);
}

TEST_CASE("without quantized rows and tensors every data set but the baseline is empty", "[fast]") {
  const std::vector<Json> rows = {sample::rows()[0]};
  const Json data = chart_datasets(report_rows_of(rows), nullptr);
  for (const auto& [name, records] : data.items()) {
    CAPTURE(name);
    CHECK(records.size() == (name == "baseline" ? 1 : 0));
  }
}

TEST_CASE("points of a text have bits per character and no accuracy", "[fast]") {
  const std::vector<Json> rows = sample::text_rows();
  const Json data = chart_datasets(report_rows_of(rows), nullptr);
  CHECK(data["baseline"] == Json::array({{{"figure", 2.1}}}));
  REQUIRE(data["points"].size() == 4);
  for (const Json& point : data["points"]) {
    for (const char* key : {"top1", "low", "high", "change", "lost"}) CHECK(point[key].is_null());
    CHECK(point["figure_change"].get<double>() == Approx(point["figure"].get<double>() - 2.1));
  }
}

TEST_CASE("rows of one layer each are cells of layer by format", "[fast]") {
  const std::vector<Json> rows = sample::sensitivity_rows();
  const Json data = chart_datasets(report_rows_of(rows), nullptr);
  REQUIRE(data["sensitivity"].size() == 24);
  const Json& last = data["sensitivity"][23];
  CHECK(last["layer"] == "all layers");
  CHECK(last["format"] == "mxfp4");
  CHECK(last["sqnr"] == rows[23]["metrics"]["sqnr_db"]);
  CHECK(last["lost"].get<double>() ==
        Approx(-100 * rows[23]["metrics"]["difference"].get<double>()));
  // No row is float32: its accuracy is what every row tells of it.
  REQUIRE(data["baseline"].size() == 1);
  CHECK(data["baseline"][0]["top1"].get<double>() == Approx(97.95));
  CHECK(data["baseline"][0]["low"].get<double>() < 97.95);
  const std::vector<Json> ordinary = sample::rows();
  CHECK(chart_datasets(report_rows_of(ordinary), nullptr)["sensitivity"].empty());
}

TEST_CASE("histograms that cannot be drawn are left out", "[fast]") {
  const Json good = {{"layer", "a"}, {"low", -1}, {"high", 1}, {"absmax", 1}, {"counts", {1, 2}}};
  Json list = Json::array({good});
  for (const char* key : {"low", "high", "absmax", "counts"}) {
    Json bad = good;
    bad[key] = nullptr;
    list.push_back(bad);
  }
  Json empty = good, flat = good, text = good;
  empty["counts"] = Json::array();
  flat["high"] = -1;
  text["counts"] = {1, "2"};
  for (const Json& bad : {empty, flat, text}) list.push_back(bad);
  list.push_back(5);
  const Json tensors = {{"tensors", list}};
  const Json data = chart_datasets({}, &tensors);
  CHECK(data["tensors"] == Json::array({good}));
}

TEST_CASE("points that are not finite are drawn on the lower edge", "[fast]") {
  std::vector<Json> rows = sample::rows();
  rows.push_back(sample::not_finite_row());
  const std::vector<ReportRow> records = report_rows_of(rows);
  const Json data = chart_datasets(records, nullptr);
  const Json& point = data["points"].back();
  CHECK(point["sqnr"].is_null());
  CHECK(point["not_finite"].get<std::string>().find("conv2") != std::string::npos);
  CHECK(data["points"][0]["not_finite"].is_null());
  std::size_t edge = 0;
  for (const Json& p : data["predictions"]) {
    CHECK(p["measured"].is_number());
    if (p["series"] != "NaN or infinite (lower edge)") continue;
    ++edge;
    CHECK(p["shown"] == "NaN or infinite");
    CHECK(p["measured"] == data["diagonal"][0]["low"]);
  }
  CHECK(edge == 3);  // the output, and the two layers that the row counts
}

TEST_CASE("the grid of float4_e2m1fn", "[fast]") {
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[0], nullptr, "u")};
  const Json grid = grid_records(swept_formats(report_rows_of(rows)));
  REQUIRE(grid.size() == 1);
  CHECK(grid[0]["values"] == Json({-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  CHECK(grid[0]["largest"] == 6);
}

TEST_CASE("steps of float4_e2m1fn relative to the value", "[fast]") {
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[0], nullptr, "u")};
  const Json steps = step_records(swept_formats(report_rows_of(rows)));
  REQUIRE(steps.size() == 7);
  CHECK(steps[0]["value"].get<double>() == Approx(0.5 / 6));
  CHECK(steps[0]["step"].get<double>() == Approx(100));
  CHECK(steps[3]["step"].get<double>() == Approx(50));
  CHECK(steps[6]["value"] == 1);
  CHECK(steps[6]["step"].get<double>() == Approx(100 * 2.0 / 6));
}

TEST_CASE("formats stand float before int, narrow before wide; wide ones are not drawn", "[fast]") {
  const sample::Swept wide{"float16", 16, 60};
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[14], &sample::kFormats[8], "u"),
                                  sample::row(1, &sample::kFormats[4], &sample::kFormats[0], "u"),
                                  sample::row(2, &wide, &sample::kFormats[0], "u")};
  std::vector<std::string> names;
  for (const SweptFormat& f : swept_formats(report_rows_of(rows))) names.push_back(f.name);
  CHECK(names == std::vector<std::string>{"float4_e2m1fn", "float8_e4m3fn", "int2", "int8"});
}

TEST_CASE("block formats are drawn by their elements", "[fast]") {
  const std::vector<Json> blocks = sample::block_rows(), layers = sample::sensitivity_rows();
  for (const std::vector<Json>* rows : {&blocks, &layers}) {
    std::vector<std::string> names;
    for (const SweptFormat& f : swept_formats(report_rows_of(*rows))) names.push_back(f.name);
    CHECK(names ==
          std::vector<std::string>{"float4_e2m1fn", "float6_e2m3fn", "float8_e4m3fn", "int8"});
  }
}

}  // namespace datasets_test

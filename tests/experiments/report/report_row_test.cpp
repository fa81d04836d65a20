// Rows flattened; rows without predictions; numbers that are not finite.
#include "experiments/report/report_row.hpp"

#include <algorithm>
#include <string>

#include "experiments/report/html.hpp"
#include "experiments/report/report.hpp"
#include "experiments/report/verdicts.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace report_row_test {

using Catch::Contains;
using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("the report row of a quantized one", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const std::vector<ReportRow> records = report_rows_of(rows);
  REQUIRE(records.size() == rows.size());
  const ReportRow& r = records[5];
  CHECK(r.position == 5);
  CHECK(r.weight.format == rows[5]["point"]["recipe"]["roles"]["weight"]["format"]);
  CHECK(r.weight.rounding == "rne");
  CHECK(r.weight.granularity == "channel");
  CHECK(r.weight.bits == 8);
  CHECK(r.weight.exponent_bits == 4);
  CHECK(r.weight.mantissa_bits == 3);
  CHECK(r.unit == "neutral.f32.sequential");
  CHECK(r.row->metrics.top1 == rows[5]["metrics"]["top1"].get<double>());
  CHECK(r.row->metrics.ci95->high == rows[5]["metrics"]["ci95"][1].get<double>());
  CHECK(r.mean_bits() == Approx(8.05));
  CHECK(r.family() == "float");
  CHECK(r.label == "e4m3fn");
  CHECK(r.quantized());
  CHECK_FALSE(records[0].quantized());
  CHECK_FALSE(records[0].sqnr_db);
}

TEST_CASE("integers have no exponent bits, mixes two families", "[fast]") {
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[10], &sample::kFormats[4], "u")};
  const ReportRow r = report_rows_of(rows)[0];
  CHECK(r.weight.exponent_bits == 0);
  CHECK(r.weight.mantissa_bits == 3);
  CHECK(r.family() == "mixed");
  CHECK(r.label == "int4 / e4m3fn");
}

TEST_CASE("rows of any shape give a report row", "[fast]") {
  const std::vector<Json> rows = {
      Json(),
      Json::array({1, 2}),
      Json("text"),
      Json::object(),
      {{"key", 7}, {"point", {{"recipe", {{"roles", 3}, {"gemms", nullptr}}}}}, {"bits", "x"}},
      {{"metrics", {{"top1", nullptr}, {"ci95", {1}}, {"difference_ci95", "no"}}}, {"layers", 5}}};
  for (const ReportRow& r : report_rows_of(rows)) {
    CHECK_FALSE(r.quantized());
    CHECK_FALSE(r.difference);
    CHECK_FALSE(r.judged.value);
    CHECK_FALSE(r.mean_bits());
  }
}

TEST_CASE("formats outside the table, described units and other rules keep their words", "[fast]") {
  Json row = sample::row(0, &sample::kFormats[0], nullptr, "u");
  Json& recipe = row["point"]["recipe"];
  recipe["roles"]["weight"]["format"] = "mx(nothing,32)";
  recipe["roles"]["vector"] = {{"format", "float16"}, {"rounding", "rne"}};
  recipe["roles"]["gradient"] = {{"dgrad", {{"format", "int8"}}}, {"wgrad", nullptr}};
  recipe["gemms"]["fprop"]["unit"] = {{"accumulator", 12}};
  recipe["layers"] = {{{"match", "fc*"}, {"gemms", {{"fprop", {{"unit", "exact"}}}}}}};
  const std::vector<Json> rows = {row};
  const ReportRow r = report_rows_of(rows)[0];
  CHECK(r.weight.family == "other");
  CHECK_FALSE(r.weight.bits);
  CHECK(r.unit == R"({"accumulator":12})");
  CHECK(r.other.find("vector float16 rne") != std::string::npos);
  CHECK(r.other.find("gradient dgrad int8") != std::string::npos);
  CHECK(r.other.find("fc*: fprop exact") != std::string::npos);
  recipe["layers"] = {{{"match", "fc*"},
                       {"roles",
                        {{"weight", {{"format", "int8"}, {"mask", "greedy(1:4)"}}},
                         {"activation", {{"mask", "greedy(2:4)"}}},
                         {"gradient", {{"wgrad", {{"mask", "mvue(1:2)"}}}}}}}}};
  const std::vector<Json> again = {row};
  const ReportRow masked = report_rows_of(again)[0];
  CHECK(masked.other.find("fc*: weight int8 greedy(1:4), activation float32 greedy(2:4), "
                          "gradient wgrad float32 mvue(1:2)") != std::string::npos);
  recipe["transform"] = {{"rule", "hadamard"}, {"block", 16}};
  recipe["layers"] = {{{"match", "fc*"}, {"transform", nullptr}}};
  const std::vector<Json> turned = {row};
  CHECK(report_rows_of(turned)[0].other.find("transform hadamard block 16; fc*: transform none") !=
        std::string::npos);
}

TEST_CASE("block formats have the bits of their elements and a family of their own", "[fast]") {
  const std::vector<Json> rows = sample::block_rows();
  const ReportRow r = report_rows_of(rows)[4];
  CHECK(r.label == "mxfp4");
  CHECK(r.family() == "block");
  CHECK(r.weight.element == "float4_e2m1fn");
  CHECK(r.weight.bits == 4);
  CHECK(r.weight.exponent_bits == 2);
  CHECK(r.weight.mantissa_bits == 1);
  CHECK(r.unit == "my.mac");
  CHECK(r.sqnr_error_db == 0.25);
}

TEST_CASE("texts have bits per character", "[fast]") {
  const std::vector<Json> rows = sample::text_rows();
  const ReportRow r = report_rows_of(rows)[4];
  const Json& metrics = rows[4]["metrics"];
  CHECK(r.perplexity == metrics["perplexity"].get<double>());
  std::vector<Json> scored = {rows[4]};
  scored[0]["metrics"]["perplexity"] = 3.1143;  // by way of float32
  scored[0]["scores"] = {{{"name", "perplexity"}, {"value", 3.11429}}};
  CHECK(report_rows_of(scored)[0].perplexity == 3.11429);
  CHECK(*r.judged.difference == Approx(metrics["bits_per_character"].get<double>() - 2.1));
}

TEST_CASE("a rule of one layer alone is the label", "[fast]") {
  std::vector<Json> rows = sample::sensitivity_rows();
  CHECK(report_rows_of(rows)[0].label == "mxint8 in conv1");
  CHECK(report_rows_of(rows)[0].formats() == "mxint8");
  CHECK(report_rows_of(rows)[0].family() == "block");
  CHECK(report_rows_of(rows)[5].label == "mxint8 in all layers");
  CHECK(report_rows_of(rows)[0].quantized());
  CHECK(report_rows_of(rows)[0].other == "conv1: weight mxint8, activation mxint8");
  Json& layers = rows[0]["point"]["recipe"]["layers"];
  layers.push_back(layers[0]);
  CHECK(report_rows_of(rows)[0].only_in.empty());
}

TEST_CASE("the seed stands at the point, or in its recipe", "[fast]") {
  Json row = sample::row(0, nullptr, nullptr, "u");
  row["point"]["recipe"]["seed"] = 3;
  Json without = row;
  without["point"].erase("seed");
  const std::vector<Json> rows = {row, without};
  CHECK(report_rows_of(rows)[0].seed == 0);
  CHECK(report_rows_of(rows)[1].seed == 3);
}

TEST_CASE("short names", "[fast]") {
  CHECK(short_format("float8_e4m3fn") == "e4m3fn");
  CHECK(short_format("float8_e4m3") == "float8_e4m3");  // e4m3 in names of units is another
  CHECK(short_format("float8_e5m2") == "e5m2");
  CHECK(short_format("float8_bogus") == "bogus");
  CHECK(short_format("float32") == "float32");
  CHECK(short_format("float8_") == "float8_");
  CHECK(short_format("int8") == "int8");
  CHECK(short_format("float") == "float");
  CHECK(short_format("") == "");
  CHECK(short_unit("neutral.f32.sequential") == "f32.sequential");
  CHECK(short_unit("nvidia.h100.wgmma.e4m3.f32") == "nvidia.h100.wgmma.e4m3.f32");
}

TEST_CASE("calibration that clips is named unless ranges fix every activation", "[fast]") {
  Json row = sample::row(0, &sample::kFormats[4], &sample::kFormats[4], "u");
  const auto scale = [&] { return report_rows_of({row})[0].activation.scale; };
  row["point"]["recipe"]["calibrate"]["rule"] = "percentile(99.9)";
  CHECK(scale() == "absmax, percentile(99.9)");
  REQUIRE(row["layers"].size() == 5);
  const auto fixed = [&](int activations) {
    row["note_kinds"] = Json::array({"ranges"});
    row.erase("fixed_activations");
    if (activations > 0) row["fixed_activations"] = activations;
  };
  row["point"]["ranges"] = "0123456789abcdef";  // of a tuned checkpoint
  CHECK(scale() == "absmax");                   // a row of an earlier program
  fixed(5);
  CHECK(scale() == "absmax");
  fixed(0);
  CHECK(scale() == "absmax, percentile(99.9)");
  fixed(4);
  CHECK(scale() == "absmax, percentile(99.9)");
  row["point"].erase("ranges");
  row["point"]["recipe"]["ranges"] = {{"fc1", {{"activation", {-1, 1}}}}};
  fixed(1);
  CHECK(scale() == "absmax, percentile(99.9)");
}

TEST_CASE("reports without predictions have neither columns nor verdicts of them", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  std::vector<Json> bare;
  for (const Row& row : without_predictions(read_rows(rows))) bare.push_back(to_json(row));
  CHECK(any_predictions(report_rows_of(rows)));
  std::vector<Json> float32 = rows;
  std::erase_if(float32, [](const Json& row) { return !report_rows_of({row})[0].is_float32(); });
  REQUIRE_FALSE(float32.empty());
  CHECK_FALSE(any_predictions(report_rows_of(float32)));
  const std::vector<ReportRow> records = report_rows_of(bare);
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

TEST_CASE("a row says how many outputs are not finite, where they arise and why", "[fast]") {
  const Row row = read_row(sample::not_finite_row());
  CHECK(is_not_finite(row));
  CHECK(not_finite_sentences(row) ==
        std::vector<std::string>{
            "98,000 of 100,000 outputs are NaN (97,000) or infinite (1,000) (10,000 test samples)",
            "conv2: 1,200 of 40,000 results infinite: accumulator overflow (float16, at most "
            "6.55e+04)",
            "passed on by fc1"});
  CHECK(not_finite_results(row, "conv2") == 1200);
  CHECK(not_finite_results(row, "conv1") == 0);
}

TEST_CASE("rows that do not count tell by their loss", "[fast]") {
  Row row = read_row(sample::not_finite_row());
  row.not_finite = {};
  CHECK(is_not_finite(row));
  CHECK(not_finite_sentences(row).size() == 1);
  row.metrics.loss = 0.1;
  CHECK_FALSE(is_not_finite(row));
  CHECK(not_finite_sentences(row).empty());
  CHECK_FALSE(is_not_finite(Row()));
}

TEST_CASE("finite predictions of numbers that are not finite have failed, and come first",
          "[fast]") {
  const std::vector<Json> finite = sample::rows();
  std::vector<Json> rows = finite;
  rows.push_back(sample::not_finite_row());
  const std::vector<ReportRow> before = report_rows_of(finite), records = report_rows_of(rows);
  const Verdicts old = judge_predictions(before), v = judge_predictions(records);
  CHECK(v.outputs.compared() == old.outputs.compared() + 1);
  CHECK(v.outputs.not_finite == 1);
  CHECK(v.outputs.largest == old.outputs.largest);
  CHECK(v.layers.not_finite == 4);
  REQUIRE(v.failed.size() >= 5);
  CHECK(v.failed[0].why.find("accumulator overflow (float16") != std::string::npos);
  CHECK(v.failed[4].why == "operands that were not finite before");
  CHECK(v.failed[5 - 1].format == records.back().name);
}

}  // namespace report_row_test

// Layers are listed in the order in which they break.
#include "experiments/report/layer_ranking.hpp"

#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace layer_ranking_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

/// Output SQNR of each layer in dB, by format.
std::vector<Json> rows_of(const std::vector<std::vector<double>>& db) {
  std::vector<Json> rows = sample::sensitivity_rows();
  rows.resize(12);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["metrics"]["sqnr_db"] = db[i / 6][i % 6];
  return rows;
}

std::vector<std::string> names(const LayerRanking& ranking) {
  std::vector<std::string> out;
  for (const RankedLayer& layer : ranking.layers) out.push_back(layer.name);
  return out;
}

/// Output and counts of a row whose outputs are NaN, in part.
void lose(Json& row, double nan, double difference) {
  row["metrics"]["sqnr_db"] = row["metrics"]["loss"] = nullptr;
  row["metrics"]["difference"] = difference;
  row["not_finite"]["test"]["outputs"] = {{"of", 5000}, {"nan", nan}, {"infinite", 0}};
}

/// Each layer of the sample at `format` (null: float32) in a recipe of int4, all layers, and the
/// recipe as it is.
std::vector<Json> rows_of_recipe(const Json& format, const std::vector<double>& db) {
  std::vector<Json> rows = sample::sensitivity_rows();
  rows.resize(7);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json& recipe = rows[i]["point"]["recipe"];
    recipe["roles"]["weight"] = recipe["roles"]["activation"] = {{"format", "int4"}};
    if (i == 6) {
      recipe["layers"] = Json::array();
    } else {
      recipe["layers"][0]["roles"] = {{"weight", format}, {"activation", format}};
    }
    rows[i]["metrics"]["sqnr_db"] = db[i];
    rows[i]["metrics"]["sqnr_error_db"] = 0.1;
    rows[i]["metrics"]["difference"] = -0.01 * static_cast<double>(i + 1);
    rows[i]["metrics"]["difference_ci95"] = {-0.2, -0.005};
  }
  return rows;
}

}  // namespace

TEST_CASE("the noisiest layer of the first format is first, all layers together last", "[fast]") {
  const std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {30, 25, 10, 40, 35, 5}});
  const std::vector<ReportRow> records = report_rows_of(rows);
  REQUIRE(asks_for_layers(records));
  CHECK(ranking_question(records) == "which layer breaks first");
  const LayerRanking ranking = rank_layers(records);
  CHECK(ranking.formats == std::vector<std::string>{"mxint8", "mxfp8_e4m3"});
  CHECK(names(ranking) ==
        std::vector<std::string>{"conv2", "fc1", "conv1", "fc3", "fc2", "all layers"});
  CHECK(ranking.layers[1].cells[1] == &records[8]);
  CHECK(ranking_rule(ranking).find("in the order for mxint8, the first format") !=
        std::string::npos);
  const std::vector<std::string> sentences = ranking_sentences(ranking);
  REQUIRE(sentences.size() == 2);
  CHECK_THAT(sentences[0],
             Catch::StartsWith("mxint8 on f32.sequential: lowest SQNR: conv2 (20.0 dB"));
  CHECK_THAT(sentences[1],
             Catch::StartsWith("mxfp8_e4m3 on f32.sequential: lowest SQNR: fc1 (10.0 dB"));
}

TEST_CASE("a layer that gives NaN is first of all", "[fast]") {
  std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {30, 25, 10, 40, 35, 5}});
  rows[3]["metrics"]["sqnr_db"] = rows[3]["metrics"]["loss"] = nullptr;
  const std::vector<ReportRow> records = report_rows_of(rows);
  const LayerRanking ranking = rank_layers(records);
  CHECK(names(ranking)[0] == "fc2");
  CHECK_THAT(ranking_sentences(ranking)[0], Catch::Contains(": fc2 (NaN or infinite outputs"));
}

TEST_CASE("among layers that give NaN the larger loss is first, whatever another format does",
          "[fast]") {
  // The second format has the opposite order.
  std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {50, 10, 40, 5, 45, 5}});
  lose(rows[0], 4900, -0.97);
  lose(rows[1], 4400, -0.862);
  lose(rows[2], 5000, -0.862);
  lose(rows[4], 3, 0.001);
  // An SQNR of the calibration samples does not make up for NaN outputs of test samples.
  rows[4]["metrics"]["sqnr_db"] = 60;
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(loses_numbers(records[4]));
  const LayerRanking ranking = rank_layers(records);
  CHECK(names(ranking) ==
        std::vector<std::string>{"conv1", "fc1", "conv2", "fc3", "fc2", "all layers"});
  const std::string sentence = ranking_sentences(ranking)[0];
  CHECK_THAT(sentence, Catch::Contains(
                           "largest loss: conv1 (NaN or infinite outputs, -97.00 points); also NaN "
                           "or infinite: fc1, -86.20 points; conv2, -86.20 points; fc3"));
  CHECK(comes_first(records[0], records[1], false));
  CHECK_FALSE(comes_first(records[0], records[1], true));
}

TEST_CASE("of a tuned network the share of NaN outputs decides among those layers", "[fast]") {
  std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {50, 10, 40, 5, 45, 5}});
  lose(rows[0], 4400, -0.97);
  lose(rows[1], 5000, -0.862);
  const auto order = [&] { return names(rank_layers(report_rows_of(rows))); };
  CHECK(order()[0] == "conv1");
  for (Json& row : rows) row["point"]["tuned_from"] = "0123456789abcdef";
  CHECK(order() == std::vector<std::string>{"conv2", "conv1", "fc1", "fc3", "fc2", "all layers"});
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK_THAT(ranking_rule(rank_layers(records)),
             Catch::Contains("NaN or infinite outputs first, the largest share among them"));
}

TEST_CASE("a loss that is no number is the largest", "[fast]") {
  std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {50, 10, 40, 5, 45, 5}});
  lose(rows[0], 5000, -0.97);
  lose(rows[1], 10, 0);
  rows[1]["metrics"]["difference"] = rows[1]["metrics"]["baseline_top1"] = nullptr;
  CHECK(names(rank_layers(report_rows_of(rows)))[0] == "conv2");
}

TEST_CASE("layers that their intervals do not tell apart are named", "[fast]") {
  std::vector<Json> rows = rows_of({{36, 34.9, 35.1, 50, 45, 10}, {30, 25, 10, 40, 35, 5}});
  for (Json& row : rows) {
    row["metrics"]["sqnr_error_db"] = 0.2;
    row["metrics"]["difference"] = -0.1;
    row["metrics"]["difference_ci95"] = {-0.2, -0.05};
  }
  rows[1]["metrics"]["difference_ci95"] = {-0.2, 0.01};
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::vector<std::string> sentences = ranking_sentences(rank_layers(records));
  CHECK_THAT(sentences[0],
             Catch::Contains("conv2 (34.9 dB, -10.00 points), not distinguishable from "
                             "fc1; its top-1 is not distinguishable from float32's; all"));
  CHECK_THAT(sentences[1], !Catch::Contains("distinguishable"));
}

TEST_CASE("layers of a recipe are ranked against the recipe as it is", "[fast]") {
  const std::vector<Json> rows =
      rows_of_recipe({{"format", "int8"}}, {14, 13, 12.9, 18, 16, 9, 13.2});
  const std::vector<ReportRow> records = report_rows_of(rows);
  REQUIRE(asks_for_layers(records));
  CHECK(ranking_question(records) == "which layer of a recipe tolerates another format");
  const LayerRanking ranking = rank_layers(records);
  CHECK(ranking.base == &records[6]);
  CHECK(ranking.formats == std::vector<std::string>{"int8"});
  CHECK(names(ranking) ==
        std::vector<std::string>{"fc1", "conv2", "conv1", "fc3", "fc2", "all layers"});
  CHECK(ranking_sentences(ranking)[0] ==
        "int8 on f32.sequential: lowest SQNR: fc1 (12.9 dB (-0.3), -3.00 points (+4.00)), not "
        "distinguishable from conv2; the recipe as it is: 13.2 dB, -7.00 points; all layers: 9.0 "
        "dB (-4.2), -6.00 points (+1.00).");
  CHECK_THAT(ranking_rule(ranking), Catch::Contains("The recipe as it is: 13.2 dB"));
}

TEST_CASE("of a tuned network a sentence has no accuracy beside SQNR: their references differ",
          "[fast]") {
  std::vector<Json> rows = rows_of_recipe({{"format", "int8"}}, {14, 13, 12.9, 18, 16, 9, 13.2});
  for (Json& row : rows) row["point"]["tuned_from"] = "0123456789abcdef";
  const std::vector<ReportRow> records = report_rows_of(rows);
  const LayerRanking ranking = rank_layers(records);
  CHECK_THAT(ranking_rule(ranking),
             Catch::Contains("in dB against the tuned weights in float32 when") &&
                 Catch::Contains("the change from the network before tuning in float32 in points"));
  const std::string sentence = ranking_sentences(ranking)[0];
  CHECK_THAT(sentence,
             Catch::StartsWith("int8 on f32.sequential: lowest SQNR: fc1 (12.9 dB (-0.3))") &&
                 Catch::EndsWith("; SQNR compares with the tuned weights in float32.") &&
                 !Catch::Contains("points") && !Catch::Contains("float32's"));
}

TEST_CASE("of a tuned network no accuracy stands beside NaN or no noise either", "[fast]") {
  std::vector<Json> rows = rows_of_recipe({{"format", "int8"}}, {14, 13, 12.9, 18, 16, 9, 13.2});
  for (Json& row : rows) row["point"]["tuned_from"] = "0123456789abcdef";
  lose(rows[0], 4900, -0.97);
  lose(rows[1], 4400, -0.862);
  rows[6]["metrics"]["sqnr_db"] = nullptr;
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::string sentence = ranking_sentences(rank_layers(records))[0];
  CHECK_THAT(sentence, Catch::Contains("lowest SQNR: conv1 (NaN or infinite outputs); also NaN or "
                                       "infinite: conv2; the recipe as it is: no noise;") &&
                           !Catch::Contains("points"));
}

TEST_CASE("float32 in a recipe asks which layer to keep wide", "[fast]") {
  std::vector<Json> rows = rows_of_recipe(nullptr, {14, 13, 12.9, 18, 16, 0, 13.2});
  rows[5]["metrics"]["sqnr_db"] = nullptr;
  rows[5]["metrics"]["difference"] = 0;
  const std::vector<ReportRow> records = report_rows_of(rows);
  REQUIRE(asks_for_layers(records));
  CHECK(ranking_question(records) == "which layer is worth keeping wide");
  const LayerRanking ranking = rank_layers(records);
  CHECK(ranking_title(ranking) == "Layers, the highest SQNR first");
  CHECK(names(ranking) ==
        std::vector<std::string>{"fc2", "fc3", "conv1", "conv2", "fc1", "all layers"});
  CHECK_THAT(ranking_sentences(ranking)[0],
             Catch::StartsWith("float32 on f32.sequential: highest SQNR: fc2 (18.0 dB (+4.8)"));
  // A network with all layers at float32 is not quantized.
  CHECK_FALSE(records[5].quantized());
  CHECK(records[5].formats() == "float32");
  CHECK(records[4].quantized());
}

TEST_CASE("ordinary rows ask for no ranking", "[fast]") {
  CHECK_FALSE(asks_for_layers(report_rows_of(sample::rows())));
  CHECK_FALSE(asks_for_layers({}));
}

}  // namespace layer_ranking_test

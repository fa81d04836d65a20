// Layers stand in the order in which they break.
#include "experiments/report/layer_ranking.hpp"

#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

using namespace numemu::experiments;
using Json = nlohmann::ordered_json;

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

}  // namespace

TEST_CASE("the noisiest layer is first, all layers together last", "[fast]") {
  const std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {30, 25, 10, 40, 35, 5}});
  const std::vector<Record> records = read_records(rows);
  REQUIRE(asks_for_layers(records));
  const LayerRanking ranking = rank_layers(records);
  CHECK(ranking.formats == std::vector<std::string>{"mxint8", "mxfp8_e4m3"});
  CHECK(names(ranking) ==
        std::vector<std::string>{"fc1", "conv2", "conv1", "fc3", "fc2", "all layers"});
  CHECK(ranking.layers[0].cells[1] == &records[8]);
  const std::vector<std::string> sentences = ranking_sentences(ranking);
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].starts_with("mxint8: conv2 breaks first (20.0 dB at the output"));
  CHECK(sentences[1].starts_with("mxfp8_e4m3: fc1 breaks first (10.0 dB at the output"));
}

TEST_CASE("a layer that gives NaN is first of all", "[fast]") {
  std::vector<Json> rows = rows_of({{40, 20, 30, 50, 45, 10}, {30, 25, 10, 40, 35, 5}});
  rows[3]["metrics"]["sqnr_db"] = rows[3]["metrics"]["loss"] = nullptr;
  const std::vector<Record> records = read_records(rows);
  const LayerRanking ranking = rank_layers(records);
  CHECK(names(ranking)[0] == "fc2");
  CHECK(ranking_sentences(ranking)[0].starts_with("mxint8: fc2 breaks first (NaN or infinite"));
}

TEST_CASE("ordinary rows ask for no ranking", "[fast]") {
  CHECK_FALSE(asks_for_layers(read_records(sample::rows())));
  CHECK_FALSE(asks_for_layers({}));
}

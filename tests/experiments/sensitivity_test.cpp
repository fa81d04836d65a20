// The most sensitive layer: every layer and all of them at every format, sorted and judged.
#include <cmath>
#include <fstream>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/places_network.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace sensitivity_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun sensitivity_run(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"net=" + (folder / "n.safetensors"), "data=clicks",
                                        "images=40"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("sensitivity", folder, overrides);
}

Conclusion answer(const ExperimentRun& run) { return find_experiment("sensitivity").run(run); }

double number(const std::string& text) { return std::stod(text); }

}  // namespace

TEST_CASE("of a tuned checkpoint the note on its two references comes first", "[fast]") {
  const TemporaryFolder folder;
  ExperimentRun run = sensitivity_run(folder, {"formats=int4"});
  net::Checkpoint checkpoint = net::read_safetensors(folder / "n.safetensors");
  net::Graph before = net::build_net("dlrm-small", {21}, 2);
  net::initialize(before, 12);
  net::add_tuned_from(checkpoint, before);
  net::write_safetensors(folder / "n.safetensors", checkpoint);
  const Conclusion conclusion = answer(run);
  REQUIRE(conclusion.sentences.size() == 2);
  CHECK_THAT(conclusion.sentences[0],
             Catch::StartsWith("Note: accuracy is compared with the network before tuning"));
  CHECK_THAT(conclusion.sentences[1], !Catch::Contains("points"));
  CHECK(conclusion.tables[0].header[1] == "top-1 difference from before tuning, points");
  CHECK(conclusion.tables[0].header[3] == "output SQNR dB against the tuned weights");
}

TEST_CASE("each layer alone and all together at each format", "[fast]") {
  const TemporaryFolder folder;
  ExperimentRun run = sensitivity_run(folder, {"formats=mx(float4_e2m1fn,16)"});
  std::vector<std::string> labels;
  run.hooks.on_point = [&](std::size_t, std::size_t, std::size_t, const Point& point) {
    labels.push_back(point.where);
  };
  const Conclusion conclusion = answer(run);
  const net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  const std::vector<std::string> layers = net::gemm_layer_names(graph);

  REQUIRE(conclusion.tables.size() == 1);
  REQUIRE(conclusion.sentences.size() == 1);
  for (const ResultTable& table : conclusion.tables) {
    CHECK(table.header.size() == 7);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      REQUIRE(table.rows[i].size() == 7);
      names.push_back(table.rows[i][0]);
      // The largest damage comes first, all layers together apart at the end.
      if (i > 0 && i + 1 < table.rows.size() && table.rows[i][3] != "-")
        CHECK(number(table.rows[i - 1][3]) <= number(table.rows[i][3]));
    }
    std::vector<std::string> expected = layers;
    expected.emplace_back("all layers");
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    CHECK(names == expected);
    CHECK(table.rows.back()[0] == "all layers");
  }
  CHECK_THAT(conclusion.tables[0].title, Catch::StartsWith("mx(float4_e2m1fn,16)"));
  // The sentence names the first row, and the unit.
  CHECK_THAT(conclusion.sentences[0],
             Catch::Contains(" on f32.sequential: lowest SQNR: " + conclusion.tables[0].rows[0][0] +
                             " (" + conclusion.tables[0].rows[0][3] + " dB"));
  REQUIRE(labels.size() == layers.size() + 2);  // what runs, and the last one at its end
  CHECK(labels[0] == "mx(float4_e2m1fn,16) in " + layers[0]);
  CHECK(labels.back() == "mx(float4_e2m1fn,16) in all layers");

  const std::vector<Json> rows = merged_rows(run.out);
  REQUIRE(rows.size() == layers.size() + 1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    // Alone: every other layer is float32, and the noise of those before it is none.
    const Json& of_layers = rows[i]["layers"];
    REQUIRE(of_layers.size() == layers.size());
    CHECK(of_layers[i]["sqnr_db"].is_number());
    if (i > 0) CHECK(of_layers[0]["sqnr_db"].is_null());
  }

  REQUIRE_FALSE(conclusion.findings.empty());
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    const bool within = finding.low >= finding.predicted - kLayerHolds &&
                        finding.high <= finding.predicted + kLayerHolds;
    CHECK((finding.verdict == Verdict::holds) == within);
    CHECK(finding.claim == "noise");
    CHECK(finding.low <= finding.measured);
    CHECK(finding.measured <= finding.high);
  }
}

TEST_CASE("one layer at a time is changed from a recipe", "[fast]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "base.json") << R"({"numemu_recipe": 1,
    "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}},
    "gemms": {"fprop": {"unit": "exact"}},
    "layers": [{"match": "bottom.fc1", "roles": {"weight": {"format": "int16"}}}]})";
  const std::string file = folder / "base.json";
  const ExperimentRun run = sensitivity_run(folder, {"formats=int4,float32", "recipe=" + file});
  const Conclusion conclusion = answer(run);
  const net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  const std::vector<std::string> layers = net::gemm_layer_names(graph);
  const std::vector<Json> rows = merged_rows(run.out);
  REQUIRE(rows.size() == 2 * layers.size() + 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& recipe = rows[i]["point"]["recipe"];
    CHECK(recipe["roles"]["weight"]["format"] == "int8");
    CHECK_THAT(recipe["gemms"]["fprop"]["unit"].get<std::string>(), Catch::Contains("exact"));
    CHECK(recipe["layers"][0]["match"] == "bottom.fc1");
    REQUIRE(recipe["layers"].size() == (i + 1 < rows.size() ? 2 : 1));  // the last: as it is
    if (i < layers.size()) CHECK(recipe["layers"][1]["match"] == layers[i]);
  }
  REQUIRE(conclusion.tables.size() == 2);
  for (const ResultTable& table : conclusion.tables) CHECK(table.rows.size() == layers.size() + 2);
  CHECK_THAT(conclusion.tables[0].title, Catch::StartsWith("int4 in one layer of " + file));
  CHECK_THAT(conclusion.tables[1].title, Catch::EndsWith("the highest SQNR first"));
  REQUIRE(conclusion.sentences.size() == 2);
  CHECK_THAT(conclusion.sentences[0], Catch::Contains("the recipe as it is: "));
  // Float32 is the widest: the layer that gains most comes first.
  CHECK_THAT(conclusion.sentences[1],
             Catch::Contains("highest SQNR: " + conclusion.tables[1].rows[0][0] + " ("));
  CHECK_THAT(
      message_of([&] { answer(sensitivity_run(folder, {"recipe=" + (folder / "none.json")})); }),
      Catch::Contains("none.json"));
  std::ofstream(folder / "bad.json") << R"({"numemu_recipe": 1, "rolls": {}})";
  CHECK_THAT(
      message_of([&] { answer(sensitivity_run(folder, {"recipe=" + (folder / "bad.json")})); }),
      Catch::Contains("bad.json") && Catch::Contains("rolls"));
}

TEST_CASE("weights have a scale per channel, or per tensor where the setting says so", "[fast]") {
  for (const std::string granularity : {"channel", "tensor"}) {
    const TemporaryFolder folder;
    const ExperimentRun run = sensitivity_run(
        folder,
        {"formats=int4,mxfp4", granularity == "channel" ? "roles=both" : "granularity=tensor"});
    const Conclusion conclusion = answer(run);
    CHECK_THAT(conclusion.tables[0].title,
               Catch::StartsWith("int4 in one layer, weights per " + granularity + ", "));
    CHECK_THAT(conclusion.tables[1].title, Catch::StartsWith("mxfp4 in one layer, the "));
    const Json roles = merged_rows(run.out)[0]["point"]["recipe"]["layers"][0]["roles"];
    CHECK(roles["weight"]["granularity"] == granularity);
    CHECK_FALSE(roles["activation"].contains("granularity"));  // the default, per tensor
    CHECK_THAT(message_of([&] { answer(sensitivity_run(folder, {"granularity=row"})); }),
               Catch::Contains("--set: granularity: "));
  }
}

TEST_CASE("one role alone leaves the other as it is", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = sensitivity_run(folder, {"formats=int4", "roles=weight"});
  answer(run);
  // Layers of two activations have no weight to try.
  const net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  std::size_t points = 1;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) points += layer.weight != nullptr;
  CHECK(points < net::gemm_layers(graph).size() + 1);
  const std::vector<Json> rows = merged_rows(run.out);
  CHECK(rows.size() == points);
  for (const Json& row : rows) {
    for (const Json& tensor : row["predicted"]["tensors"]) CHECK(tensor["role"] == "weight");
    CHECK_FALSE(row["predicted"]["tensors"].empty());
  }
}

TEST_CASE("settings that make no sweep are refused", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& setting) {
    return message_of([&] { answer(sensitivity_run(folder, {setting})); });
  };
  CHECK(message("roles=gradient") ==
        "--set: roles: expected both, weight or activation, not 'gradient'");
  CHECK_THAT(message("images=0"), Catch::StartsWith("--set: images: expected a whole number"));
  // Before the long work, not after it.
  ExperimentRun run = sensitivity_run(folder, {"formats=int99"});
  bool said = false;
  run.say = [&](const std::string&) { said = true; };
  CHECK_THAT(message_of([&] { answer(run); }), Catch::Contains("int99"));
  CHECK_FALSE(said);
  CHECK_THAT(message("formats=int4,int4"), Catch::StartsWith("--set: formats: "));
  CHECK_THAT(message("unit=nowhere"), Catch::Contains("nowhere"));
  CHECK_THAT(message("net=lenat"), Catch::Contains("lenet"));
}

TEST_CASE("the table and the sentence have one metric, that of the task", "[fast]") {
  for (const auto& [targets, header, words] :
       {std::tuple("classes", "mean IoU difference, points", " points of mean IoU"),
        std::tuple("values", "mean squared error difference", " % of the mean squared error"),
        std::tuple("none", "cosine with float32", "")}) {
    const TemporaryFolder folder;
    std::vector<std::string> settings = testing::write_places(folder, targets, true);
    settings.insert(settings.end(), {"formats=mxfp4", "images=20"});
    const ExperimentRun run = testing::smoke_run("sensitivity", folder, settings);
    const Conclusion found = answer(run);
    INFO(targets);
    CHECK(found.tables.at(0).header[1] == header);
    const std::string& shown = found.tables[0].rows.at(0)[1];
    CHECK(shown != "-");
    CHECK(found.tables[0].rows[0][2].front() == '[');
    REQUIRE(found.sentences.size() == 2);
    CHECK_THAT(found.sentences[0], Catch::StartsWith("Note: The network has 1 quantizer of its"));
    CHECK_THAT(found.sentences[1], Catch::Contains(words));
    if (std::string(targets) == "classes")
      CHECK_THAT(found.sentences[1], Catch::Contains(", " + shown + words));
  }
}

}  // namespace sensitivity_test

// Chains of tuning steps beside plain rounding, on a small network.
#include <fmt/format.h>

#include <filesystem>

#include "emu/net/model/onnx/import.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/places_network.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace post_training_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun post_training_run(const TemporaryFolder& folder,
                                const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"net=" + (folder / "n.safetensors"), "data=clicks",
                                        "images=40", "samples=32"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("post-training", folder, overrides);
}

}  // namespace

TEST_CASE("every bit width is rounded plainly and after each chain", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const Conclusion found =
      experiment.run(post_training_run(folder, {"bits=w8a8,w4a4,mxfp4", "chains=bias_correction"}));
  REQUIRE(found.tables.size() == 1);
  const ResultTable& table = found.tables[0];
  REQUIRE(table.rows.size() == 6);
  CHECK(table.rows[0][0] == "w8a8");
  CHECK(table.rows[0][1] == "naive");
  CHECK(table.rows[3][1] == "bias_correction");
  const auto claims = claim_results(experiment.claims, found.findings);
  REQUIRE(claims.size() == 4);
  CHECK(found.findings.size() == 4);  // a gain for each width, and w4a4 beside float32
  CHECK(claims[0].found.compared() + claims[1].found.compared() == 3);
  for (const Finding& finding : found.findings)  // 8 bits lose nothing that could be regained
    if (finding.what.find("w8a8") != std::string::npos) CHECK(finding.claim == "nothing lost");
  CHECK(claims[3].worst == nullptr);  // no recipe file, so no mixture
  // Plain rounding minus itself is 0, and the second run reads what the first one stored.
  const Conclusion again =
      experiment.run(post_training_run(folder, {"bits=w8a8,w4a4,mxfp4", "chains=bias_correction"}));
  CHECK(again.tables[0].rows == table.rows);
}

TEST_CASE("pipelines, recipe files and formats of the ends are rounded, too", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const std::string file = folder / "r.json";
  numemu::test::write_file(file,
                           R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int3"}}})");
  const auto tops = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all;
    const Conclusion found = experiment.run(post_training_run(folder, settings));
    for (const auto& row : found.tables.at(0).rows) all.push_back(row[2] + " " + row[5]);
    return all;
  };
  // lenet has 61,470 weights, which get 3 bits and five scales, and 236 biases in float32:
  // (61470 x 3 / 32 + 5 + 236) / 61706 = 9.7 %. The tables of `clicks` stay in float32.
  ExperimentRun shipped = post_training_run(folder, {"net=lenet", "data=glyphs", "bits=" + file});
  shipped.folders.data = NUMEMU_SOURCE "/data";
  const Conclusion mixture = experiment.run(shipped);
  REQUIRE(mixture.findings.back().claim == "size");
  CHECK_THAT(mixture.findings.back().what,
             Catch::EndsWith("9.7 % of float32's size, minus float32, points"));
  // A pipeline is its steps, on blocks too; weights alone are another recipe than both at 3 bits.
  const auto named = tops({"bits=w3a3,mxfp4," + file, "chains=light"}),
             steps = tops({"bits=w3a3,mxfp4", "chains=calibrate(percentile(99.9))+batch_norm"}),
             ends = tops({"bits=w3a3", "chains=light", "ends=int8"});
  REQUIRE(named.size() == 6);
  CHECK(std::vector<std::string>(named.begin(), named.begin() + 4) == steps);
  CHECK(named[4] != named[0]);
  CHECK(ends[0] != named[0]);
}

TEST_CASE("trials are known by what recipe files and codebooks hold", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const auto write = [&](double largest) {
    const double entries[] = {-1, 0, largest};
    write_npy(folder / "c.npy", ArrayType::float64, {3}, entries);
  };
  const std::string format = "codebook(" + (folder / "c.npy") + ")";
  numemu::test::write_file(
      folder / "r.json",
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": ")" + format + "\"}}}");
  for (const std::string& bits : {folder / "r.json", format}) {
    const auto rows = [&] {
      return experiment.run(post_training_run(folder, {"bits=" + bits, "chains=naive"}))
          .tables.at(0)
          .rows;
    };
    write(1);
    const auto first = rows();
    CHECK(rows() == first);
    write(0.015625);
    const auto second = rows();
    REQUIRE(std::filesystem::remove(folder / "out/trials.jsonl"));
    CHECK(second == rows());
    CHECK(second != first);
  }
}

TEST_CASE("formats of the ends count behind the layers of a stage", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const std::string layers =
                        R"("layers": [{"match": "*", "roles": {"weight": {"format": "int2"}}}])",
                    head = R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int3"}})";
  const auto tops = [&](const std::string& recipe, const std::string& ends) {
    numemu::test::write_file(folder / "r.json", recipe);
    const auto found = experiment.run(
        post_training_run(folder, {"bits=" + (folder / "r.json"), "chains=naive", "ends=" + ends}));
    return found.tables.at(0).rows.at(0);
  };
  const std::string staged =
      head + R"(, "stages": [{"from": {"epoch": 1}, "patch": {)" + layers + "}}]}";
  CHECK(tops(staged, "int8") == tops(head + ", " + layers + "}", "int8"));
  CHECK(tops(staged, "int8") != tops(staged, "same"));
}

TEST_CASE("plain rounding comes first, wherever the chains name it", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const auto rows = [&](const std::string& chains) {
    return experiment.run(post_training_run(folder, {"bits=w4a4", chains})).tables.at(0).rows;
  };
  const auto last = rows("chains=light,naive");
  REQUIRE(last.size() == 2);
  CHECK(last[0][1] == "naive");
  CHECK(last == rows("chains=light"));
}

TEST_CASE("findings name the format of the ends", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const auto findings =
      experiment.run(post_training_run(folder, {"bits=w4a4", "chains=light", "ends=int8"}))
          .findings;
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings)
    CHECK_THAT(finding.what, Catch::StartsWith("top-1 of w4a4, first and last layer int8, after"));
}

TEST_CASE("bits and chains that are not there are named", "[fast]") {
  const TemporaryFolder folder;
  const auto fails = [&](const std::string& setting, const std::string& with) {
    CHECK_THROWS_WITH(find_experiment("post-training").run(post_training_run(folder, {setting})),
                      Catch::Contains(with));
  };
  fails("chains=batchnorm", "--set: chains: unknown tuning step 'batchnorm'");
  fails("bits=w4a", "w4a");
}

TEST_CASE("of class maps the task's metric counts places with a class, by sample", "[fast]") {
  const TemporaryFolder folder;
  const std::vector<std::string> places = testing::write_places(folder, "classes");
  const auto answer = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings = places;
    settings.insert(settings.end(),
                    {"bits=w4a4", "chains=calibrate(percentile(99.9))", "images=20"});
    settings.insert(settings.end(), more.begin(), more.end());
    return find_experiment("post-training")
        .run(testing::smoke_run("post-training", folder, settings));
  };
  const net::Dataset data = net::load_dataset(places[1].substr(5), "");
  const net::Graph graph = net::import_onnx(net::read_onnx(folder / "p.onnx")).graph;
  net::Numerics float32;
  const auto scores = net::scores_for(data, {"mean_iou"});
  const net::Evaluation exact = net::evaluate(graph, data, net::Split::test, 20, float32, scores);
  REQUIRE(exact.n == 40);  // two of four places are ignored
  CHECK(targets_text(data, exact) == "40 places in 20 samples");
  const std::vector<RowScore> expected = scores_of(data, scores, exact, exact);

  const Conclusion iou = answer({});
  CHECK(iou.tables[0].title == fmt::format("mean IoU on 20 test samples, float32 {} %",
                                           percent_text(expected[0].value.value())));
  CHECK(iou.tables[0].header[2] == "mean IoU %");
  REQUIRE(iou.sentences.size() == 1);
  CHECK(iou.sentences[0] == "The claims compare the mean IoU of data set npy, not top-1.");
  CHECK_THAT(iou.findings.at(0).what, Catch::StartsWith("mean IoU of w4a4 after"));

  // A share of 40, not of the 80 with those that are ignored; its interval that of 20 samples.
  const Conclusion top1 = answer({"metric=top1"});
  const double share = static_cast<double>(exact.correct) / 40;
  CHECK(top1.tables[0].title ==
        fmt::format("top-1 on 20 test samples, float32 {} %", percent_text(share)));
  CHECK(top1.sentences.empty());
  // The second run reads what the first one stored, to the same intervals.
  CHECK(answer({"metric=top1"}).tables[0].rows == top1.tables[0].rows);
  CHECK(answer({}).tables[0].rows == iou.tables[0].rows);
  CHECK_THROWS_WITH(answer({"metric=mse"}), Catch::StartsWith("metric mse needs numbers"));
}

TEST_CASE("numbers as targets and data without targets have their metrics", "[fast]") {
  for (const std::string targets : {"values", "none"}) {
    const TemporaryFolder folder;
    std::vector<std::string> settings = testing::write_places(folder, targets, targets == "none");
    settings.insert(settings.end(),
                    {"bits=w8a8,w4a4", "chains=calibrate(percentile(99.9))", "images=20"});
    const Conclusion found =
        find_experiment("post-training").run(testing::smoke_run("post-training", folder, settings));
    const bool values = targets == "values";
    CHECK_THAT(found.tables[0].title,
               Catch::StartsWith(values ? "mean squared error on 20 test samples, float32 0."
                                        : "cosine with float32 on 20 test samples, float32 1.0"));
    REQUIRE(found.tables[0].rows.size() == 4);
    CHECK((found.tables[0].rows[0][5] == "-") != values);  // no loss without targets
    CHECK(found.findings.size() == (values ? 3 : 2));      // no loss of cosine is called small
    REQUIRE(found.sentences.size() == (values ? 1 : 2));   // a note on the quantizer comes first
    if (!values)
      CHECK_THAT(found.sentences[0], Catch::StartsWith("Note: The network has 1 quantizer of its"));
    // Above 0 is better, though less of an error is: eight bits lose less than four.
    CHECK(found.findings[0].low <= found.findings[0].measured);
    const double at8 = std::stod(found.tables[0].rows[0][2]),
                 at4 = std::stod(found.tables[0].rows[2][2]);
    CHECK((values ? at8 < at4 : at8 > at4));
    if (values) {
      const Finding& close = found.findings[2];
      CHECK(close.measured < 0);
      CHECK(close.high >= close.measured);
      CHECK(close.low <= close.measured);
    }
  }
}

TEST_CASE("steps that compare classes are left out of chains where targets are numbers", "[fast]") {
  const TemporaryFolder folder;
  const auto answer = [&](const std::string& chains) {
    std::vector<std::string> settings = testing::write_places(folder, "values", false);
    settings.insert(settings.end(), {"bits=w4a4", "chains=" + chains, "images=20"});
    return find_experiment("post-training")
        .run(testing::smoke_run("post-training", folder, settings));
  };
  const Conclusion with = answer("calibrate(percentile(99.9))+bias"),
                   without = answer("calibrate(percentile(99.9))");
  CHECK_THAT(with.sentences[0], Catch::StartsWith("Note: Chains are done without bias,"));
  CHECK(with.tables[0].rows[1][2] == without.tables[0].rows[1][2]);
  CHECK_THROWS_WITH(answer("bias"), Catch::Contains("bias: expected a task of classes"));
}

TEST_CASE("experiments that count right answers by sample refuse other data", "[fast]") {
  const TemporaryFolder folder;
  for (const std::string targets : {"classes", "values", "none"}) {
    const std::vector<std::string> places = testing::write_places(folder, targets);
    for (const std::string name : {"zap", "mask-diversity", "transposable", "data-free"}) {
      const std::string net = name == "zap" || name == "data-free" ? places[0] : "nets=lenet";
      CHECK_THROWS_WITH(
          find_experiment(name).run(testing::smoke_run(name, folder, {net, places[1]})),
          Catch::StartsWith("data set npy: experiment " + name + " counts right answers"));
    }
  }
}

}  // namespace post_training_test

// numemu experiment: the list, one run, and settings that do not exist.

#include <algorithm>
#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/small_network.hpp"

namespace experiment_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

TEST_CASE("without a name the experiments are listed", "[fast]") {
  const Scratch s;
  const Result text = s.run("experiment");
  REQUIRE(text.code == 0);
  CHECK(text.err.empty());
  CHECK_THAT(text.out, Contains("experiment") && Contains("question") && Contains("sensitivity ") &&
                           Contains(" which layer breaks first") && Contains("mvue") &&
                           Contains("transposable") && Contains("mask-diversity") &&
                           Contains("stochastic-pruning") && Contains("zap"));
  const Json all = Json::parse(s.run("experiment --json").out);
  REQUIRE(all.is_array());
  bool found = false;
  for (const Json& experiment : all) {
    CHECK_FALSE(experiment["summary"].get<std::string>().empty());
    for (const Json& setting : experiment["settings"]) {
      for (const char* key : {"key", "smoke", "default", "full", "doc"})
        CHECK(setting[key].is_string());
    }
    if (experiment["name"] != "sensitivity") continue;
    found = true;
    CHECK(experiment["settings"][0]["key"] == "net");
  }
  CHECK(found);
}

TEST_CASE("a finding that fails is a result, and an error under --strict alone", "[fast]") {
  const Scratch s;
  // The first layer of lenet has so few weights that those of int4 are far from random ones.
  const std::string command =
      "experiment sensitivity --size smoke --quiet --set formats=int4 --set images=50 --out o";
  const Result result = s.run(command);
  INFO(result.err);
  REQUIRE(result.code == 0);
  REQUIRE(read_file(s.path + "/o/experiment.json").find("\"fails\"") != std::string::npos);
  CHECK_THAT(result.out,
             Contains("The output's SQNR is within 1 dB of its prediction (derived here)."));
  CHECK_THAT(result.out, Catch::StartsWith("Of ") && Contains("(lenet on glyphs)"));
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') <= 40);
  // Its rows are named by layer and format, below the answer.
  const Result report = s.run("report o");
  CHECK_THAT(report.out, Catch::StartsWith("Of ") && Contains("point ") && Contains("int4 in "));
  const Result strict = s.run(command + " --strict");
  CHECK(strict.code == 1);
  CHECK(strict.out == result.out);
}

TEST_CASE("a dry run shows that an array is submitted once a round", "[fast]") {
  const Scratch s;
  const std::string command = "experiment mlperf --slurm --tasks 2 --dry-run --out o";
  CHECK_THAT(s.run(command).out, Contains("/o/slurm/array.sh\n") && Contains("after the array\n"));
  CHECK_THAT(s.run(command + " --rounds 3").out,
             Contains("/o/slurm/array.sh, submitted 3 times, each after the one before\n") &&
                 Contains("after the last array\n"));
}

TEST_CASE("experiments refuse what a setting does not take before they write", "[fast]") {
  const Scratch s;
  const auto refuses = [&](const std::string& name, const std::string& setting) {
    INFO(name << " " << setting);
    const Result result = s.run("experiment " + name + " --size full --out o --set " + setting);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(s.path + "/o"));
  };
  for (const Json& experiment : Json::parse(s.run("experiment --json").out)) {
    for (const Json& setting : experiment["settings"]) {
      const std::string value = setting["full"].get<std::string>();
      if (value.empty() || value.find_first_not_of("0123456789.,e-") != std::string::npos) continue;
      if (value == "-") continue;
      refuses(experiment["name"].get<std::string>(), setting["key"].get<std::string>() + "=-7e99x");
      break;  // the other settings: tests/experiments/engine/experiment_test.cpp
    }
  }
  for (const char* setting : {"nets=mlp,mlp", "batch=126"}) refuses("birder", setting);
}

TEST_CASE("an experiment leaves rows and a report and gives the same bytes again", "[slow]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const std::string command =
      "experiment sensitivity --size smoke --set net=n.safetensors --set data=clicks --set "
      "'formats=int4,mx(float4_e2m1fn,16)' --set images=50 --out o --json";
  const Result first = s.run(command);
  INFO(first.err);
  REQUIRE(first.code == 0);  // for any verdicts
  CHECK_THAT(first.err, Contains("loading n.safetensors on clicks"));
  const Json json = Json::parse(first.out);
  CHECK(json["name"] == "sensitivity");
  CHECK(json["settings"]["images"] == "50");
  CHECK(json["settings"]["roles"] == "both");
  REQUIRE(json["tables"].size() == 2);
  const std::size_t points = json["tables"][0]["rows"].size();  // one per layer, and all of them
  CHECK(points > 2);
  REQUIRE(json["sentences"].size() == 2);
  bool failed = false;
  for (const Json& finding : json["findings"]) failed = failed || finding["verdict"] == "fails";
  CHECK(s.run(command + " --strict --quiet").code == (failed ? 1 : 0));
  CHECK(read_file(s.path + "/o/experiment.json") == first.out);
  const std::string rows = read_file(s.path + "/o/rows.jsonl");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == static_cast<std::ptrdiff_t>(2 * points));
  CHECK(std::filesystem::exists(s.path + "/o/report.html"));
  // Rows that are there are kept, and the answer is the same.
  const Result again = s.run(command + " --threads 1");
  CHECK(again.code == first.code);
  CHECK(again.out == first.out);
  CHECK(read_file(s.path + "/o/rows.jsonl") == rows);
}

TEST_CASE("report of a folder with an answer and no rows prints its path alone", "[fast]") {
  const Scratch s;
  s.file("experiment.json",
         R"({"numemu_experiment":1,"name":"why","sentences":["because"],"charts":[]})");
  const Result result = s.run("report .");
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.out == "./report.html\n");
  check_refused(s.run("report . --csv r.csv"), "expected rows for --csv");
}

}  // namespace experiment_test

// numemu search: a law, a network, and what is refused in one line.
#include <algorithm>
#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/small_network.hpp"

namespace search_command_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

TEST_CASE("search of a network leaves rows, trials and a report", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const std::string command =
      "search --net n.safetensors --data clicks --bits 6.5 --formats int4 int6 e2m3 --blocks 16 "
      "--refine 4 --measured 2 --random 1 --images 40 --quiet --out o";
  const Result result = s.run(command);
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("Predicted beside measured") &&
                             Contains("In the report: 1 sentence more, 3 findings and 2 tables"));
  CHECK(result.out.substr(0, result.out.find('\n')).find("is predicted to be the best of") !=
        result.out.npos);
  CHECK(std::ranges::count(result.out, '\n') <= 40);
  for (const char* file : {"rows.jsonl", "trials.jsonl", "report.html", "experiment.json"})
    CHECK(std::filesystem::exists(s.path + "/o/" + file));
  CHECK(s.run(command).out == result.out);
  // Of another seed the points are others: refused before any work.
  const auto trials = std::filesystem::file_size(s.path + "/o/trials.jsonl");
  check_refused(s.run(command + " --seed 1"), "another --seed");
  CHECK(std::filesystem::file_size(s.path + "/o/trials.jsonl") == trials);
  CHECK(s.run(command).out == result.out);
  const Json json = Json::parse(s.run(command + " --json").out);
  CHECK(json["name"] == "search");
}

TEST_CASE("search takes lists and grids of formats as analyze does", "[fast]") {
  const Scratch s;
  const auto out = [&](const std::string& formats, const std::string& folder) {
    const Result r = s.run("search --dist normal --bits 4.5 --blocks 16 --rules absmax --formats " +
                           formats + " --quiet --out " + folder);
    INFO(r.err);
    CHECK(r.code == 0);
    return r.out.substr(0, r.out.rfind('\n', r.out.size() - 2));  // without the folder
  };
  CHECK(out("'e{1,2}m1,posit(4,{0,1})'", "a") == out("e1m1 e2m1 'posit(4,0)' 'posit(4,1)'", "b"));
  CHECK_THAT(out("all:4", "c"), Contains("the best of "));
}

TEST_CASE("search: what it concludes does not name its folder", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const auto run = [&](const std::string& folder) {
    const Result r = s.run(
        "search --net n.safetensors --data clicks --bits 6.5 --formats int4 int6 --blocks 16 "
        "--refine 2 --random 1 --images 40 --quiet --json --out " +
        folder);
    INFO(r.err);
    REQUIRE(r.code == 0);
    return Json::parse(r.out);
  };
  const Json one = run("o1"), other = run("o2");
  CHECK(one["sentences"] == other["sentences"]);
  CHECK_THAT(one["sentences"].dump(), Contains("Its recipe: recipe-best.json in this folder") &&
                                          Contains("2 of the best are measured, not 8"));
  CHECK(std::filesystem::exists(s.path + "/o2/recipe-best.json"));
}

TEST_CASE("search refuses in one line", "[fast]") {
  const Scratch s;
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"search", "--net NAME or --dist LAW"},
           {"search --net lenet", "--data"},
           {"search --dist normal --max-loss 1", "--max-loss"},
           {"search --dist normal --units neutral.exact", "--units"},
           {"search --dist normal --images 100", "--images: expected --net beside it"},
           {"search --dist ''", "--dist: expected a law or a file"},
           {"search --net lenet --data glyphs --tune light", "--tune: expected --max-loss"},
           {"search --net lenet --data glyphs --max-loss 1 --tune lite", "unknown tuning step"},
           {"search --net lenet --data glyphs --units neutral.mac", "neutral.mac"},
           {"search --net lenet --data glyphs --units neutral.xnor", "takes none of the"},
           {"search --net lenet --data glyphs --mac-cost 0.001", "--mac-cost: every configuration"},
           {"search --net lenet --data glyphs --rules flor", "'floor'"},
           {"search --dist normal --rules bogus", "--rules: unknown scale rule 'bogus'"},
           {"search --net lenet --data glyphs --scales int4", "not int4"},
           {"search --net lenet --data glyphs --max-loss 1 --refine 0", "--refine: expected at"},
           {"search --net lenet --data glyphs --refine 0 --measured 4",
            "--measured: expected at most the 0 of --refine, of which the best are measured, found "
            "4"},
           {"search --dist normal --formats all:9", "--formats: 'all:9', expected all:3 to all:8"},
           {"search --dist normal --formats 'e{2'", "'e{2': brackets that do not match"},
           {"search --dist nromal", "nromal"},
           {"search --dist lognormal:1e9", "lognormal"},
           {"search --dist missing.npy", "missing.npy"},
           {"search --dist normal --formats int8 --bits 4", "the space is empty"},
           {"search --dist normal --formats uint4", "uint4"},
           {"search --dist normal --blocks 0", "blocks"},
           {"search --dist normal --bits 99", "bits"},
           {"search --net lenet --data cifar10:nowhere", "nowhere"}}) {
    INFO(arguments);
    check_refused(s.run(arguments + " --quiet --out o"), message);
  }
}

}  // namespace search_command_test

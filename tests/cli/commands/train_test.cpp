// numemu train: lines and results, and runs that are killed.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace train_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

namespace {

// A little text that is easy to learn: 64 characters of context, about 40 windows.
std::string text_of(const Scratch& s, int threads = 1) {
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) {
    text += "the " + std::string(i % 3 == 0 ? "cat" : i % 5 == 0 ? "dog" : "owl") + " sat down, ";
    text += std::string(1, static_cast<char>('a' + i % 26)) + " times; ";
  }
  s.file("small.txt", text);
  return "train --net lstm-char --data text:small.txt --batch 8 --seed 1 --threads " +
         std::to_string(threads) + " ";
}

std::vector<std::string> state_and_results(const std::string& folder) {
  return {read_file(folder + "/lstm-char-text.safetensors"), read_file(folder + "/metrics.jsonl"),
          read_file(folder + "/state.safetensors")};
}

}  // namespace

TEST_CASE("training on a text reports perplexity and bits per character", "[fast]") {
  const Scratch s;
  const Result run = s.run(text_of(s) + "--epochs 3 --out o --json");
  REQUIRE(run.code == 0);
  const Json result = Json::parse(run.out);
  const Json& metrics = result["metrics"];
  // Of a loss in nats: perplexity is rounded to float32, bits are not.
  const double loss = metrics["loss"];
  CHECK(metrics["bits_per_character"] == Approx(loss / std::log(2.0)).epsilon(1e-12));
  CHECK(metrics["perplexity"] == Approx(std::exp(loss)).epsilon(1e-6));
  CHECK(std::filesystem::exists(s.path + "/" + result["checkpoint"].get<std::string>()));
  CHECK_THAT(run.err, Contains("bits per character"));
}

TEST_CASE("a finished run is reported again and another one takes its place", "[fast]") {
  const Scratch s;
  const std::string command = text_of(s) + "--epochs 1 --out o ";
  const Result first = s.run(command);
  REQUIRE(first.code == 0);
  const auto files = state_and_results(s.path + "/o");
  const Result again = s.run(command);
  CHECK(again.out == first.out);
  CHECK_THAT(again.err, Contains("finished after"));
  CHECK(state_and_results(s.path + "/o") == files);
  const Result other = s.run(command + "--lr 0.01");
  CHECK(other.code == 0);
  CHECK_THAT(other.err, !Contains("finished") && !Contains("resumed"));
  CHECK(state_and_results(s.path + "/o") != files);
}

TEST_CASE("lines name the stage of the recipe", "[fast]") {
  const Scratch s;
  const auto run = [&](int epoch, const std::string& more = "") {
    s.file("r.json", R"({"numemu_recipe": 1, "objectives": ["cross_entropy", "complement"],
      "stages": [{"from": {"epoch": )" +
                         std::to_string(epoch) + R"(},
                  "patch": {"roles": {"weight": {"format": "int8"}}}}]})");
    return s.run(text_of(s) + "--epochs 2 --out o --recipe r.json --fresh " + more);
  };
  const Result two = run(1);
  INFO(two.err);
  REQUIRE(two.code == 0);
  CHECK_THAT(two.err, Contains("  stage 0\n") && Contains("  stage 1\n") && !Contains("note: "));
  // The test after a training that did not reach the last stage.
  const Result one = run(2);
  CHECK_THAT(one.err, Contains("note: training ended in stage 0; the test uses the last one, "
                               "stage 1, as eval does\n"));
  CHECK_THAT(one.out, Contains("numerics of r.json, stage 1\n"));
  const Json json = Json::parse(run(2, "--json").out);
  CHECK(json["stage"] == 0);
  CHECK(json["test_stage"] == 1);
}

TEST_CASE("training says how many bytes it stores of a parameter", "[fast]") {
  const Scratch s;
  s.file("few.json", R"j({"numemu_recipe": 1, "roles": {"state": {"format": "bfloat16"}},
                          "update": {"master": "bfloat16", "rounding": "sr(16)"}})j");
  const std::string line =
      "stored of each parameter: 2.00 bytes of master weights, 4.00 of optimizer state; "
      "float32 4.00, 8.00\n";
  const Result few = s.run(text_of(s) + "--epochs 1 --out few --recipe few.json");
  INFO(few.err);
  REQUIRE(few.code == 0);
  CHECK_THAT(few.out, Contains(line));
  s.file("none.json", R"({"numemu_recipe": 1})");
  const Result none = s.run(text_of(s) + "--epochs 1 --out none --recipe none.json");
  CHECK_THAT(none.out, !Contains("stored of each"));
}

TEST_CASE("a run killed at any time goes on to the same bytes", "[slow]") {
  const Scratch s;
  const std::string options = "--epochs 12 --save-every 1 --quiet ";
  REQUIRE(s.run(text_of(s) + options + "--out whole").code == 0);
  int kills = 0;
  // Later and later, so that the end is reached on any machine.
  for (double seconds = 0.2;; seconds *= 1.1) {
    REQUIRE(kills < 200);
    const std::string limited = "cd " + s.path + " && timeout -s KILL " + std::to_string(seconds) +
                                " '" NUMEMU_PROGRAM "' " + text_of(s, 1 + kills % 3) + options +
                                "--out parts >/dev/null 2>&1";
    if (std::system(limited.c_str()) == 0) break;
    ++kills;
  }
  INFO(kills << " kills");
  CHECK(kills > 0);
  const auto whole = state_and_results(s.path + "/whole");
  CHECK(state_and_results(s.path + "/parts") == whole);
  for (const std::string& bytes : whole) CHECK(!bytes.empty());
}

TEST_CASE("the middle of another run is refused unless it is to start over", "[slow]") {
  const Scratch s;
  const std::string command = text_of(s) + "--epochs 2000 --save-every 1 --quiet --out o ";
  const std::string limited =
      "cd " + s.path + " && timeout -s KILL 5 '" NUMEMU_PROGRAM "' " + command + " 2>/dev/null";
  CHECK(std::system(limited.c_str()) != 0);
  REQUIRE(std::filesystem::exists(s.path + "/o/state.safetensors"));
  check_refused(s.run(command + "--lr 0.5"), "learning_rate was 0.002, is 0.5");
  CHECK(s.run(text_of(s) + "--epochs 1 --quiet --out o --fresh").code == 0);
}

}  // namespace train_test

// numemu train: rows and results, options that contradict, and runs that are killed.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "emu/net/model/safetensors.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

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

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  const std::string text = read_file(path);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    rows.push_back(Json::parse(text.substr(start, end - start)));
    start = end + 1;
  }
  return rows;
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
  const std::vector<Json> rows = rows_of(s.path + "/o/metrics.jsonl");
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i]["epoch"] == i);
    CHECK(rows[i]["step"] ==
          rows[0]["step"].get<std::int64_t>() * static_cast<std::int64_t>(i + 1));
    CHECK(rows[i]["skipped_steps"] == 0);
    CHECK(rows[i]["gradient_norm"].get<double>() > 0);
    CHECK(rows[i]["bits_per_character"].get<double>() > 0);
  }
  CHECK(rows[2]["train_loss"].get<double>() < rows[0]["train_loss"].get<double>());
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

TEST_CASE("rows name the stage of the recipe, and objectives come from it", "[fast]") {
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
  const std::vector<Json> rows = rows_of(s.path + "/o/metrics.jsonl");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["stage"] == 0);
  CHECK(rows[1]["stage"] == 1);
  CHECK_THAT(two.err, Contains("  stage 0\n") && Contains("  stage 1\n") && !Contains("note: "));
  std::string training;
  const numemu::net::Checkpoint file =
      numemu::net::read_safetensors(s.path + "/o/lstm-char-text.safetensors");
  for (const auto& [key, value] : file.metadata) training += key == "training" ? value : "";
  CHECK_THAT(training, Contains(" objectives cross_entropy complement"));
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
  const Json row = rows_of(s.path + "/few/metrics.jsonl").at(0);
  CHECK(row["master_bytes_per_parameter"] == 2);
  CHECK(row["state_bytes_per_parameter"] == 4);
  s.file("none.json", R"({"numemu_recipe": 1})");
  const Result none = s.run(text_of(s) + "--epochs 1 --out none --recipe none.json");
  CHECK_THAT(none.out, !Contains("stored of each"));
  CHECK_FALSE(rows_of(s.path + "/none/metrics.jsonl").at(0).contains("state_bytes_per_parameter"));
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

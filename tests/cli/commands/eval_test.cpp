// numemu eval: where time went, and batch normalisation folded into the weights.
#include <cmath>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/places_network.hpp"
#include "tests/experiments/small_network.hpp"

namespace eval_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

TEST_CASE("a profile is told on stderr and changes no number", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const std::string command =
      "eval --net n.safetensors --data clicks --images 40 --threads 1 --json --quiet";
  const Result plain = s.run(command);
  INFO(plain.err);
  REQUIRE(plain.code == 0);
  CHECK(plain.err.empty());
  const Result profiled = s.run(command + " --profile --fold-batch-norm");
  REQUIRE(profiled.code == 0);
  CHECK(profiled.out == plain.out);  // and a network without norms is what it was
  CHECK_THAT(profiled.err, Contains(" s of wall time, ") && Contains("on up to 1 threads") &&
                               Contains("outside matrix units: ") && Contains("bottom.fc1") &&
                               Contains("fprop") && Contains("GMAC/s"));
}

TEST_CASE("float32 is not compared with itself", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const std::string command = "eval --net n.safetensors --data clicks --images 40 --quiet";
  const Result float32 = s.run(command);
  REQUIRE(float32.code == 0);
  CHECK_THAT(float32.out, Contains(" %, difference -, loss ") && !Contains("points"));
  CHECK_THAT(float32.out, Contains("SQNR dB") && !Contains("predicted") && !Contains("verdict"));
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  CHECK_THAT(s.run(command + " --recipe r.json").out, Contains(" points, 95 % interval ["));
}

TEST_CASE("shares of saturated results say of how many they are", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const auto eval = [&](const std::string& unit) {
    s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}, "activation":
                     {"format": "int8"}}, "gemms": {"fprop": {"unit": ")" +
                         unit + "\"}}}");
    return s.run("eval --net n.safetensors --data clicks --images 40 --quiet --recipe r.json").out;
  };
  const std::string stops = eval("neutral.mac.int14.saturate");
  CHECK_THAT(stops, Contains("saturated on the way  ") && Contains("at an end") &&
                        Contains(" % of ") && Contains("; saturated on the way: of the results") &&
                        Contains("those that ended at a register's end"));
  const std::string wraps = eval("neutral.mac.int14.wrap");
  CHECK_THAT(wraps, Contains("wrapped: of the results computed again") && !Contains("at an end") &&
                        !Contains("saturated on the way"));
}

TEST_CASE("every layer of a recurrent network is in the row", "[slow]") {
  const Scratch s;
  std::string text;
  for (int i = 0; text.size() < 2000; ++i)
    text += std::string(i % 3 == 0 ? "cat" : "owl") + static_cast<char>('a' + i % 26) + ' ';
  s.file("small.txt", text);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  REQUIRE(s.run("train --net lstm-char --data text:small.txt --epochs 1 --out o --quiet").code ==
          0);
  const Result run = s.run(
      "eval --net o/lstm-char-text.safetensors --data text:small.txt --images 1 --recipe r.json "
      "--json --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Json row = Json::parse(run.out);
  std::vector<std::string> names;
  for (const Json& layer : row["layers"]) {
    names.push_back(layer["name"]);
    CHECK(layer["sqnr_db"].is_number());
    CHECK(layer["predicted_db"].is_number());
  }
  CHECK(names == std::vector<std::string>{"lstm.input", "lstm.recurrent", "head"});
  // Of a text: per character.
  const double loss = row["metrics"]["loss"];
  CHECK(row["metrics"]["bits_per_character"] == Approx(loss / std::log(2.0)).epsilon(1e-5));
  // Where no window's top-1 differs no interval of +-70 points is printed.
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "float16"}}})");
  for (int i = 0; i < 3; ++i) text += text;
  s.file("long.txt", text);
  const Result alike = s.run(
      "eval --net o/lstm-char-text.safetensors --data text:long.txt --images 5 --recipe r.json "
      "--no-predictions --quiet");
  INFO(alike.err);
  CHECK_THAT(alike.out,
             Contains("difference no window's figure differs from float32; at 95 % at most 70.8 "
                      "% of blocks of 2 windows do (Clopper-Pearson)") &&
                 Contains("none differs"));
}

TEST_CASE("where no sample differs eval says so instead of a wide interval", "[fast]") {
  const Scratch s;
  const TemporaryFolder folder;
  const auto settings = numemu::experiments::testing::write_places(folder, "classes");
  const auto eval = [&](const char* format) {
    s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": ")" +
                         std::string(format) + R"("}}})");
    const Result run = s.run("eval --net " + settings[0].substr(4) + " --data '" +
                             settings[1].substr(5) + "' --recipe r.json --images 20 --quiet");
    INFO(run.err);
    REQUIRE(run.code == 0);
    return run.out;
  };
  // 1 - 0.025^(1/20)
  const char* const sentence =
      "no sample's figure differs from float32; at 95 % at most 16.8 % of samples do "
      "(Clopper-Pearson)";
  const std::string alike = eval("float16"), other = eval("int2");
  CHECK_THAT(alike, Contains(std::string("difference ") + sentence) &&
                        Contains(std::string("mean_iou, pixel_accuracy, top1: ") + sentence) &&
                        !Contains("-16.8") && !Contains("0 in as many"));
  CHECK_THAT(other, !Contains("none differs") && Contains("points, 95 % interval ["));
}

TEST_CASE("auc depends on the order alone, so that eval does not say that no sample differs",
          "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "float16"}}})");
  const Result run = s.run(
      "eval --net n.safetensors --data clicks --images 40 --recipe r.json --metric auc "
      "--no-predictions --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out,
             Contains("[+0, +0]") && !Contains("none differs") && !Contains("figure differs"));
}

TEST_CASE("eval says where NaN and infinities arise, and what a prediction leaves out", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "float8_e5m2"},
    "activation": {"format": "float8_e5m2"}}, "gemms": {"fprop": {"unit": "neutral.mac.float16"}}})");
  const Result run =
      s.run("eval --net n.safetensors --data clicks --images 40 --recipe r.json --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Contains("change") && Contains("not finite\n") &&
                          Contains(": accumulator overflow (float16, at most 6.55e+04)") &&
                          Contains("outputs are") && Contains("(40 test samples)"));
  CHECK_THAT(run.out, Contains("  NaN  ") &&
                          Contains("no prediction: the overflow of neutral.mac.float16.rne"));
  // float32 makes no prediction, so it has no verdict.
  const Result plain = s.run("eval --net n.safetensors --data clicks --images 40 --quiet");
  CHECK_THAT(plain.out, !Contains("holds") && !Contains("NaN"));
}

TEST_CASE("a gate decides the exit code; undecided only under --strict", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  const std::string command = "eval --net n.safetensors --data clicks --images 40 --quiet ";
  const Result passed = s.run(command + "--gate 0.5 --strict");
  CHECK(passed.code == 0);
  CHECK_THAT(passed.out, Contains("Gate top1 >= 0.5 float32 at 99 %, paired: 1 of 1 pass."));
  const Result failed = s.run(command + "--gate 'top1>=0.999' --json");
  CHECK(failed.code == 1);
  CHECK(Json::parse(failed.out)["gate"]["verdict"] == "fail");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4"}}})");
  // 40 images never decide about a share of 1: the interval has a length even without discord.
  CHECK(s.run(command + "--recipe r.json --gate 1").code == 0);
  CHECK(s.run(command + "--recipe r.json --gate 1 --strict").code == 1);
}

TEST_CASE("eval tells its phases, and shows predictions unless told not to", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  const std::string command = "eval --net n.safetensors --data clicks --images 40 --recipe r.json ";
  const Result full = s.run(command);
  INFO(full.err);
  REQUIRE(full.code == 0);
  CHECK_THAT(full.err,
             Contains("evaluating n.safetensors on clicks\n") && Contains("float32 baseline\n"));
  CHECK_THAT(full.out, Contains("predicted") && Contains("verdict"));
  const Result bare = s.run(command + "--no-predictions --quiet");
  REQUIRE(bare.code == 0);
  CHECK(bare.err.empty());
  CHECK_THAT(bare.out, Contains("SQNR dB") && !Contains("predict") && !Contains("verdict"));
}

}  // namespace eval_test

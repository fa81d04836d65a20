// numemu eval: where time went, and batch normalisation folded into the weights.
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/places_network.hpp"
#include "tests/experiments/small_network.hpp"

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
  check_refused(s.run("report nosuchdir"), "numemu: nosuchdir: no such folder\n");
}

TEST_CASE("the row of a recipe with stages is that of the last one, which it names", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("last.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  s.file("staged.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4"}},
    "stages": [{"from": {"plateau": 0.1}, "patch": {"roles": {"weight": {"format": "int8"}}}}]})");
  const auto row = [&](const std::string& recipe) {
    return Json::parse(
        s.run("eval --net n.safetensors --data clicks --images 40 --quiet --json --recipe " +
              recipe)
            .out);
  };
  const Json last = row("last.json");
  Json staged = row("staged.json");
  CHECK(staged["point"]["stage"] == 1);
  CHECK(staged["notes"][0] == "The recipe has stages; this is the last one, stage 1.");
  CHECK(staged["key"] != last["key"]);
  CHECK(staged["metrics"] == last["metrics"]);
  staged["point"].erase("stage");
  CHECK(staged["point"] == last["point"]);
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

TEST_CASE("folding keeps accuracy and moves roundings only", "[slow][shared]") {
  const Scratch s;
  const std::string command =
      "eval --net '" NUMEMU_SHARED "/models/resnet20-cifar10.onnx' --data 'cifar10:" NUMEMU_SHARED
      "/data/cifar10' --images 200 --json --quiet";
  const Result plain = s.run(command), folded = s.run(command + " --fold-batch-norm");
  INFO(plain.err << folded.err);
  REQUIRE(plain.code == 0);
  REQUIRE(folded.code == 0);
  const Json a = Json::parse(plain.out), b = Json::parse(folded.out);
  CHECK(a["point"]["weights"] != b["point"]["weights"]);
  CHECK(a["layers"].size() == b["layers"].size());
  CHECK(std::fabs(a["metrics"]["loss"].get<double>() - b["metrics"]["loss"].get<double>()) < 1e-4);
  CHECK(std::fabs(a["metrics"]["top1"].get<double>() - b["metrics"]["top1"].get<double>()) <=
        0.005);
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

TEST_CASE("eval keeps the float32 baseline, and leaves predictions out where it is told to",
          "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  const std::string command =
      "eval --net n.safetensors --data clicks --images 320 --recipe r.json --threads 1 ";
  const Result cold = s.run(command);
  INFO(cold.err);
  REQUIRE(cold.code == 0);
  CHECK_THAT(cold.err, Contains("float32 baseline\n"));
  const auto kept = [&] {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(s.path + "/cache/baselines"))
      files.push_back(entry.path());
    return files;
  };
  REQUIRE(kept().size() == 1);
  // A second name of the file, which writing again replaces.
  std::filesystem::create_hard_link(kept()[0], s.path + "/first");
  CHECK(s.run(command).out == cold.out);
  CHECK(std::filesystem::equivalent(kept()[0], s.path + "/first"));
  CHECK(s.run(command + "--fresh").out == cold.out);
  CHECK_FALSE(std::filesystem::equivalent(kept()[0], s.path + "/first"));
  write_file(kept()[0], "nothing");
  CHECK(s.run(command).out == cold.out);
  CHECK(std::filesystem::file_size(kept()[0]) > 320);
  // A folder that nobody can write.
  std::filesystem::remove_all(s.path + "/cache/baselines");
  write_file(s.path + "/cache/baselines", "");
  CHECK(s.run(command).out == cold.out);

  CHECK_THAT(cold.out, Contains("predicted") && Contains("verdict"));
  const Result bare = s.run(command + "--no-predictions");
  REQUIRE(bare.code == 0);
  CHECK_THAT(bare.out, Contains("SQNR dB") && !Contains("predict") && !Contains("verdict"));
  const Json row = Json::parse(s.run(command + "--no-predictions --json --quiet").out);
  CHECK(row["point"]["predictions"] == false);
  CHECK(row["predicted"]["sqnr_db"].is_null());
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
  const Result scored = s.run(command + "--gate 'mse>=1'");
  CHECK(scored.code == 2);
  CHECK_THAT(s.run(command + "--metric log_loss --gate 'auc>=0.1' --json").out,
             Contains("\"auc >= 0.1\"") && Contains("log_loss"));
  const Result empty = s.run(command + "--gate ''");
  CHECK(empty.code == 2);
  CHECK_THAT(empty.err, Contains("--gate: expected a target"));
  check_refused(s.run(command + "--strict"), "numemu: --strict: expected --gate beside it\n");
}

TEST_CASE("data at links to themselves, pipes and folders is refused by name", "[fast]") {
  const Scratch s;
  std::filesystem::create_symlink("round", s.path + "/round");
  REQUIRE(mkfifo((s.path + "/pipe").c_str(), 0600) == 0);
  std::filesystem::create_directories(s.path + "/images/a");
  std::filesystem::create_symlink("round.png", s.path + "/images/a/round.png");
  std::filesystem::create_directories(s.path + "/pipes/a");
  REQUIRE(mkfifo((s.path + "/pipes/a/x.png").c_str(), 0600) == 0);
  const auto refused = [&](const std::string& data, const std::string& name) {
    const Result result = s.run("eval --net lenet --data " + data);
    CAPTURE(data, result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(name) && !Contains("internal error"));
  };
  for (const char* const place : {"round", "pipe"}) {
    for (const char* const kind :
         {"images:", "mnist:", "cifar10:", "text:", "tokens:", "npy:", "npy:x="})
      refused(std::string(kind) + place + (std::string(kind) == "images:" ? ",normalize=none" : ""),
              place);
  }
  refused("images:images,normalize=none", "images/a/round.png");
  refused("images:pipes,normalize=none", "pipes/a/x.png");
}

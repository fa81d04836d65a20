// A network from an ONNX file, trained: its checkpoint serves eval, infer, sweep and further
// training.
#include <set>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace train_onnx_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;
using numemu::net::test::ModelWriter;

namespace {

constexpr std::int64_t kWidth = 256;

/// About 40 windows of 64 characters; the number of different ones.
std::int64_t text(const Scratch& s) {
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) {
    text += "the " + std::string(i % 3 == 0 ? "cat" : i % 5 == 0 ? "dog" : "owl") + " sat down, ";
    text += std::string(1, static_cast<char>('a' + i % 26)) + " times; ";
  }
  s.file("small.txt", text);
  return static_cast<std::int64_t>(std::set<char>(text.begin(), text.end()).size());
}

std::vector<float> spread(std::int64_t n, float scale) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(scale * static_cast<float>(i * 37 % 101 - 50));
  return out;
}

/// Logits of the next character from this one: a table and a product, both large.
void bigrams(const Scratch& s, std::int64_t characters) {
  ModelWriter model;
  model.input("tokens", {-1, -1}, 7)
      .floats("table.weight", {characters, kWidth}, spread(characters * kWidth, 1e-3f))
      .floats("out.weight", {kWidth, characters}, spread(kWidth * characters, 1e-3f))
      .node("Gather", {"table.weight", "tokens"}, {"rows"})
      .node("MatMul", {"rows", "out.weight"}, {"y"})
      .output("y");
  s.file("m.onnx", model.file());
}

}  // namespace

TEST_CASE("fine-tuning says where an unsigned format meets negative numbers", "[fast]") {
  const Scratch s;
  bigrams(s, text(s));
  s.file("u.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "uint4"}}})");
  const Result run = s.run(
      "train --net m.onnx --data text:small.txt --batch 8 --epochs 1 --recipe u.json --out u");
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out + run.err, Contains("uint4 has no negative numbers") && Contains("of out"));
}

TEST_CASE("the checkpoint of an ONNX network is a network", "[fast]") {
  const Scratch s;
  const std::int64_t characters = text(s);
  bigrams(s, characters);
  const std::string options = " --data text:small.txt --batch 8 --seed 1 --epochs 1 --quiet --json";
  const Result run = s.run("train --net m.onnx --out o" + options);
  REQUIRE(run.code == 0);
  const Json trained = Json::parse(run.out);
  REQUIRE(trained["checkpoint"] == "o/m-text.safetensors");
  // The weights are in it once.
  const std::int64_t weights = 2 * characters * kWidth * 4;
  const auto size = static_cast<std::int64_t>(read_file(s.path + "/o/m-text.safetensors").size());
  CHECK(size > weights);
  CHECK(size < weights + 4096);

  const Result eval = s.run("eval --net o/m-text.safetensors --data text:small.txt --quiet --json");
  REQUIRE(eval.code == 0);
  const Json row = Json::parse(eval.out);
  CHECK(row["point"]["net"] == "m");
  CHECK(row["metrics"]["top1"].get<double>() ==
        Approx(trained["metrics"]["top1"].get<double>()).epsilon(1e-5));
  CHECK(row["metrics"]["loss"].get<double>() ==
        Approx(trained["metrics"]["loss"].get<double>()).epsilon(1e-5));
  const Json before =
      Json::parse(s.run("eval --net m.onnx --data text:small.txt --quiet --json").out);
  CHECK(before["point"]["weights"] != row["point"]["weights"]);
  CHECK(before["metrics"]["loss"].get<double>() > row["metrics"]["loss"].get<double>());

  const std::vector<float> tokens = {0, 1, 2, 3};
  numemu::write_npy(s.path + "/x.npy", numemu::ArrayType::float32, {2, 2}, tokens.data());
  const Result infer = s.run("infer --model o/m-text.safetensors --in x.npy --out y.npy --quiet");
  REQUIRE(infer.code == 0);
  CHECK_THAT(infer.out, Contains("[2, 2, " + std::to_string(characters) + "]"));

  s.file("sweep.json",
         R"({"numemu_sweep": 1, "net": "o/m-text.safetensors", "data": "text:small.txt",
             "eval_images": 4, "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}}, "points": [{}]})");
  CHECK(s.run("sweep sweep.json --out swept --quiet").code == 0);

  check_refused(s.run("train --net o/m-text.safetensors --out o" + options),
                "--out o: expected another folder than that of --net o/m-text.safetensors");
  const Result more = s.run("train --net o/m-text.safetensors --out p" + options);
  REQUIRE(more.code == 0);
  CHECK(Json::parse(more.out)["metrics"]["loss"].get<double>() <
        trained["metrics"]["loss"].get<double>());
  CHECK(Json::parse(more.out)["checkpoint"] == "p/m-text.safetensors");
}

TEST_CASE("training under a recipe keeps the network before it as the baseline", "[fast]") {
  const Scratch s;
  bigrams(s, text(s));
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int2"}}})");
  const std::string options = " --data text:small.txt --batch 8 --seed 1 --epochs 1 --quiet --json";
  const auto trained = [&](const std::string& net, const std::string& more) {
    const Result run = s.run("train --net " + net + options + more);
    INFO(run.err);
    REQUIRE(run.code == 0);
    return Json::parse(run.out)["checkpoint"].text();
  };
  const auto row = [&](const std::string& net) {
    const Result eval =
        s.run("eval --net " + net + " --data text:small.txt --recipe r.json --quiet --json");
    INFO(eval.err);
    REQUIRE(eval.code == 0);
    return Json::parse(eval.out);
  };
  const std::string float32 = trained("m.onnx", " --out o"),
                    fine = trained(float32, " --recipe r.json --out p"),
                    again = trained(fine, " --recipe r.json --out q");
  const Json original = row(float32);
  for (const std::string& net : {fine, again}) {
    const Json tuned = row(net);
    CHECK(tuned["point"]["tuned_from"] == original["point"]["weights"]);
    CHECK(tuned["metrics"]["baseline_top1"] == original["metrics"]["baseline_top1"]);
    CHECK(tuned["metrics"]["loss"] != original["metrics"]["loss"]);
    CHECK_THAT(tuned["notes"].dump(), Contains("the network before tuning or fine-tuning"));
  }
  // Training in float32 makes another network, which is its own baseline.
  const Json other = row(trained(fine, " --out f"));
  CHECK_FALSE(other["point"].contains("tuned_from"));
}

TEST_CASE("a checkpoint trained under a recipe without its past says so", "[fast]") {
  const Scratch s;
  text(s);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int2"}}})");
  REQUIRE(s.run("train --net char-transformer --data text:small.txt --batch 8 --epochs 1 --recipe "
                "r.json --out o --quiet")
              .code == 0);
  const Result eval = s.run(
      "eval --net o/char-transformer-text.safetensors --data text:small.txt "
      "--recipe r.json --images 2 --no-predictions --quiet --json");
  INFO(eval.err);
  REQUIRE(eval.code == 0);
  CHECK_THAT(Json::parse(eval.out)["notes"].dump(),
             Contains("trained under a recipe and has no network from before that"));
}

}  // namespace train_onnx_test

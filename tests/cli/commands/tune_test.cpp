// numemu tune: tables, the checkpoint as other commands read it, and runs that are killed.
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/places_network.hpp"

namespace tune_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

namespace {

const char* const kRecipe = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int4"}}})";
const char* const kChain = " --steps calibrate,bias_correction,batch_norm,'bias(epochs=2)' ";

std::string command(const Scratch& s, int threads = 1) {
  s.file("r.json", kRecipe);
  return "tune --net lenet --data glyphs --recipe r.json --samples 64 --images 100 --threads " +
         std::to_string(threads);
}

std::vector<std::string> results(const Scratch& s, const std::string& folder) {
  return {read_file(s.path + "/" + folder + "/lenet-glyphs.safetensors"),
          read_file(s.path + "/" + folder + "/tuning.safetensors")};
}

}  // namespace

TEST_CASE("tune gives a checkpoint with ranges that eval, sweep and infer use", "[slow]") {
  const Scratch s;
  const Result tuned = s.run(command(s) + kChain + "--out t --json --quiet");
  INFO(tuned.err);
  REQUIRE(tuned.code == 0);
  const Json report = Json::parse(tuned.out);
  CHECK(report["checkpoint"] == "t/lenet-glyphs.safetensors");
  CHECK(report["steps"].size() == 4);
  CHECK(report["split"] == "validation");
  CHECK(report["calibration_samples"] == 64);
  const Json& metrics = report["metrics"];
  CHECK_FALSE(metrics["float32"].contains("difference"));
  for (const char* network : {"before", "after"}) {
    const Json& figures = metrics[network];
    CHECK(figures["difference"].get<double>() ==
          Approx(figures["top1"].get<double>() - metrics["float32"]["top1"].get<double>()));
    CHECK(figures["difference_ci95"][0].get<double>() <= figures["difference"].get<double>());
    CHECK(figures["difference_ci95"][1].get<double>() >= figures["difference"].get<double>());
  }
  CHECK(report["output_db"]["after"].get<double>() > report["output_db"]["before"].get<double>());
  CHECK(report["metrics"]["after"]["n"] == 100);

  const std::string checkpoint = " t/lenet-glyphs.safetensors ";
  const Result row =
      s.run("eval --net" + checkpoint + "--data glyphs --recipe r.json --images 32 --quiet --json");
  REQUIRE(row.code == 0);
  const Json eval = Json::parse(row.out);
  CHECK(eval["point"]["ranges"].get<std::string>().size() == 16);
  CHECK_THAT(eval["notes"].dump(), Contains("the ranges are fixed of 5 tensors: weights of 0, "
                                            "activations of 5"));
  CHECK_THAT(s.run("eval --net" + checkpoint + "--data glyphs --images 32 --quiet --json").out,
             !Contains("ranges are fixed"));
  s.file("sweep.json", R"({"numemu_sweep": 1, "net": "t/lenet-glyphs.safetensors",
      "data": "glyphs", "eval_images": 32, "base": )" +
                           std::string(kRecipe) +
                           R"(, "grid": {"roles.weight.format": ["int3"]}})");
  const Result sweep = s.run("sweep sweep.json --out w --quiet");
  INFO(sweep.err);
  REQUIRE(sweep.code == 0);
  const Json swept = Json::parse(read_file(s.path + "/w/rows.jsonl"));
  CHECK(swept["metrics"] == eval["metrics"]);
  CHECK(swept["point"]["ranges"] == eval["point"]["ranges"]);
  CHECK(s.run("report w --quiet").code == 0);
}

TEST_CASE("tune gives the same bytes for any threads and after the end", "[slow]") {
  const Scratch s;
  REQUIRE(s.run(command(s, 1) + kChain + "--out one --quiet").code == 0);
  const Result two = s.run(command(s, 2) + kChain + "--out two --quiet");
  REQUIRE(two.code == 0);
  CHECK(results(s, "one") == results(s, "two"));
  const Result again = s.run(command(s, 2) + kChain + "--out two");
  CHECK_THAT(again.err, Contains("finished after step 4"));
  CHECK(results(s, "one") == results(s, "two"));
}

TEST_CASE("tune that is killed at any time goes on to the same bytes", "[slow]") {
  const Scratch s;
  REQUIRE(s.run(command(s) + kChain + "--out whole --quiet").code == 0);
  int kills = 0;
  // Later and later, so that the end is reached on any machine.
  for (double seconds = 0.05;; seconds *= 1.15) {
    REQUIRE(kills < 200);
    const std::string killer = "timeout -s KILL " + std::to_string(seconds);
    if (s.run(command(s, 1 + kills % 2) + kChain + "--out killed --quiet", killer).code == 0) break;
    ++kills;
  }
  INFO(kills << " kills");
  CHECK(kills >= 10);
  CHECK(results(s, "whole") == results(s, "killed"));
}

TEST_CASE("accuracy of a tuned checkpoint is compared with the network before tuning", "[fast]") {
  const Scratch s;
  REQUIRE(s.run(command(s) + " --steps gptq --out t --quiet").code == 0);
  const auto baseline = [&](const std::string& net) {
    const Result row = s.run("eval --net " + net +
                             " --data glyphs --recipe r.json --images 64 --no-predictions --quiet "
                             "--json");
    REQUIRE(row.code == 0);
    return Json::parse(row.out);
  };
  const Json before = baseline("lenet"), after = baseline("t/lenet-glyphs.safetensors");
  for (const char* key : {"baseline_top1", "baseline_loss"}) {
    if (before["metrics"].contains(key)) CHECK(after["metrics"][key] == before["metrics"][key]);
  }
  CHECK(after["point"]["tuned_from"].get<std::string>() == before["point"]["weights"]);
  CHECK(after["point"]["weights"] != before["point"]["weights"]);
  CHECK_THAT(after["notes"].dump(), Contains("compared with the network before tuning"));
  CHECK_THAT(before.dump(), !Contains("before tuning"));
  // Also in float32, where only the network before tuning is compared with itself.
  const auto float32 = [&](const std::string& net) {
    return s.run("eval --net " + net + " --data glyphs --images 64 --no-predictions --quiet").out;
  };
  CHECK_THAT(float32("lenet"), Contains(", difference -,"));
  CHECK_THAT(float32("t/lenet-glyphs.safetensors"),
             Contains(" points, 95 % interval") && !Contains(", difference -,"));

  // Tuned again, the network before the first run stays.
  REQUIRE(s.run("tune --net t/lenet-glyphs.safetensors --data glyphs --recipe r.json --samples 32 "
                "--images 20 --steps bias_correction --out u --quiet")
              .code == 0);
  CHECK(baseline("u/lenet-glyphs.safetensors")["point"]["tuned_from"] ==
        after["point"]["tuned_from"]);
}

TEST_CASE("the report compares what the task is judged by", "[fast]") {
  struct Task {
    const char *targets, *metric, *heading, *sentence;
  };
  for (const Task& task :
       {Task{"classes", "mean_iou", "mean IoU %", "the steps changed mean IoU by "},
        {"values", "mse", "mean squared error", "the steps changed mean squared error by "}}) {
    const Scratch s;
    const TemporaryFolder folder;
    const auto settings = numemu::experiments::testing::write_places(folder, task.targets);
    s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int2"}}})");
    const bool classes = std::string(task.targets) == "classes";
    const std::string run = "tune --net " + settings[0].substr(4) +
                            " --data npy:x=" + (folder / "x.npy") + ",y=" + (folder / "y.npy") +
                            (classes ? ",ignore=255" : "") +
                            ",test=6,validation=10 --recipe r.json --steps gptq --quiet --out ";
    const Result text = s.run(run + "t");
    INFO(text.err);
    REQUIRE(text.code == 0);
    CHECK_THAT(text.out, Contains(task.heading) && Contains(task.sentence) && !Contains("top-1"));
    const Json metrics = Json::parse(s.run(run + "j --json").out)["metrics"];
    CHECK(metrics["after"]["metric"] == task.metric);
    CHECK(metrics["float32"].contains("value"));
    CHECK_FALSE(metrics["float32"].contains("change"));
    CHECK(
        metrics["before"]["change"].get<double>() ==
        Approx(metrics["before"]["value"].get<double>() - metrics["float32"]["value"].get<double>())
            .epsilon(1e-4));
    for (const char* network : {"before", "after"})
      CHECK(metrics[network]["change_ci95"][0].get<double>() <=
            metrics[network]["change"].get<double>());
    CHECK(metrics["after"].contains("top1") == classes);
  }
}

}  // namespace tune_test

// numemu sweep over block formats, and every recipe and sweep that is shipped, as config prints
// them.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/experiments/small_network.hpp"

namespace sweep_test {

using namespace numemu::test;
using numemu::Json;

namespace {

std::vector<std::string> shipped(const char* folder) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(NUMEMU_SOURCE "/data/") + folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("shipped recipes and sweeps: config prints them, and prints the same again", "[fast]") {
  const Scratch s;
  for (const char* folder : {"recipes", "sweeps"}) {
    const std::vector<std::string> files = shipped(folder);
    REQUIRE(files.size() >= 2);
    for (const std::string& file : files) {
      INFO(file);
      const Result printed = s.run("config --print '" + file + "'");
      CHECK(printed.code == 0);
      CHECK(printed.err.empty());
      CHECK(s.run("config --print '" + s.file("again.json", printed.out) + "'").out == printed.out);
    }
  }
}

TEST_CASE("shipped training recipes are what their names say", "[fast]") {
  const Scratch s;
  const auto recipe = [&s](const std::string& name) {
    return Json::parse(s.run("config --print '" NUMEMU_SOURCE "/data/recipes/" + name + "'").out);
  };
  const Json hfp8 = recipe("hfp8.json");
  CHECK(hfp8["roles"]["weight"]["format"] == "hfp8_e4m3");
  CHECK(hfp8["roles"]["gradient"]["format"] == "hfp8_e5m2");
  CHECK(hfp8["update"]["loss_scale"] == "static(1024)");
  for (const char* gemm : {"fprop", "dgrad", "wgrad"})
    CHECK(hfp8["gemms"][gemm]["unit"] == "neutral.chunk64.hfp16_e6m9.rne");
  const Json fp8 = recipe("e4m3-e5m2-chunked.json");
  CHECK(fp8["roles"]["activation"]["scale"] == "delayed(16)");
  CHECK(fp8["roles"]["gradient"]["rounding"] == "sr(8)");
  const Json mxfp4 = recipe("mxfp4-sr.json");
  CHECK(mxfp4["roles"]["weight"]["rounding"] == "rne");
  CHECK(mxfp4["roles"]["gradient"]["rounding"] == "sr(8)");
  CHECK(mxfp4["gemms"]["wgrad"]["unit"] == "neutral.f32.sequential");
}

TEST_CASE("a sweep runs over element and block formats and a described unit", "[slow]") {
  const Scratch s;
  s.file("s.json", R"({"numemu_sweep": 1, "net": "mlp", "data": "glyphs", "eval_images": 64,
    "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int8", "granularity": "channel"}}},
    "grid": {"roles.weight.format": ["int8", "mxfp4"],
             "gemms.fprop.unit": ["exact", {"numemu_unit": 1, "name": "my.mac", "core": "chain",
                                            "accumulator": {"format": "bfloat16"}}]},
    "points": [{"layers": [{"match": "fc1", "roles": {"activation": {"format": "nvfp4"}}}]}]})");
  const Result swept = s.run("sweep s.json --quiet --json --out r");
  CHECK(swept.err.empty());
  REQUIRE(swept.code == 0);
  CHECK(std::count(swept.out.begin(), swept.out.end(), '\n') == 5);
  CHECK(swept.out.find("\"my.mac\"") != std::string::npos);
  CHECK(swept.out.find(s.path) == std::string::npos);
  const Result report = s.run("report r");
  CHECK_THAT(s.run("report r --no-predictions").out,
             Catch::Contains("fc1: activation nvfp4") && Catch::Contains("mxfp4"));
  CHECK(report.err.empty());
  const Result dry = s.run("sweep s.json --quiet --dry-run");
  CHECK_THAT(dry.out, Catch::Contains("my.mac"));
}

TEST_CASE("a dry run names points as reports do, no two alike; --quiet leaves paths", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "base": {"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}},
    "points": [
      {"layers": [{"match": "top.fc1", "roles": {"weight": null, "activation": null},
                   "gemms": {"fprop": {"unit": "exact"}}}]},
      {"layers": [{"match": "top.fc1", "gemms": {"fprop": {"unit": "exact"}}}]}]})");
  const Result dry = s.run("sweep s.json --dry-run");
  INFO(dry.err);
  REQUIRE(dry.code == 0);
  std::istringstream lines(dry.out);
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  REQUIRE(second.size() > 6);
  CHECK(first.substr(6) != second.substr(6));
  CHECK_THAT(first, Catch::EndsWith("float32 / int8 + top.fc1 float32 on exact"));
  const Result swept = s.run("sweep s.json --out 'a\u202eb' --quiet");
  CHECK(swept.out == "a\u202eb/report.html\n");
  // Existing rows took no time and must not count in the rate.
  CHECK_THAT(s.run("sweep s.json --out 'a\u202eb'").err, Catch::Contains("- left  point 1 of "));
}

TEST_CASE("a gate is told with --quiet, and is undecided while points are missing", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "grid": {"roles.weight.format": ["int8", "int16"]}})");
  const std::string gate = " --quiet --strict --gate 0.5";
  const Result swept = s.run("sweep s.json --out r" + gate);
  INFO(swept.err);
  CHECK(swept.code == 0);
  CHECK(swept.out == "Gate top1 >= 0.5 float32 at 99 %, paired: 2 of 2 pass.\nr/report.html\n");
  CHECK(s.run("report r" + gate).out == swept.out);
  const std::string rows = read_file(s.path + "/r/rows.jsonl");
  s.file("r/rows.jsonl", rows.substr(0, rows.find('\n') + 1));
  const std::string undecided =
      "1 of 1 pass; 1 of 2 points present, so the gate as a whole is undecided.\n";
  const Result strict = s.run("report r" + gate);
  CHECK(strict.code == 1);
  CHECK_THAT(strict.out, Catch::Contains(undecided));
  const Result shown = s.run("report r --gate 0.5");
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Catch::Contains(undecided));
  CHECK_THAT(read_file(s.path + "/r/report.md"), Catch::Contains("1 of 2 points present"));
}

TEST_CASE("the table of a sweep shows the change and whatever varies, notes below it", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "base": {"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}},
    "grid": {"calibrate.rule": ["absmax", "dynamic"]}})");
  const Result swept = s.run("sweep s.json --out r");
  REQUIRE(swept.code == 0);
  CHECK_THAT(swept.out, Catch::Contains("change") && Catch::Contains("calibrate.rule absmax") &&
                            Catch::Contains("calibrate.rule dynamic") &&
                            Catch::Contains("\nchanges are from float32's "));
  // Rows that other programs wrote may have notes and reasons.
  const std::string rows = numemu::test::read_file(s.path + "/r/rows.jsonl");
  Json row = Json::parse(rows.substr(0, rows.find('\n')));
  row.erase("digest");
  row["notes"] = {"a third of the activations is negative"};
  row["predicted"]["sqnr_db"] = nullptr;
  row["predicted"]["left_out"] = "zero points are not modelled";
  std::filesystem::create_directory(s.path + "/other");
  s.file("other/rows.jsonl", row.dump() + "\n");
  const Result told = s.run("report other");
  CHECK_THAT(told.out, Catch::Contains("note: a third of the activations is negative") &&
                           Catch::Contains("no prediction: zero points are not modelled"));
}

TEST_CASE("rows that differ in their unit alone name it or have numbers", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int6"},
    "activation": {"format": "int6"}}}, "grid": {"gemms.fprop.unit": ["neutral.chunk16.e8m4",
    "neutral.mac.e8m4", "neutral.chunk64.e8m5"]}})");
  const Result swept = s.run("sweep s.json --out r");
  REQUIRE(swept.code == 0);
  for (const char* unit : {"chunk16.e8m4", "mac.e8m4", "chunk64.e8m5"})
    CHECK_THAT(swept.out, Catch::Contains(unit));
}

TEST_CASE("a sweep without predictions is another sweep, and its report has no column for them",
          "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "grid": {"roles.weight.format": ["int8", "int4"]}})");
  const Result bare = s.run("sweep s.json --out bare --no-predictions");
  INFO(bare.err);
  REQUIRE(bare.code == 0);
  CHECK_THAT(bare.out, !Catch::Contains("predict"));
  CHECK_THAT(bare.err, Catch::Contains("float32 baseline\n") && Catch::Contains("point 2 of 2"));
  CHECK(Json::parse(read_file(s.path + "/bare/sweep.json"))["predictions"] == false);
  REQUIRE(s.run("sweep bare/sweep.json --out bare --quiet").code == 0);

  const Result full = s.run("sweep s.json --out full");
  REQUIRE(full.code == 0);
  CHECK_THAT(full.out, Catch::Contains("predicted"));
  const Result shown = s.run("report full --no-predictions");
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, !Catch::Contains("predict"));
  CHECK_THAT(read_file(s.path + "/full/report.md"), !Catch::Contains("redicted"));
  CHECK(s.run("report full").out == s.run("report full").out);
  CHECK_THAT(s.run("report full").out, Catch::Contains("predicted"));
}

}  // namespace sweep_test

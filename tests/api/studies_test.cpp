// Sweeps as asked for, their rows and reports.
#include "api/studies.hpp"

#include <filesystem>

#include "api/networks.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/experiments/small_network.hpp"

namespace studies_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

/// A sweep over formats of weights.
std::string two_points(const Workplace& w) {
  experiments::testing::write_click_network(w / "n.safetensors");
  return w.file("s.json", R"({"numemu_sweep": 1, "net": ")" + (w / "n.safetensors") +
                              R"(", "data": "clicks", "eval_images": 40,
                              "grid": {"roles.weight.format": ["int8", "int4"]}})");
}

std::vector<Json> swept(const Workplace& w, const api::SweepRequest& asked) {
  const api::Sweep sweep = api::plan_sweep(asked, w.context.folders);
  api::run_sweep(sweep, w.context);
  std::vector<Json> rows;
  for (const experiments::Row& row :
       api::write_report(sweep.out, api::default_paths(sweep.out), w.context, true, sweep.gate)
           .rows)
    rows.push_back(to_json(row));
  return rows;
}

}  // namespace

TEST_CASE("a sweep is planned without loading, no two points are called alike", "[fast]") {
  const Workplace w;
  const std::string config =
      w.file("s.json", R"({"numemu_sweep": 1, "net": "none", "data": "clicks",
    "base": {"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}},
    "points": [
      {"layers": [{"match": "top.fc1", "roles": {"weight": null, "activation": null},
                   "gemms": {"fprop": {"unit": "exact"}}}]},
      {"layers": [{"match": "top.fc1", "gemms": {"fprop": {"unit": "exact"}}}]}]})");
  const api::Sweep sweep = api::plan_sweep({.config = config, .shard = "1/2"}, w.context.folders);
  CHECK(sweep.out == "out/s");
  REQUIRE(sweep.names.size() == 2);
  CHECK(sweep.names[0] == "float32 / int8 + top.fc1 float32 on exact");
  CHECK(sweep.names[0] != sweep.names[1]);
  CHECK(sweep.number_of(0) == 1);
  CHECK(api::plan_sweep({}, w.context.folders).path == NUMEMU_SOURCE
        "/data/sweeps/lenet-glyphs.json");
  CHECK_THAT(message_of([&] {
               api::plan_sweep({.config = config, .metrics = {"top"}}, w.context.folders);
             }),
             Contains("unknown metric 'top'"));
}

TEST_CASE("a sweep tells of its points, keeps rows and leaves predictions out", "[fast]") {
  const Workplace w;
  api::SweepRequest asked{.config = two_points(w), .out = w / "r", .predictions = false};
  const api::Sweep sweep = api::plan_sweep(asked, w.context.folders);
  double total = 0, done = 0, free = 0;
  std::size_t ended = 0;
  const auto run = [&] {
    ended = 0;
    return api::run_sweep(sweep, w.context, [&](const api::PointProgress& at) {
      CHECK(at.points == 2);
      total = at.total;
      done = at.done;
      free = at.free;
      ended += at.phase.empty();
    });
  };
  const experiments::SweepSummary first = run();
  CHECK(first.computed == 2);
  CHECK(ended == 2);
  CHECK(done == total);
  CHECK(free == 0);
  const std::string rows = read_file(w / "r/rows.jsonl");
  const experiments::SweepSummary again = run();
  CHECK(again.kept == 2);
  CHECK(free == total);
  CHECK(read_file(w / "r/rows.jsonl") == rows);
  CHECK(Json::parse(read_file(w / "r/sweep.json"))["predictions"] == false);
  // With predictions it is another sweep, which is refused before the work.
  std::filesystem::remove_all(w / "cache/baselines");
  asked.predictions = true;
  CHECK_THAT(message_of([&] { swept(w, asked); }), Contains("a row from another sweep"));
  CHECK_FALSE(std::filesystem::exists(w / "cache/baselines"));
}

TEST_CASE("a report judges its gate and says what is missing", "[fast]") {
  Workplace w;
  const experiments::Gate gate = experiments::parse_gate("0.5");
  const std::vector<Json> rows = swept(w, {.config = two_points(w), .out = w / "r", .gate = gate});
  REQUIRE(rows.size() == 2);
  for (const Json& row : rows) CHECK(row["gate"]["verdict"] == "pass");
  CHECK(w.warned.empty());
  const std::string lines = read_file(w / "r/rows.jsonl");
  w.file("r/rows.jsonl", lines.substr(0, lines.find('\n') + 1));
  const api::ReportPaths paths = api::default_paths(w / "r");
  const api::WrittenReport written = api::write_report(w / "r", paths, w.context, true, gate);
  CHECK(written.unfinished == "1 of 2 points present");
  CHECK(w.warned == w / "r/sweep.json: 1 of 2 points present\n");
  CHECK_THAT(read_file(paths.markdown), Contains("1 of 2 points present, so the gate as a whole "
                                                 "is undecided"));
  const api::WrittenReport bare = api::write_report(w / "r", paths, w.context, false);
  CHECK(bare.rows.at(0).predicted.sqnr_db.is_null);
  CHECK_FALSE(bare.rows.at(0).gate);
}

TEST_CASE("a sweep calibrates on another data set as evaluation does", "[fast]") {
  const Workplace w;
  w.file("m.onnx", net::test::ModelWriter()
                       .input("x", {-1, 3})
                       .floats("w", {3, 2}, {1, -1, 0.5f, 0.25f, -0.75f, 2})
                       .node("MatMul", {"x", "w"}, {"y"})
                       .output("y")
                       .file());
  const auto array = [&](const char* name, float scale) {
    std::vector<float> x;
    for (int i = 0; i < 60; ++i) x.push_back(scale * static_cast<float>(i * i % 61 - 30));
    return "npy:x=" + w.array(name, {20, 3}, x);
  };
  const std::string data = array("x.npy", 1) + ",test=10", wide = array("wide.npy", 2);
  const std::string recipe = R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int4"}}})";
  const std::string sweep = R"({"numemu_sweep": 1, "net": ")" + (w / "m.onnx") + R"(", "data": ")" +
                            data + R"(", "eval_images": 10, "base": )" + recipe;
  w.file("own.json", sweep + "}");
  w.file("wide.json", sweep + R"(, "calibrate_on": ")" + wide + R"("})");
  const auto row = [&](const std::string& config, const std::string& out,
                       const std::string& calibrate_on = "") {
    return swept(w, {.config = w / config, .out = w / out, .calibrate_on = calibrate_on}).at(0);
  };
  const Json own = row("own.json", "own"), apart = row("wide.json", "wide");
  CHECK(row("own.json", "given", wide) == apart);
  const Json evaluated = to_json(api::evaluate({.net = w / "m.onnx",
                                                .data = data,
                                                .recipe = w.file("r.json", recipe),
                                                .calibrate_on = wide},
                                               {.images = 10}, w.context)
                                     .row);
  CHECK(apart["key"] == evaluated["key"]);
  CHECK(apart["scores"] == evaluated["scores"]);
  CHECK(apart["key"] != own["key"]);
  CHECK(apart["scores"] != own["scores"]);
  CHECK_THAT(message_of([&] { row("wide.json", "own"); }), Contains("a row from another sweep"));
  CHECK(Json::parse(read_file(w / "given/sweep.json"))["calibrate_on"] == wide);
}

TEST_CASE("an answer without rows has a report", "[fast]") {
  const Workplace w;
  const auto report = [&] {
    return api::write_report(w.folder.path(), api::default_paths(w.folder.path()), w.context);
  };
  CHECK_THAT(message_of(report), Contains("expected rows.jsonl"));
  w.file("experiment.json",
         R"({"numemu_experiment":1,"name":"why","sentences":["because"],"charts":[]})");
  CHECK(report().rows.empty());
  CHECK_THAT(read_file(w / "report.html"), Contains("<li>because</li>"));
  CHECK_THAT(read_file(w / "report.md"), Contains("- because"));
  CHECK_FALSE(std::filesystem::exists(w / "report.csv"));  // it holds rows alone
}

TEST_CASE("all experiments run in folders of their own, and one that fails stops no other",
          "[fast]") {
  const Workplace w;
  std::vector<std::string> ran;
  const api::ExperimentRequest asked{.size = "smoke", .out = w / "all", .seed = 3};
  const auto run = [&](const api::ExperimentRequest& one) {
    ran.push_back(one.name);
    if (one.name == "zap") throw Error("no such data");
    const experiments::Experiment& experiment = experiments::find_experiment(one.name);
    const experiments::ExperimentRun started{
        .settings = experiments::settings_of(experiment, experiments::Size::smoke, {}),
        .seed = 3,
        .out = one.out,
        .folders = {},
        .hooks = {}};
    std::filesystem::create_directories(one.out);
    w.file("all/" + one.name + "/experiment.json",
           json_of(experiments::file_of(experiment, started, {})).dump());
  };
  const api::AllExperiments all = api::run_all_experiments(asked, run);
  CHECK(ran.size() == experiments::all_experiments().size());
  CHECK(all.errors == std::vector<std::string>{"zap: no such data"});
  CHECK_THAT(all.answer, Contains("No published claim was tested"));
  CHECK_THAT(read_text(w / "all/systems.md"), Contains("## ZAP"));
  CHECK(std::filesystem::exists(w / "all/systems.html"));
  CHECK(api::holds_experiments(w / "all"));
  CHECK_FALSE(api::holds_experiments(w / "all/mvue"));
  // What concluded is kept; another seed runs again.
  ran.clear();
  api::run_all_experiments(asked, run);
  CHECK(ran == std::vector<std::string>{"zap"});
  ran.clear();
  api::ExperimentRequest other = asked;
  other.seed = 4;
  api::run_all_experiments(other, run);
  CHECK(ran.size() == experiments::all_experiments().size());
  other.settings = {"seeds=2"};
  CHECK_THAT(message_of([&] { api::run_all_experiments(other, run); }),
             Contains("--set: expected none"));
}

TEST_CASE("docs/systems.md is the page of the recorded results", "[fast]") {
  namespace fs = std::filesystem;
  const Workplace w;
  const fs::path results = NUMEMU_SOURCE "/data/results";
  api::write_systems(results.string(), "", w / "systems.md");
  std::string page = read_text(w / "systems.md");
  // Links lead from the page to the results.
  const std::string from =
      results.lexically_relative(fs::absolute(w / "systems.md").parent_path()).generic_string();
  for (std::size_t at = 0; (at = page.find("(" + from, at)) != page.npos; ++at)
    page.replace(at + 1, from.size(), "../data/results");
  INFO("./numemu report data/results -o /tmp/systems.html --markdown docs/systems.md");
  CHECK(page == read_text(NUMEMU_SOURCE "/docs/systems.md"));
}

}  // namespace studies_test

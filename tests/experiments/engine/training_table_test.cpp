// Methods compared over seeds: one trial each, the same initial weights, differences by seed.
#include "experiments/engine/training_table.hpp"

#include "emu/stats/paired.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
namespace {

TrainingPlan small_plan() {
  TrainingPlan plan;
  plan.trial.net = "mlp";
  plan.data = "small";
  plan.trial.options.epochs = 1;
  plan.trial.options.batch = 32;
  plan.trial.train_samples = 128;
  plan.trial.eval_samples = 100;
  plan.seeds = {0, 4};
  const Json coarse = {{"roles", {{"weight", {{"format", "int2"}}}}}};
  plan.methods = {{"dense", Json::object()}, {"coarse", coarse}, {"twin", Json::object()}};
  return plan;
}

TrainingTable compare(const std::string& folder, const TrainingPlan& plan) {
  const ExperimentRun run{
      .settings = Settings({}, Size::smoke, {}), .out = folder, .folders = {}, .hooks = {}};
  return run_training(run, experiments::testing::small_dataset(), plan);
}

}  // namespace

TEST_CASE("methods are compared seed by seed", "[fast]") {
  const test::TemporaryFolder folder;
  const TrainingPlan plan = small_plan();
  const TrainingTable result = compare(folder.path(), plan);
  REQUIRE(result.outcomes.size() == 3);
  std::vector<double> dense, coarse;
  for (int seed = 0; seed < 2; ++seed) {
    dense.push_back(100 * result.outcomes[0][seed].metric);
    coarse.push_back(100 * result.outcomes[1][seed].metric);
    CHECK(result.outcomes[2][seed].train_loss == result.outcomes[0][seed].train_loss);
    CHECK(result.outcomes[1][seed].train_loss != result.outcomes[0][seed].train_loss);
  }
  TrainTrial trial;
  trial.net = plan.trial.net;
  trial.recipe = plan.methods[1].recipe;
  trial.seed = 4;
  trial.options = plan.trial.options;
  trial.train_samples = plan.trial.train_samples;
  trial.eval_samples = plan.trial.eval_samples;
  CHECK(run_train_trial(trial, experiments::testing::small_dataset()).train_loss ==
        result.outcomes[1][1].train_loss);

  const stats::PairedInterval difference = stats::paired_interval(coarse, dense);
  const auto number = [](const char* format, double x) {
    char text[32];
    std::snprintf(text, sizeof text, format, x);
    return std::string(text);
  };
  const ResultTable& table = result.table;
  CHECK(table.title == "mlp on small, 2 seeds, paired by seed");
  CHECK(table.header == std::vector<std::string>{"method", "top-1, %", "difference, points",
                                                 "95 % interval", "seed 0", "seed 4"});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0] ==
        std::vector<std::string>{"dense", number("%.2f", (dense[0] + dense[1]) / 2), "-", "-",
                                 number("%.2f", dense[0]), number("%.2f", dense[1])});
  CHECK(table.rows[1][2] == number("%+.2f", difference.mean));
  CHECK(table.rows[1][3] ==
        "[" + number("%+.2f", difference.low) + ", " + number("%+.2f", difference.high) + "]");
  CHECK(table.rows[2][2] == "+0.00");

  TrainingPlan at_once = plan;
  at_once.at_once = true;
  const test::TemporaryFolder other;
  CHECK(compare(other.path(), at_once).table.rows == table.rows);
  CHECK(test::read_file(other.path() + "/trials.jsonl") ==
        test::read_file(folder.path() + "/trials.jsonl"));

  REQUIRE(result.chart.series.size() == 1);
  const std::vector<ChartPoint>& bars = result.chart.series[0].points;
  REQUIRE(bars.size() == 2);
  CHECK(bars[0].name == "coarse");
  CHECK(bars[0].y == difference.mean);
  CHECK(bars[0].low == difference.low);
  CHECK(bars[0].high == difference.high);

  // A twin of the first is the same trial; nothing is trained again.
  const std::string rows = test::read_file(folder / "trials.jsonl");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 4);
  const TrainingTable again = compare(folder.path(), plan);
  CHECK(again.table.rows == table.rows);
  CHECK(test::read_file(folder / "trials.jsonl") == rows);
}

TEST_CASE("one seed has no interval, and plans without methods are refused", "[fast]") {
  const test::TemporaryFolder folder;
  TrainingPlan plan = small_plan();
  plan.seeds = {1};
  plan.methods.pop_back();
  const TrainingTable result = compare(folder.path(), plan);
  CHECK(result.table.rows[1][3] == "-");
  CHECK_FALSE(std::isfinite(result.chart.series[0].points[0].low));
  plan.seeds.clear();
  CHECK_THAT(test::message_of([&] { compare(folder.path(), plan); }),
             Contains("at least one method and one seed"));
  plan = small_plan();
  plan.methods.push_back({"wrong", {{"roles", {{"weight", {{"format", "int0"}}}}}}});
  CHECK_THAT(test::message_of([&] { compare(folder.path(), plan); }), Contains("int0"));
  CHECK_FALSE(test::read_file(folder / "trials.jsonl").empty());  // of the plan before
}

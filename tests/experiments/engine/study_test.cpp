// The training of settings, and methods compared over seeds: one trial each, the same initial
// weights, differences by seed.
#include "experiments/engine/study.hpp"

#include <cmath>
#include <filesystem>

#include "emu/net/train/options.hpp"
#include "emu/stats/paired.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

namespace study_test {

using namespace numemu::experiments;
using namespace numemu;
using Catch::Contains;
using numemu::test::message_of;

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
  REQUIRE(result.study.runs.size() == 3);
  std::vector<double> dense, coarse;
  for (int seed = 0; seed < 2; ++seed) {
    dense.push_back(100 * result.study.runs[0][seed].metric);
    coarse.push_back(100 * result.study.runs[1][seed].metric);
    CHECK(result.study.runs[2][seed].train_loss == result.study.runs[0][seed].train_loss);
    CHECK(result.study.runs[1][seed].train_loss != result.study.runs[0][seed].train_loss);
  }
  TrainTrial trial;
  trial.net = plan.trial.net;
  trial.recipe = plan.methods[1].recipe;
  trial.seed = 4;
  trial.options = plan.trial.options;
  trial.train_samples = plan.trial.train_samples;
  trial.eval_samples = plan.trial.eval_samples;
  CHECK(run_train_trial(trial, experiments::testing::small_dataset()).train_loss ==
        result.study.runs[1][1].train_loss);

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

TEST_CASE("a method that cannot train is refused before the others are trained", "[fast]") {
  const test::TemporaryFolder folder;
  TrainingPlan plan = small_plan();
  plan.methods[2] = {"narrow", {{"layers", {{{"match", "conv9"}, {"roles", Json::object()}}}}}};
  CHECK_THAT(
      message_of([&] { compare(folder.path(), plan); }),
      Contains("narrow: recipe of a training trial") && Contains("'conv9' matches no layer"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/trials.jsonl"));
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
  CHECK_THAT(message_of([&] { compare(folder.path(), plan); }),
             Contains("at least one method and one seed"));
  plan = small_plan();
  plan.methods.push_back({"wrong", {{"roles", {{"weight", {{"format", "int0"}}}}}}});
  CHECK_THAT(message_of([&] { compare(folder.path(), plan); }), Contains("int0"));
  CHECK_FALSE(test::read_file(folder / "trials.jsonl").empty());  // of the plan before
}

namespace {

const SettingList kKeys = {training_settings("3", "8", "64", "0"), seeds_setting("2")};

Settings settings_of(std::vector<Setting> more = {}) {
  more.insert(more.end(), kKeys.begin(), kKeys.end());
  return Settings(more, Size::smoke, {});
}

}  // namespace

TEST_CASE("training settings: every key, at the rates of the optimizer", "[fast]") {
  const TrainTrial own = training_of(settings_of(), "resnet20");
  CHECK(own.net == "resnet20");
  CHECK(own.options.epochs == 3);
  CHECK(own.options.batch == 8);
  CHECK(own.train_samples == 64);
  CHECK(own.eval_samples == 0);
  CHECK(own.options.optimizer == "sgd");
  const Settings named = settings_of({{"optimizer", "adam", "adam", "adam", ""}});
  CHECK(training_of(named, "resnet20").options.optimizer == "adam");
  CHECK(training_of(named, "resnet20", {.optimizer = "sgd"}).options.learning_rate ==
        own.options.learning_rate);
  CHECK(message_of([&] { training_of(settings_of(), "mlp", {.least_batch = 9}); }).find("batch") !=
        std::string::npos);
}

TEST_CASE("training settings: rates of the experiment instead of the recommended ones", "[fast]") {
  const TrainTrial own = training_of(settings_of(), "char-transformer");
  const TrainTrial given =
      training_of(settings_of({{"lr", "0.25", "0.25", "0.25", ""}, {"warmup", "7", "7", "7", ""}}),
                  "char-transformer");
  CHECK(given.options.learning_rate == 0.25);
  CHECK(given.options.warmup == 7);
  CHECK(own.options.learning_rate != 0.25);
  CHECK(own.options.warmup != 7);
  CHECK(given.options.weight_decay == own.options.weight_decay);
}

TEST_CASE("training settings: a second training by its prefix", "[fast]") {
  const Settings two = settings_of(training_settings("5", "16", "32", "7", {.prefix = "norm_"}));
  const TrainTrial second = training_of(two, "mlp", {.prefix = "norm_"});
  CHECK(second.options.epochs == 5);
  CHECK(second.options.batch == 16);
  CHECK(second.train_samples == 32);
  CHECK(second.eval_samples == 7);
  CHECK(training_of(two, "mlp").options.epochs == 3);
}

TEST_CASE("training settings: shared rows stand where they are listed", "[fast]") {
  const SettingList rows = {{"own", "1", "2", "3", "its own"},
                            training_settings({"1", "4", "8"}, "16", {"64", "128", "0"}, "0",
                                              {.of = "window", .least_batch = 2}),
                            rate_settings(),
                            seeds_setting({"1", "3", "5"}, "networks"),
                            data_setting("of images")};
  std::string keys;
  for (const Setting& row : rows) keys += row.key + " ";
  CHECK(keys == "own epochs batch train_samples eval_samples lr warmup seeds data ");
  CHECK(std::string_view(rows[1].standard) == "4");
  CHECK(std::string_view(rows[2].full) == "16");
  CHECK(rows[2].takes.least == 2);
  CHECK(rows[2].doc == "windows of a step");
  CHECK(rows[3].doc == "training windows; 0: all");
  CHECK(rows[7].doc == "seeds that networks are paired by");
  CHECK(rows.back().doc == "data set of images");
}

TEST_CASE("a method changes a trial that has its recipe and seed", "[fast]") {
  TrainingPlan plan = small_plan();
  plan.methods[1].rate_factor = 0.5;
  plan.methods[1].change = [](TrainTrial& trial) {
    trial.options.epochs = static_cast<std::int64_t>(trial.seed);
    trial.options.learning_rate = trial.recipe.empty() ? 0 : 2;
  };
  CHECK(plan.trial_of(1, 4).options.epochs == 4);
  CHECK(plan.trial_of(1, 4).options.learning_rate == 1);
  CHECK(plan.trial_of(0, 4).options.epochs == 1);
  CHECK(recipe_in("float32") == Json::object());
  CHECK(recipe_in("int8", {"weight"}).dump() == R"({"roles":{"weight":{"format":"int8"}}})");
}

TEST_CASE("training settings: seeds follow the run's", "[fast]") {
  const ExperimentRun run{
      .settings = settings_of(), .seed = 40, .out = "", .folders = {}, .hooks = {}};
  CHECK(seeds_of(run) == std::vector<std::uint64_t>{40, 41});
}

// Claims about paired differences: probabilities by Student's law, corrected together.

TEST_CASE("one-sided tails of a paired difference", "[fast]") {
  const stats::PairedInterval d = stats::paired_interval({1.0, 2.0, 3.0});
  const double t = 2 * std::sqrt(3.0), half = t / std::sqrt(2 + t * t) / 2;
  CHECK(tails(d, 0).above == Approx(0.5 - half).epsilon(1e-6));
  CHECK(tails(d, 0).below == Approx(0.5 + half).epsilon(1e-6));
  CHECK(tails(d, 4).above == Approx(0.5 + half).epsilon(1e-6));
  for (const std::vector<double>& unknown : {std::vector<double>{3.0}, {3.0, 3.0}}) {
    CHECK(tails(stats::paired_interval(unknown), 0).above == 1);
    CHECK(tails(stats::paired_interval(unknown), 0).below == 1);
  }
}

TEST_CASE("answers of both are compared by the test that gives their interval", "[fast]") {
  const stats::PairedAnswers answers{800, 30, 10, 1000};
  const stats::Interval ends = stats::paired_difference(30, 10, 1000);
  // McNemar's: (30 - 10) / sqrt(30 + 10).
  CHECK(p_value(answers, 0) == Approx(std::erfc(std::sqrt(10.0) / std::sqrt(2.0))).epsilon(1e-9));
  for (const double end : {ends.low, ends.high}) CHECK(p_value(answers, end) == Approx(0.05));
  CHECK(tails(answers, ends.low).above == Approx(0.025));
  CHECK(tails(answers, ends.low).below == Approx(0.975));
  CHECK(tails(answers, ends.high).below == Approx(0.025));
  const stats::PairedAnswers none{800, 0, 0, 1000};
  CHECK(p_value(none, 0) == 1);
  CHECK(tails(none, 0).above == 1);
  CHECK(tails(none, -0.005).above < 0.025);
}

TEST_CASE("claims are judged together", "[fast]") {
  const stats::PairedInterval d = stats::paired_interval({1.0, 2.0, 3.0});
  // Two degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2); t = 2 sqrt(3).
  const double t = 2 * std::sqrt(3.0);
  CHECK(p_value(d, 0) == Approx(1 - t / std::sqrt(2 + t * t)).epsilon(1e-6));
  CHECK(p_value(d, 2) == Approx(1));
  CHECK(p_value(d, d.low) == Approx(0.05).epsilon(1e-6));
  CHECK(p_value(stats::paired_interval({3.0}), 0) == 1);
  CHECK(p_value(stats::paired_interval({3.0, 3.0}), 0) == 1);
  CHECK(p_value(stats::paired_interval({3.0, HUGE_VAL}), 0) == 1);
  CHECK(p_value(stats::paired_interval({3.0, NAN}), 0) == 1);

  const stats::PairedInterval clear = stats::paired_interval({10.0, 10.1, 9.9, 10.05}),
                              weak = stats::paired_interval({1.0, 2.0, 2.5, 0.6});
  PairedClaims alone;
  alone.add("weak", weak, 0);
  CHECK(alone.judged()[0].verdict == Verdict::holds);
  PairedClaims claims;
  claims.add("above", clear, 5);
  claims.add("below", clear, 15);
  claims.add("weak", weak, 0);
  claims.add("none", weak, 1.5);
  const std::vector<Finding> findings = claims.judged();
  CHECK(findings[0].verdict == Verdict::holds);
  CHECK(findings[1].verdict == Verdict::fails);
  CHECK(findings[1].predicted == 15);
  CHECK(findings[2].verdict == Verdict::undecided);
  CHECK(findings[3].verdict == Verdict::undecided);
}

TEST_CASE("paired gains: signs hold, fail and stay undecided", "[fast]") {
  const auto gain = [](const char* what, const std::vector<double>& differences) {
    return PairedGain{what, stats::paired_interval(differences)};
  };
  // t = 22.4 and 3.4 with 4 degrees of freedom: p = 2e-5 and 0.027, which four tests do not allow.
  const std::vector<Finding> findings =
      judge_gains({gain("a", {1, 1.1, 0.9, 1.1, 0.9}), gain("b", {-1, -1.1, -0.9, -1.1, -0.9}),
                   gain("c", {1, 0.2, 0.9, 0.3, 0.4}), gain("d", {1})});
  REQUIRE(findings.size() == 4);
  CHECK(findings[0].verdict == Verdict::holds);
  CHECK(findings[1].verdict == Verdict::fails);
  CHECK(findings[2].verdict == Verdict::undecided);
  CHECK(findings[3].verdict == Verdict::undecided);
  // Two seeds without spread do not say how sure the sign is.
  CHECK(judge_gains({gain("e", {2, 2})})[0].verdict == Verdict::undecided);
  CHECK(judge_gains({gain("e", {2, 2})})[0].what == "e; the same in all 2 runs (claimed above 0)");
  CHECK(findings[0].what == "a (claimed above 0)");
  CHECK(judge_gains({gain("c", {1, 0.2, 0.9, 0.3, 0.4})})[0].verdict == Verdict::holds);
}

TEST_CASE("runs that diverged are left out, and their claim does not hold", "[fast]") {
  const stats::PairedInterval some = stats::paired_interval({1, 1.1, NAN, 0.9, 1.05}),
                              lost = negated(some), all = stats::paired_interval({NAN, NAN});
  CHECK(lost.left_out == 1);
  CHECK(in_points(some).left_out == 1);
  PairedClaims claims;
  claims.add("gain", some, 0);
  claims.add("loss", lost, 0);
  claims.add("gone", all, 0);
  const std::vector<Finding> paired = claims.judged(),
                             gains = judge_gains({{"gain", some}, {"loss", lost}});
  CHECK(paired[0].what == "gain; 1 of 5 runs diverged");
  CHECK(paired[0].measured == Approx(1.0125));
  CHECK(paired[0].verdict == Verdict::undecided);
  CHECK(paired[1].verdict == Verdict::fails);
  CHECK(paired[2].verdict == Verdict::undecided);
  CHECK(gains[0].what == "gain; 1 of 5 runs diverged (claimed above 0)");
  CHECK(gains[0].verdict == Verdict::undecided);
  CHECK(gains[1].verdict == Verdict::fails);
  CHECK(mean_column("", {{1, 3}, {NAN, 2}, {NAN, NAN}}).cell(0) == "2.00");
  CHECK(mean_column("", {{1, 3}, {NAN, 2}, {NAN, NAN}}).cell(1) == "2.00 (1 run left out)");
  CHECK(mean_column("", {{1, 3}, {NAN, 2}, {NAN, NAN}}).cell(2) == "-");
}

TEST_CASE("a sign is decided where the interval beside it leaves out 0", "[fast]") {
  // t = 5 / sqrt(7 / 3) = 3.27 with 2 degrees of freedom: beyond 2.92, within 4.30.
  const stats::PairedInterval up = stats::paired_interval({3.0, 4.0, 8.0});
  REQUIRE(up.low < 0);
  for (const stats::PairedInterval& d : {up, negated(up)}) {
    const std::vector<Finding> found = judge_gains({{"a", d}});
    CHECK(found[0].verdict == Verdict::undecided);
    CHECK(found[0].what == "a (claimed above 0)");
  }
}

TEST_CASE("equal differences are undecided, beside a bound as well", "[fast]") {
  PairedClaims claims;
  claims.add("e", stats::paired_interval({2.0, 2.0}), 0);
  CHECK(claims.judged()[0].verdict == Verdict::undecided);
  CHECK(interval_finding("e", 0, stats::paired_interval({2.0, 2.0}), at_least(0)).verdict ==
        Verdict::undecided);
}

}  // namespace study_test

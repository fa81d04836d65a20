// delayed-weights: the experiment from settings to conclusion.
#include "experiments/delayed_weights/delayed_weights.hpp"

#include <cmath>
#include <map>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace delayed_weights_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

TEST_CASE("delayed-weights: schedules and links follow their closed forms", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run("delayed-weights", folder, {"depths=1,3,5"});
  Conclusion conclusion;
  delayed_weights::add_schedules(run, conclusion);
  delayed_weights::add_links(run, conclusion);
  CHECK(testing::held(conclusion, "idle") == std::pair(4 * 3 * 2, 4 * 3 * 2));
  CHECK(testing::held(conclusion, "held") == std::pair(2 * 4 * 3 * 2, 2 * 4 * 3 * 2));
  CHECK(testing::held(conclusion, "links") == std::pair(2 * 3 * 2, 2 * 3 * 2));
  REQUIRE(conclusion.tables.size() == 1);
  // GPipe, 5 stages, 5 micro-batches: (5 - 1) / (5 + 5 - 1).
  CHECK(conclusion.tables[0].rows[4] ==
        std::vector<std::string>{"GPipe", "5", "5", "44.4 (44.4)", "5 (5)", "1 (1)"});
}

TEST_CASE("delayed-weights: plans run as planned, and memory limits them", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = testing::small_dataset();
  const auto plans = [&](std::vector<std::string> settings) {
    settings.push_back("cut_nets=mlp");
    const ExperimentRun run = testing::smoke_run("delayed-weights", folder, settings);
    Conclusion conclusion;
    delayed_weights::add_plans(run, data, conclusion);
    return conclusion;
  };
  const Conclusion conclusion = plans({"devices=1,3", "memory=1,0.5,0.01"});
  REQUIRE(conclusion.tables.size() == 2);
  const std::vector<std::vector<std::string>>& rows = conclusion.tables[0].rows;
  REQUIRE(rows.size() == 6);
  CHECK(rows[0] ==
        std::vector<std::string>{"mlp", "1", "100.0", "1-3", "1", "1.000", "1.000", "0.0"});
  CHECK(rows[1][3] == "none fits");
  CHECK(rows[5][3] == "none fits");
  CHECK(std::stod(rows[3][5]) >= 1);
  CHECK(conclusion.tables[1].rows.size() == 8);
  const auto [bounds, held] = testing::held(conclusion, "bound");
  CHECK(bounds == held);
  CHECK(std::ssize(conclusion.findings) == 2 * bounds);
  // Half of every time, in ticks of a tenth: the same plans.
  const Conclusion twice_as_fast =
      plans({"devices=1,3", "memory=1,0.5,0.01", "mac_ps=0.5", "link_ps=50", "reduce_ps=500"});
  CHECK(twice_as_fast.tables[0].rows == rows);
  CHECK(twice_as_fast.tables[1].rows == conclusion.tables[1].rows);
  CHECK(twice_as_fast.findings[0].measured == Approx(conclusion.findings[0].measured / 2));
  CHECK(message_of([&] { plans({"mac_ps=0.0000001"}); }).find("mac_ps") != std::string::npos);
  CHECK(message_of([&] {
          plans({"mac_ps=99999.5432", "samples=1000"});
        }).find("2^60") != std::string::npos);
  CHECK(message_of([&] { plans({"devices=0"}); }).find("devices") != std::string::npos);
  CHECK(message_of([&] { plans({"memory=2"}); }).find("memory") != std::string::npos);
  CHECK(message_of([&] { plans({"micro_batches=x"}); }).find("micro_batches") != std::string::npos);
}

TEST_CASE("delayed-weights: quadratics and trainings with and without delay", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "delayed-weights", folder,
      {"seeds=2", "rate_seeds=2", "train_samples=64", "rate_train_samples=64", "eval_samples=20",
       "rate_momenta=0.5", "rate_epochs=1", "rate_batch=32", "batch=32", "optimizers=sgd,adam"});
  const net::Dataset data = testing::small_dataset();
  Conclusion conclusion;
  delayed_weights::add_limits(run, conclusion);
  CHECK(testing::held(conclusion, "limit") == std::pair(4, 4));
  const auto limits = delayed_weights::add_rates(run, data, conclusion);
  delayed_weights::add_trainings(run, data, limits, conclusion);
  std::map<std::string, int> claims;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(std::isfinite(finding.measured));
    ++claims[finding.claim];
    if (finding.claim == "rate") CHECK(finding.predicted == Approx(std::log2(0.5 / 3)));
  }
  CHECK(claims["rate"] == 1);
  CHECK(claims["training"] == 1);
  CHECK(claims["other optimizers"] == 1);
  REQUIRE(conclusion.tables.size() == 3);
  CHECK(conclusion.tables[1].rows.size() == 2);

  // Above the limit of that network and momentum the finding of SGD says so.
  Conclusion limited;
  delayed_weights::add_trainings(run, data, {{"lenet", 0.9, -20}, {"mlp", 0.9, -10}}, limited);
  REQUIRE(limited.findings.size() == 2);
  const bool first = limited.findings[0].claim == "other optimizers";
  const Finding &sgd = limited.findings[first ? 0 : 1], &adam = limited.findings[first ? 1 : 0];
  CHECK(is_judged(sgd.verdict));
  // The recommended rate of 0.05 over 2^-10.
  CHECK_THAT(sgd.what, Catch::Contains("; 51.2 times its largest stable rate with a delay, "
                                       "2^-10.00, of 32 images"));
  CHECK(is_judged(adam.verdict));
  Conclusion below;
  delayed_weights::add_trainings(run, data, {{"mlp", 0.9, 0}}, below);
  for (const Finding& finding : below.findings) CHECK(is_judged(finding.verdict));
}

TEST_CASE("delayed-weights: a batch that its micro-batches do not divide is refused", "[fast]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(find_experiment("delayed-weights")
                        .run(testing::smoke_run("delayed-weights", folder, {"coalesced=5"})),
                    Catch::Contains("coalesced: expected a divisor of batch = 128, not 5"));
}

}  // namespace delayed_weights_test

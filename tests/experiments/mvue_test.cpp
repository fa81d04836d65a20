// The experiment mvue from settings to conclusions: laws, averages, gradients, training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "experiments/mvue/pruning.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace mvue_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun mvue_run(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  return testing::smoke_run("mvue", folder, settings);
}

std::map<std::string, int> verdicts(const Conclusion& conclusion) {
  std::map<std::string, int> counts;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(std::isfinite(finding.measured));
    ++counts[experiments::testing::agrees(finding) ? "holds" : to_string(finding.verdict)];
  }
  return counts;
}

}  // namespace

TEST_CASE("laws and averages keep to their closed forms", "[fast]") {
  const TemporaryFolder folder;
  Conclusion laws, averages;
  const ExperimentRun run =
      mvue_run(folder, {"samples=4000", "draws=8", "batches=2", "repeats=12"});
  mvue::add_laws(run, laws);
  REQUIRE(laws.tables.size() == 1);
  CHECK(laws.tables[0].rows.size() == 5 * 7);
  REQUIRE(laws.charts.size() == 1);
  CHECK(laws.charts[0].series.size() == 2 * 5);
  std::map<std::string, int> counts = verdicts(laws);
  CHECK(counts["fails"] == 0);
  CHECK(counts["holds"] >= 40);

  mvue::add_averaging(run, averages);
  CHECK(averages.tables.size() == 3);
  CHECK(averages.charts.size() == 3);
  CHECK(averages.sentences.size() == 3);
  for (const Chart& chart : averages.charts) {
    CHECK(chart.series.size() == 2 * 4);
    for (const ChartSeries& series : chart.series) CHECK(series.points.size() == 2);
  }
  counts = verdicts(averages);
  CHECK(counts["fails"] == 0);
  CHECK(counts["holds"] >= 12);
}

TEST_CASE("gradients of a network, and on their way down", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      mvue_run(folder, {"gradient_nets=mlp", "propagation_net=mlp", "gradient_train=64",
                        "gradient_batch=32", "draws=8", "passes=12"});
  const net::Dataset data = experiments::testing::small_dataset();
  Conclusion gradients, propagation;
  mvue::add_gradients(run, data, gradients);
  REQUIRE(gradients.tables.size() == 1);
  CHECK(gradients.tables[0].rows.size() == 3 * 6);
  std::map<std::string, int> counts = verdicts(gradients);
  CHECK(counts["fails"] == 0);
  CHECK(counts["holds"] >= 6);

  mvue::add_propagation(run, data, propagation);
  REQUIRE(propagation.charts.size() == 1);
  for (const ChartSeries& series : propagation.charts[0].series) {
    INFO(series.name);
    REQUIRE(series.points.size() == 3);
    // The output layer, and the one that its dense dgrad feeds.
    CHECK(series.points[0].y == 1);
    CHECK(series.points[1].y == 1);
    if (series.name.starts_with("greedy")) CHECK(series.points[2].y < 0.97);
  }
  counts = verdicts(propagation);
  CHECK(counts["fails"] == 0);
  CHECK(counts["holds"] == 4);
}

TEST_CASE("every method is trained, and compared with dense", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = mvue_run(folder, {"net=mlp", "epochs=1", "batch=32", "train_samples=64",
                                              "eval_samples=100", "seeds=2"});
  Conclusion conclusion;
  mvue::add_training(run, experiments::testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  const ResultTable& table = conclusion.tables[0];
  REQUIRE(table.rows.size() == 1 + 6 + 6 + 3);
  CHECK(table.rows[0][0] == "dense");
  REQUIRE(conclusion.charts.size() == 2);
  CHECK(conclusion.charts[1].series[0].points.size() == table.rows.size() - 1);
  // Dense, greedy and MVUE of two patterns, the approximation left out, all products sparse.
  REQUIRE(conclusion.charts[0].series.size() == 6);
  // Two updates of 32 samples, tested twice, the second time as the table says.
  for (const ChartSeries& series : conclusion.charts[0].series) {
    REQUIRE(series.points.size() == 2);
    CHECK(series.points[0].x == 1);
    CHECK(series.points[1].x == 2);
  }
  CHECK(std::stod(table.rows[0][1]) ==
        Approx(conclusion.charts[0].series[0].points[1].y).margin(0.0051));
  // MVUE in update and both; activations, weights, all products; the better of two rules in update
  // and both; MVUE on greedy of two patterns.
  CHECK(conclusion.findings.size() == 6 + 3 + 2 + 2);
  CHECK(testing::held(conclusion, "each rule").first == 6);
  CHECK(testing::held(conclusion, "training").first == 2);
  for (const Finding& finding : conclusion.findings) {
    if (finding.claim != "training") continue;
    INFO(finding.what);
    // The better rule, by the numbers of that rule.
    const bool update = finding.what.find(", update: ") != finding.what.npos,
               one = finding.what.find(": 1:2 (") != finding.what.npos;
    const std::string same = fmt::format("MVUE {}, {} (at most", one ? "1:2" : "2:4",
                                         update ? "update" : "backward + update");
    const auto single = std::ranges::find_if(conclusion.findings, [&](const Finding& other) {
      return other.claim == "each rule" && other.what.find(" by " + same) != other.what.npos;
    });
    REQUIRE(single != conclusion.findings.end());
    CHECK(finding.measured == single->measured);
    CHECK(finding.low == single->low);
    if (single->verdict != Verdict::holds) CHECK(finding.verdict != Verdict::holds);
  }
  verdicts(conclusion);
  CHECK(conclusion.sentences.size() == 3);
  CHECK_THAT(conclusion.sentences[0], Catch::Contains("loses least"));
}

TEST_CASE("each method has the best of several learning rates", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      mvue_run(folder, {"net=mlp", "epochs=1", "batch=32", "train_samples=64", "eval_samples=100",
                        "seeds=1", "rate_factors=1e-6,1"});
  Conclusion conclusion;
  mvue::add_training(run, experiments::testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  const ResultTable& rates = conclusion.tables[0];
  REQUIRE(rates.rows.size() == 1 + 6 + 6 + 3);
  for (const auto& row : rates.rows) {
    REQUIRE(row.size() == 4);
    // Where both are as accurate the first is kept.
    CHECK(row[3] == (std::stod(row[2]) > std::stod(row[1]) ? "1" : "1e-06"));
  }
}

TEST_CASE("one seed names no best method", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = mvue_run(folder, {"net=mlp", "epochs=1", "batch=32", "train_samples=64",
                                              "eval_samples=100", "seeds=1"});
  Conclusion conclusion;
  mvue::add_training(run, experiments::testing::small_dataset(), conclusion);
  for (std::size_t i : {0, 1}) {
    CHECK_THAT(conclusion.sentences[i], Catch::Contains("one seed does not tell"));
    CHECK_THAT(conclusion.sentences[i], !Catch::Contains("MVUE") && !Catch::Contains("greedy"));
  }
  for (const Finding& finding : conclusion.findings) {
    CHECK(finding.verdict != Verdict::holds);
    CHECK(finding.verdict != Verdict::fails);
  }
}

}  // namespace mvue_test

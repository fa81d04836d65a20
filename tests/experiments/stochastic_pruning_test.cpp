// Stochastic pruning of gradients: known laws, gradients of a small network, accuracy over methods.
#include <cmath>
#include <set>

#include "experiments/engine/experiment.hpp"
#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace stochastic_pruning_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::stochastic_pruning;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun stochastic_pruning_run(const TemporaryFolder& folder,
                                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {"nets=dlrm-small", "data=clicks",       "samples=40000",
                                        "observations=3",  "train_samples=512", "eval_samples=64",
                                        "batch=32",        "history=2"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("stochastic-pruning", folder, overrides, 5);
}

Conclusion answer(const ExperimentRun& run) {
  return find_experiment("stochastic-pruning").run(run);
}

bool begins(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

}  // namespace

TEST_CASE("closed forms hold on their own laws, and the normal law fails on others", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = stochastic_pruning_run(folder, {"shares=0.7,0.9"});
  Conclusion conclusion;
  add_synthetic(run, conclusion);
  int own = 0, misfits = 0;
  for (const Finding& finding : conclusion.findings) {
    CAPTURE(finding.what);
    CHECK(finding.low <= finding.measured);
    CHECK(finding.measured <= finding.high);
    if (finding.what.find("threshold of a normal law") == std::string::npos) {
      CHECK(testing::agrees(finding));
      ++own;
    } else {
      misfits += finding.verdict == Verdict::fails;
    }
  }
  // Five laws, two shares, two rules; three figures each, two where s = 2.
  CHECK(own == 2 * 2 * (4 * 3 + 2));
  CHECK(misfits > 10);
  REQUIRE(conclusion.tables.size() == 1);
  for (const auto& row : conclusion.tables[0].rows)
    CHECK(row.size() == conclusion.tables[0].header.size());
  // Density and cosine at both p, measured and predicted, of five laws.
  REQUIRE(conclusion.charts.size() == 2);
  for (const Chart& chart : conclusion.charts) {
    REQUIRE(chart.series.size() == 10);
    for (const ChartSeries& series : chart.series) {
      REQUIRE(series.points.size() == 2);
      CHECK(series.points[0].x == 0.7);
      CHECK(series.points[0].y > series.points[1].y);  // less is left at a larger p
    }
  }
  REQUIRE(conclusion.sentences.size() == 1);
  CHECK_THAT(conclusion.sentences[0], Catch::Contains("56 of 56 closed forms"));

  // What is remembered gives the same conclusion.
  Conclusion again;
  add_synthetic(run, again);
  CHECK(again.tables[0].rows == conclusion.tables[0].rows);
}

TEST_CASE("a whole run on a small network", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = stochastic_pruning_run(folder, {"seeds=2", "shares=0.7,0.99"});
  const Conclusion conclusion = answer(run);

  int by_elements = 0, by_laws = 0, gains = 0;
  for (const Finding& finding : conclusion.findings) {
    CAPTURE(finding.what);
    if (finding.what.find("given the elements") != std::string::npos) {
      CHECK(testing::agrees(finding));
      ++by_elements;
    }
    by_laws += begins(finding.what, "zeros by the ");
    gains += finding.what.find(" gains on ") != std::string::npos;
  }
  CHECK_NOTHROW(numemu::json_of(file_of(find_experiment("stochastic-pruning"), run, conclusion)));
  CHECK(by_laws >= 2 * 3);
  CHECK(by_elements == 2 * by_laws);
  CHECK(gains == 2 + 3);  // on hard pruning at both p, of three plans on equal p

  // Known laws; gradients; accuracy; plans.
  REQUIRE(conclusion.tables.size() == 4);
  for (const ResultTable& table : conclusion.tables) {
    CHECK_FALSE(table.rows.empty());
    for (const auto& row : table.rows) CHECK(row.size() == table.header.size());
  }
  const ResultTable& accuracy = conclusion.tables[2];
  REQUIRE(accuracy.rows.size() == 1 + 2 + 2 + 1 + 4);
  CHECK(accuracy.rows[0][0] == "dense");
  CHECK(accuracy.rows[0][5] == "+0.00");
  const auto zeros = [&](std::size_t row) { return std::stod(accuracy.rows[row][1]); };
  CHECK(zeros(0) < zeros(1));  // dense, stochastic at both p
  CHECK(zeros(1) < zeros(2));
  CHECK(zeros(3) < zeros(4));  // hard
  CHECK(zeros(1) < zeros(3));
  CHECK(zeros(2) < zeros(4));
  CHECK(std::stod(accuracy.rows[2][3]) > std::stod(accuracy.rows[1][3]));  // times fewer MACs
  CHECK(testing::held(conclusion, "operations").first == 1);

  REQUIRE(conclusion.charts.size() == 5);
  for (const Chart& chart : conclusion.charts) {
    CHECK_FALSE(chart.title.empty());
    CHECK_FALSE(chart.caption.empty());
    for (const ChartSeries& series : chart.series) CHECK_FALSE(series.points.empty());
  }
  CHECK(conclusion.charts[2].kind == Chart::Kind::points);
  CHECK(conclusion.sentences.size() >= 5);
}

TEST_CASE("methods are masks of recipes, and plans share the zeros of equal p", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = stochastic_pruning_run(folder, {"plan_share=0.7", "shares=0.9"});
  const std::vector<ObservedLayer> layers = {{"a", {{ThresholdLaw::lognormal, 1e-3, 1, 0.5}, 1000}},
                                             {"b", {{ThresholdLaw::lognormal, 1e-5, 2, 1}, 3000}}};
  const std::vector<Method> methods = methods_of(run, layers);
  REQUIRE(methods.size() == 8);
  CHECK(recipe_of(methods[0]).empty());
  CHECK(recipe_of(methods[1]).dump() ==
        R"json({"roles":{"gradient":{"format":null,"mask":"stochastic(0.9,history=2)"}}})json");
  CHECK(methods[2].mask == "hard(0.9,history=2)");
  CHECK(methods[3].mask == "stochastic(0.9,history=2,at=input)");
  CHECK(methods[4].mask_of("a") == "stochastic(0.7000,law=lognormal,history=2)");
  CHECK(methods[4].mask_of("b") == methods[4].mask_of("a"));
  CHECK(recipe_of(methods[4])["layers"].size() == 2);
  // The same zeros in all, to the digits that shares are written with.
  const double zeros = planned_zeros(run, layers);
  for (std::size_t m = 4; m < 8; ++m) {
    double reached = 0;
    for (const ObservedLayer& layer : layers) {
      const MagnitudeLaw& law = layer.magnitudes.law;
      const std::string& mask = methods[m].mask_of(layer.layer);
      const double share = mask.empty() ? 0 : policies::parse_mask(mask).share;
      reached += layer.magnitudes.elements *
                 effect(Pruning::stochastic, law, threshold_below(law, share)).zeros;
    }
    CHECK(std::fabs(reached / 4000 - zeros) < 2e-4);
  }
}

TEST_CASE("wrong settings are refused", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& setting) {
    return message_of([&] { answer(stochastic_pruning_run(folder, {setting})); });
  };
  CHECK_THAT(message("shares=0.5,1.5"),
             Catch::Contains("shares: expected numbers from 1e-06 to 0.999999"));
  CHECK_THAT(message("shares=a"), Catch::Contains("'a'"));
  CHECK_THAT(message("plan_law=cauchy"), Catch::Contains("normal or lognormal"));
}

TEST_CASE("what pruning did beside its expectation", "[fast]") {
  const std::vector<float> x = {0, 0.25F, -0.5F, 2, 0, 1};
  const PrunedTensor hard =
      prune_and_measure(Pruning::hard, x.data(), 6, 1, {1, Stream::mask, 0, 0});
  CHECK(hard.below == 2);
  CHECK(hard.zeros == 4);
  CHECK(hard.error == 0.3125);
  CHECK(hard.squares == 5.3125);
  CHECK(hard.expected_zeros.value == 4);
  CHECK(hard.expected_zeros.error == 0);
  CHECK(hard.expected_error.value == 0.3125);
  CHECK(hard.cosine() == Approx(5 / std::sqrt(5.3125 * 5)));
  const PrunedTensor by_chance =
      prune_and_measure(Pruning::stochastic, x.data(), 6, 1, {1, Stream::mask, 0, 0});
  CHECK(by_chance.expected_zeros.value == 2 + 0.75 + 0.5);
  CHECK(by_chance.expected_zeros.error == Approx(std::sqrt(0.75 * 0.25 + 0.25)));
  CHECK(by_chance.expected_error.value == 0.25 * 0.75 + 0.25);
  CHECK(by_chance.expected_error.error == Approx(std::sqrt(0.75 * 0.25) * 0.5));
}

}  // namespace stochastic_pruning_test

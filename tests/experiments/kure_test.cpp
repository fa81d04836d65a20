// KURE: closed forms, both readings of the theorem, and the experiment from settings to conclusion.
#include "experiments/kure/kure.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace kure_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

using namespace kure;

ExperimentRun kure_run(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  return testing::smoke_run("kure", folder, settings);
}

}  // namespace

TEST_CASE("kure: the uniform law's error and best step", "[fast]") {
  CHECK(uniform_step(1, 4) == Approx(2.0 / 17));
  CHECK(uniform_mse(1, 4, uniform_step(1, 4)) == Approx(1.0 / 867));
  CHECK(uniform_step(1, 2) == Approx(0.4));
  CHECK(uniform_mse(1, 2, 0.4) == Approx(0.04 / 3));
  CHECK(curvature(Law::uniform, 4, best_step(Law::uniform, 4)) == Approx(8));
  CHECK(curvature(Law::uniform, 2, best_step(Law::uniform, 2)) == Approx(2));
  CHECK(uniform_mse(1, 2, 0.6) == Approx(0.03));  // tau is beyond the law
  for (const int bits : {2, 3, 8})
    CHECK(curvature(Law::uniform, bits, published_step(std::sqrt(3.0), bits)) == Approx(0.5));
  // Exact where tau is beyond the law: at the end of a cell D^2 / 12, a third above the end of 0.6.
  CHECK(exact_mse(Law::uniform, 2, std::sqrt(3.0) / 1.5) == Approx(4.0 / 36));
  CHECK(exact_mse(Law::uniform, 2, 0.6 * std::sqrt(3.0)) == Approx(0.1));
  CHECK(exact_mse(Law::uniform, 2, 0.5) == mse(Law::uniform, 2, 0.5));
  // The stationary step has the least error of its neighbours.
  const double best = best_step(Law::uniform, 3);
  for (const double near : {0.99, 1.01})
    CHECK(mse(Law::uniform, 3, best) < mse(Law::uniform, 3, near * best));
}

TEST_CASE("kure: the normal law's best steps, errors and curvatures", "[fast]") {
  struct Row {
    int bits;
    double step, error, curvature;
  };
  // Six digits of steps, four or five of errors, three of curvatures.
  for (const Row& row : {Row{2, .844040, .081778, .914}, Row{3, .533841, .030662, 1.20},
                         Row{4, .318897, .010403, 1.52}, Row{5, .183309, .003313, 1.87},
                         Row{6, .102679, .0010120, 2.24}, Row{8, .030655, 8.707e-5, 3.02}}) {
    INFO(row.bits);
    const double step = best_step(Law::normal, row.bits);
    CHECK(step == Approx(row.step).margin(6e-7));
    CHECK(mse(Law::normal, row.bits, step) == Approx(row.error).epsilon(2e-4));
    CHECK(curvature(Law::normal, row.bits, step) == Approx(row.curvature).epsilon(4e-3));
  }
}

TEST_CASE("kure: sensitivities reverse the theorem at the best step", "[fast]") {
  struct Row {
    int bits;
    double down, up;
  };
  for (const Row& row : {Row{2, 1.44, 1.43}, Row{3, 1.82, 1.23}, Row{4, 2.65, .699},
                         Row{5, 4.48, .549}, Row{6, 8.6, .395}}) {
    INFO(row.bits);
    const auto ratio = [&](double change) {
      return sensitivity(Law::uniform, row.bits, change) /
             sensitivity(Law::normal, row.bits, change);
    };
    CHECK(ratio(-0.2) == Approx(row.down).epsilon(6e-3));
    CHECK(ratio(0.2) == Approx(row.up).epsilon(8e-3));
  }
  CHECK(levels(2) == std::vector<double>{-2, -1, 0, 1, 2});
}

TEST_CASE("kure: curves hold, and the theorem fails at the best step alone", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_curves(kure_run(folder, {"bits=2,3", "factors=0.8,1,1.2", "samples=400000"}), conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[1].rows.size() == 2 * 2 * 3);
  int best_fails = 0, published = 0, few_fail = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    if (finding.claim == "curves") CHECK(finding.verdict == Verdict::holds);
    if (finding.claim == "optimum") CHECK(finding.verdict == Verdict::holds);
    if (finding.claim == "theorem, published step") CHECK(finding.verdict == Verdict::holds);
    best_fails += finding.claim == "theorem, best step" && finding.verdict == Verdict::fails;
    if (finding.claim == "published curve") {
      CHECK(finding.verdict == Verdict::holds);
      ++published;
    }
    few_fail += finding.claim == "few levels" && finding.verdict == Verdict::fails;
  }
  // Whatever the run's bits are: five steps of 6 and 8 bits; of 2 to 5 bits those more than 1 %
  // off.
  CHECK(published == 2 * 5);
  CHECK(few_fail == 3 + 3 + 5 + 3);
  CHECK(best_fails == 6);  // curvature, -20 % and +20 %, of 2 and 3 bits
  CHECK_THAT(message_of([&] {
               Conclusion none;
               add_curves(kure_run(folder, {"bits=1"}), none);
             }),
             Catch::Contains("bits: expected whole numbers from 2 to 8"));
}

TEST_CASE("kure: networks are trained with and without the penalty and quantized", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      kure_run(folder, {"net=mlp", "data=glyphs", "seeds=2", "epochs=1", "train_samples=64",
                        "eval_samples=50", "factors=1,1.3", "accuracy_bits=3"});
  Conclusion conclusion;
  add_training(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == 3);      // layers
  CHECK(conclusion.tables[1].rows.size() == 1 + 3);  // float32; mse, pow2, detuned
  int accuracy = 0, power = 0, kurtosis = 0;
  for (const Finding& finding : conclusion.findings) {
    CHECK(std::isfinite(finding.measured));
    accuracy += finding.claim == "accuracy";
    power += finding.claim == "power of two";
    kurtosis += finding.claim == "kurtosis";
  }
  CHECK(accuracy == 3);
  CHECK(power == 1);
  CHECK(kurtosis == 3);
}

TEST_CASE("kure: findings name a factor of the penalty that is not the published one", "[fast]") {
  const std::string named = ", lambda = 20 (published: 1)";
  for (const char* penalty : {"1", "20"}) {
    const TemporaryFolder folder;
    const ExperimentRun run =
        kure_run(folder, {"net=mlp", "data=glyphs", "seeds=1", "epochs=1", "train_samples=64",
                          "eval_samples=50", "factors=1", "accuracy_bits=3",
                          std::string("penalty=") + penalty});
    Conclusion conclusion;
    add_training(run, testing::small_dataset(), conclusion);
    REQUIRE_FALSE(conclusion.findings.empty());
    for (const Finding& finding : conclusion.findings) {
      INFO(finding.what);
      CHECK((finding.what.find(named) != finding.what.npos) == (penalty == std::string("20")));
    }
  }
}

}  // namespace kure_test

// hadamard-classifier: published figures of its matrices, and the experiment to its conclusion.
#include <cmath>
#include <sstream>

#include "experiments/engine/trials.hpp"
#include "experiments/hadamard_classifier/hadamard_classifier.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace hadamard_classifier_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::hadamard;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

TEST_CASE("hadamard-classifier: ten rows at 128 and at 84 features", "[fast]") {
  CHECK(worst_cosine(10, 128) == 0);
  CHECK(worst_cosine(10, 84) == 4.0 / 84);  // published .0476
}

TEST_CASE("hadamard-classifier: the fast transform in integers", "[fast]") {
  CHECK(fast_transform({1, 2, 3, 4}) == std::vector<std::int32_t>{10, -2, -4, 0});
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run("hadamard-classifier", folder, {"sizes=2,64,256"});
  Conclusion conclusion;
  add_matrices(run, conclusion);
  REQUIRE(conclusion.findings.size() == 6);
  for (const Finding& finding : conclusion.findings) CHECK(finding.verdict == Verdict::holds);
  CHECK_THAT(message_of([&] {
               Conclusion none;
               add_matrices(testing::smoke_run("hadamard-classifier", folder, {"sizes=12"}), none);
             }),
             Catch::Contains("sizes: expected powers of two, not 12"));
}

TEST_CASE("hadamard-classifier: networks with fixed and trained classifiers", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "hadamard-classifier", folder,
      {"seeds=2", "epochs=1", "train_samples=256", "eval_samples=50", "nets=mlp"});
  Conclusion conclusion;
  add_networks(run, testing::small_dataset(), conclusion);
  int exact = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK(std::isfinite(finding.measured));
    if (finding.claim == "accuracy") CHECK(finding.predicted == -0.5);
    const bool is_exact =
        finding.claim == "cosines" || finding.claim == "formats" || finding.claim == "cost";
    if (!is_exact && !finding.self_check) continue;
    CHECK(finding.verdict == Verdict::holds);
    ++exact;
  }
  CHECK(exact == 5);
  CHECK(conclusion.findings.back().self_check);
  CHECK(conclusion.findings.back().claim.empty());
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == 1);
  // mlp's last layer has 128 features and 10 classes.
  CHECK(conclusion.tables[1].rows ==
        std::vector<std::vector<std::string>>{{"mlp", "5160", "44", "1280", "10", "1280", "896"}});
}

TEST_CASE("hadamard-classifier: a scale of either sign is as long", "[fast]") {
  // A network may learn a negative scale: the signs of its features turn as well.
  const std::vector<std::string> settings{"seeds=2", "epochs=1", "train_samples=256",
                                          "eval_samples=50", "nets=mlp"};
  const auto scale_of = [](const ExperimentRun& run) {
    Conclusion conclusion;
    add_networks(run, testing::small_dataset(), conclusion);
    for (const Finding& finding : conclusion.findings)
      if (finding.claim == "scale") return finding.measured;
    return 0.0;
  };
  const TemporaryFolder folder, other;
  const ExperimentRun run = testing::smoke_run("hadamard-classifier", folder, settings);
  const double learned = scale_of(run);
  CHECK(learned > 0);
  std::vector<Trial> turned;
  std::istringstream rows(numemu::test::read_file(folder / "out/trials.jsonl"));
  for (std::string line; std::getline(rows, line);) {
    Json row = Json::parse(line);
    if (row["result"].contains("scale") && row["point"]["seed"] == 1)
      row["result"]["scale"] = -row["result"]["scale"].get<double>();
    turned.push_back({row["point"], "turned", [result = row["result"]] { return result; }});
  }
  CHECK(turned.size() == 4);
  const ExperimentRun again = testing::smoke_run("hadamard-classifier", other, settings);
  run_trials(again, turned);
  CHECK(scale_of(again) == learned);
}

}  // namespace hadamard_classifier_test

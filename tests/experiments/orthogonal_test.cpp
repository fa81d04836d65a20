// orthogonal: the experiment from settings to conclusion.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace numemu::orthogonal_experiment_test {

using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

TEST_CASE("orthogonal: energy follows its closed forms", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      experiments::testing::smoke_run("orthogonal", folder,
                                      {"draws=20", "rules=orthogonal,orthogonal(descent)",
                                       "train_samples=128", "eval_samples=50", "recipes=float32"});
  const Conclusion conclusion = find_experiment("orthogonal").run(run);
  for (const auto& [claim, count] :
       {std::pair("random", 1), std::pair("rounding", 4), std::pair("exact", 3),
        std::pair("exact, cayley", 1), std::pair("series", 4), std::pair("kept", 1)}) {
    INFO(claim);
    CHECK(experiments::testing::held(conclusion, claim) == std::pair(count, count));
  }
}

TEST_CASE("orthogonal: a training that diverges is told with its step", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      experiments::testing::smoke_run("orthogonal", folder,
                                      {"draws=1", "repeats=2", "rules=orthogonal",
                                       "train_samples=512", "eval_samples=50", "rates=1000"});
  const Conclusion conclusion = find_experiment("orthogonal").run(run);
  REQUIRE(!conclusion.sentences.empty());
  CHECK(conclusion.sentences[0].starts_with("float32, ordinary, seed 0: diverged at update "));
}

TEST_CASE("orthogonal: each rule has the best of the rates, chosen on other seeds", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "orthogonal", folder,
      {"draws=1", "repeats=2", "rules=orthogonal", "recipes=float32", "train_samples=512",
       "eval_samples=200", "rates=1e-9,0.05,1000", "tuning_seeds=2"});
  const Conclusion conclusion = find_experiment("orthogonal").run(run);
  const auto table = [&](const char* begin) {
    const auto at = std::ranges::find_if(
        conclusion.tables, [&](const ResultTable& t) { return t.title.starts_with(begin); });
    REQUIRE(at != conclusion.tables.end());
    return *at;
  };
  const ResultTable rates = table("Learning rates of mlp-deep on glyphs, float32, 2 seeds"),
                    judged = table("mlp-deep on glyphs, float32, 1 seed, paired");
  REQUIRE(rates.rows.size() == 2);
  CHECK(rates.rows[0][3] == "-");  // ordinary training diverged; neurons that turn stay finite
  for (const std::vector<std::string>& row : rates.rows) CHECK(row[4] == "0.05");
  for (const std::vector<std::string>& row : judged.rows) CHECK(row[1] == "0.05");
}

TEST_CASE("orthogonal: what cannot be asked is refused in one line", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const char* setting) {
    return message_of([&] {
      find_experiment("orthogonal")
          .run(experiments::testing::smoke_run("orthogonal", folder,
                                               {setting, "draws=1", "repeats=2"}));
    });
  };
  CHECK(refused("formats=int8") == "--set: formats: expected floating formats, not int8");
  CHECK(refused("rules=orthogonl").find("orthogonal") != std::string::npos);
}

}  // namespace numemu::orthogonal_experiment_test

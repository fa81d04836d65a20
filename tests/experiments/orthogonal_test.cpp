// orthogonal: the experiment from settings to conclusion.
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
       {std::pair("random", 1), std::pair("rounding", 4), std::pair("exact", 4),
        std::pair("series", 4), std::pair("kept", 1)}) {
    INFO(claim);
    CHECK(experiments::testing::held(conclusion, claim) == std::pair(count, count));
  }
}

TEST_CASE("orthogonal: a training that diverges is told with its step", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      experiments::testing::smoke_run("orthogonal", folder,
                                      {"draws=1", "repeats=2", "rules=orthogonal",
                                       "train_samples=512", "eval_samples=50", "lr=1000"});
  const Conclusion conclusion = find_experiment("orthogonal").run(run);
  REQUIRE(!conclusion.sentences.empty());
  CHECK(conclusion.sentences[0].starts_with("float32, ordinary, seed 0: diverged at update "));
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

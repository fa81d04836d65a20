// NovoGrad from settings to conclusion, and the power of two at which an epsilon is lost.
#include "experiments/novograd/novograd.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::novograd_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("novograd: an epsilon is lost where the sum in float32 is the norm", "[fast]") {
  for (const double epsilon : {1e-10, 1e-8, 1e-5, 0.25, 0.3}) {
    for (const float norm : {0x1p-9F, 0.0123F, 0.7F, 1.0F, 3.7F}) {
      INFO(epsilon << " beside " << norm);
      const std::int64_t k = novograd::largest_k_changed(epsilon, double{norm});
      const auto changed = [&](std::int64_t at) {
        const float scaled = std::ldexp(norm, static_cast<int>(at));
        return scaled + static_cast<float>(epsilon) != scaled;
      };
      CHECK(changed(k));
      CHECK_FALSE(changed(k + 1));
    }
  }
}

TEST_CASE("novograd: powers of two change no bit, an epsilon where it is predicted", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "novograd", folder,
      {"scales=5", "epsilons=1e-9,1e-8", "steps=2", "train_samples=128", "eval_samples=20"});
  const Conclusion conclusion = find_experiment("novograd").run(run);
  CHECK(held(conclusion, "scaling") == std::pair(1, 1));
  CHECK(held(conclusion, "epsilon") == std::pair(2, 2));
  CHECK(held(conclusion, "others") == std::pair(2, 2));
  CHECK(held(conclusion, "state") == std::pair(1, 1));
  CHECK(held(conclusion, "accuracy").first == 2);  // one seed: no verdict
  CHECK(conclusion.tables.size() == 2);
  CHECK(conclusion.charts.size() == 1);
}

TEST_CASE("novograd: recipes of the full size train its networks", "[fast]") {
  const TemporaryFolder folder;
  const Settings full = settings_of(find_experiment("novograd"), Size::full, {});
  ExperimentRun run = experiments::testing::smoke_run(
      "novograd", folder,
      {"scales=1", "steps=1", "train_samples=64", "eval_samples=20", "nets=" + full.text("nets"),
       "recipes=" + full.text("recipes")});
  run.folders.data = NUMEMU_SOURCE "/data";
  const Conclusion conclusion = find_experiment("novograd").run(run);
  CHECK(held(conclusion, "few bits").first == 8);  // a seed gives no verdict
}

TEST_CASE("novograd: settings that do not serve are refused before any work", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<std::string>& settings, const std::string& message) {
    ExperimentRun run = experiments::testing::smoke_run("novograd", folder, settings);
    run.folders.data = NUMEMU_SOURCE "/data";
    CHECK_THROWS_WITH(find_experiment("novograd").run(run), Catch::Contains(message));
  };
  refused({"recipes=float32,mxfp8-trian"}, "unknown recipe 'mxfp8-trian'");
  refused({"recipes=mxfp8-train,float32"}, "recipes: expected float32 first, not mxfp8-train");
  refused({"batch=20000"}, "steps: expected at most 3, updates of 20000 on the 55000");
}

}  // namespace numemu::novograd_test

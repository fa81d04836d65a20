// A chain of steps: stopped after any part it gives the bits of one that runs through.
#include "policies/tune/base/run_steps.hpp"

#include <filesystem>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace run_steps_test {

using namespace numemu;
using namespace numemu::policies;
using policies::test::small_tuning;

namespace {

const char* const kRecipe = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int4", "granularity": "channel"}, "activation": {"format": "int8"}}})";

const char* const kSteps = "calibrate(percentile(99)),bias_correction,batch_norm,bias(epochs=2)";

struct Stopped {};

std::vector<net::Tensor> values_of(const net::Graph& graph) {
  std::vector<net::Tensor> values;
  for (const net::Parameter* parameter : graph.parameters()) values.push_back(parameter->value);
  return values;
}

bool equal(const std::vector<net::Tensor>& a, const std::vector<net::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].shape != b[i].shape || a[i].data != b[i].data) return false;
  return true;
}

}  // namespace

TEST_CASE("a chain of steps that is stopped after every part gives the same bits", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  const auto steps = parse_tune_steps(kSteps, "--steps");
  Tuning whole = small_tuning(recipe);
  const std::vector<net::Tensor> before = values_of(whole.graph);
  const TunePosition end = run_tune_steps(whole, steps);
  CHECK(end.finished(steps.size()));
  CHECK(end.summaries.size() == steps.size());
  CHECK_FALSE(equal(values_of(whole.graph), before));

  const numemu::test::TemporaryFolder folder;
  TuneFile file{folder.path() + "/state.safetensors", {{"net", "small"}}};
  int stops = 0;
  for (bool finished = false; !finished; ++stops) {
    Tuning part = small_tuning(recipe);
    int parts = 0;
    TuneHooks hooks;
    hooks.on_work = [&](const TunePosition&, double share) {
      if (share == 0 && ++parts == 2) throw Stopped();  // the second part is lost
    };
    try {
      run_tune_steps(part, steps, file, hooks);
      finished = true;
      CHECK(equal(values_of(part.graph), values_of(whole.graph)));
      CHECK(equal(values_of(part.reference), values_of(whole.reference)));
      CHECK(part.ranges == whole.ranges);
    } catch (const Stopped&) {
    }
    REQUIRE(stops < 1000);
  }
  CHECK(stops > 5);

  Tuning again = small_tuning(recipe);
  CHECK(run_tune_steps(again, steps, file).summaries == end.summaries);
  CHECK(equal(values_of(again.graph), values_of(whole.graph)));
}

TEST_CASE("the state of another unfinished chain is refused", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  const numemu::test::TemporaryFolder folder;
  TuneFile file{folder.path() + "/state.safetensors", {{"net", "small"}}};
  const auto steps = parse_tune_steps("calibrate,batch_norm", "--steps");
  TuneHooks stop;
  stop.on_step = [](const TunePosition&) { throw Stopped(); };
  Tuning first = small_tuning(recipe);
  CHECK_THROWS_AS(run_tune_steps(first, steps, file, stop), Stopped);
  Tuning second = small_tuning(recipe);
  const auto others = parse_tune_steps("calibrate,bias_correction", "--steps");
  CHECK_THROWS_WITH(run_tune_steps(second, others, file),
                    Catch::Contains("steps was calibrate,batch_norm, is "
                                    "calibrate,bias_correction; use --fresh or --out"));
  file.identity = {{"net", "large"}};
  CHECK_THROWS_WITH(run_tune_steps(second, steps, file),
                    Catch::Contains("net was small, is large"));
  file.fresh = true;
  CHECK(run_tune_steps(second, steps, file).finished(steps.size()));
}

TEST_CASE("a state whose numbers were changed is refused", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kRecipe, "recipe");
  const numemu::test::TemporaryFolder folder;
  const TuneFile file{folder.path() + "/state.safetensors", {{"net", "small"}}};
  const auto steps = parse_tune_steps("calibrate,batch_norm,bias(epochs=2)", "--steps");
  TuneHooks stop;
  stop.on_step = [](const TunePosition& at) {
    if (at.step == 2) throw Stopped();
  };
  Tuning first = small_tuning(recipe);
  CHECK_THROWS_AS(run_tune_steps(first, steps, file, stop), Stopped);
  const std::string kept = numemu::test::read_file(file.path);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = kept;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    numemu::test::write_file(file.path, text.replace(at, from.size(), to));
    Tuning tuning = small_tuning(recipe);
    CHECK_THROWS_WITH(run_tune_steps(tuning, steps, file), Catch::Contains("is damaged"));
  };
  refused(R"(\"step\":2)", R"(\"step\":1)");
  refused(R"(\"part\":0)", R"(\"part\":1)");
  refused("ranges of", "rangez of");
  refused("small", "smell");
}

}  // namespace run_steps_test

// Drop rule threshold: what takes part, by hand; gradients under both divisors; what is refused.
#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "emu/net/train/step.hpp"
#include "emu/stats/latency.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace threshold_drop_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

constexpr std::int64_t kWorkers = 4, kBatches = 12, kSamples = kWorkers * kBatches;

net::Graph one_layer() {
  net::Graph graph;
  graph.name = "one";
  graph.inputs = {{"input", {4}}};
  graph.add("fc", std::make_unique<net::Linear>(4, 2), {0});
  net::initialize(graph, 0);
  return graph;
}

Recipe recipe_of(const std::string& drop) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "seed": 3, "drop": )j" + drop + "}", "r");
}

/// Micro-batches of a worker that end before the threshold.
std::int64_t ended(const stats::LatencyLaw& law, double threshold, std::int64_t step,
                   std::int64_t worker) {
  const RandomSource draws = stats::latency_source(3, "drop", step, "compute");
  std::int64_t count = 0;
  double time = 0;
  for (std::int64_t m = 0; m < kBatches; ++m) {
    time += law.draw(draws, stats::latency_element(worker, m));
    count += time < threshold;
  }
  return count;
}

struct Gradients final : net::Forwarding {
  using Forwarding::Forwarding;
  std::vector<float> all;
  void update(const net::Step&, const net::Update& u) override {
    all.insert(all.end(), u.gradient->data.begin(), u.gradient->data.end());
  }
};

/// The gradients of a step of one sample a micro-batch, and the share that it dropped.
std::pair<std::vector<float>, double> step_under(const std::string& drop) {
  net::Graph graph = one_layer();
  RecipeNumerics recipe(recipe_of(drop), graph);
  Gradients gradients(recipe);
  net::TrainOptions options;
  options.optimizer = "sgd";
  options.workers = kWorkers;
  options.micro_batches = kBatches;
  net::StepInput input;
  input.x = net::Tensor({kSamples, 4});
  const RandomSource random;
  for (std::int64_t i = 0; i < input.x.size(); ++i)
    input.x.data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
  for (std::int64_t i = 0; i < kSamples; ++i) {
    input.samples.push_back(i);
    input.targets.classes.push_back(static_cast<std::int32_t>(i % 3 == 0));
  }
  const std::vector<net::Parameter*> parameters = graph.parameters();
  const auto optimizer = net::make_optimizer(
      options, std::vector<const net::Parameter*>(parameters.begin(), parameters.end()));
  const net::StepResult result = net::training_step(graph, input, options, *optimizer, gradients);
  return {gradients.all, result.dropped};
}

}  // namespace

TEST_CASE("drop: threshold stops a worker when its latencies add up to it", "[fast]") {
  const net::Graph graph = one_layer();
  for (const char* const law : {"normal(1,0.4)", "injected(1,1)", "constant(1)"}) {
    RecipeNumerics numerics(
        recipe_of(std::string(R"j({"rule": "threshold", "threshold": 10, "latency": ")j") + law +
                  "\"}"),
        graph);
    for (std::int64_t s = 0; s < 20; ++s) {
      for (std::int64_t w = 0; w < kWorkers; ++w) {
        CHECK(numerics.participation({net::Phase::training, s}, w, kBatches).micro_batches ==
              ended(stats::latency_law(law), 10, s, w));
      }
    }
  }
  // The tenth ends at 10, which is not before it.
  RecipeNumerics constant(recipe_of(R"j("threshold(10,constant(1))")j"), graph);
  CHECK(constant.participation({net::Phase::training, 0}, 2, kBatches).micro_batches == 9);
}

TEST_CASE("drop: the realised divisor scales gradients by all over those computed", "[fast]") {
  std::int64_t taken = 0;
  for (std::int64_t w = 0; w < kWorkers; ++w)
    taken += ended(stats::latency_law("normal(1,0.4)"), 9, 0, w);
  REQUIRE(taken < kSamples);
  const auto [nominal, dropped] = step_under(R"j("threshold(9)")j");
  const auto [realised, same] = step_under(R"j("threshold(9,normal(1,0.4),realised)")j");
  CHECK(dropped == Approx(1 - static_cast<double>(taken) / kSamples));
  CHECK(same == dropped);
  REQUIRE(nominal.size() == 10);
  const double factor = static_cast<double>(kSamples) / static_cast<double>(taken);
  for (std::size_t i = 0; i < nominal.size(); ++i)
    CHECK(realised[i] == Approx(factor * nominal[i]).epsilon(1e-5));
  // Nothing is late: the bits of no drop.
  const auto whole = step_under("null");
  CHECK(step_under(R"j("threshold(1000)")j") == whole);
  CHECK(step_under(R"j("threshold(1000,normal(1,0.4),realised)")j") == whole);
  CHECK(whole.second == 0);
  // All is late: the step is not taken.
  CHECK(step_under(R"j("threshold(0.1,constant(1))")j") == std::pair(std::vector<float>(), 1.0));
}

TEST_CASE("drop: measured latencies of a file, pinned by their digest", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string file = folder / "seconds.txt";
  numemu::test::write_file(file, "1 1 1 4");
  const Json drop = recipe_of(R"j("threshold(9,file()j" + file + R"j())")j").json()["drop"];
  const stats::LatencyLaw law = stats::latency_law("file(" + file + ")");
  CHECK(drop["latency"] == law.pinned);
  const net::Graph graph = one_layer();
  RecipeNumerics numerics(recipe_of(drop.dump()), graph);
  for (std::int64_t w = 0; w < kWorkers; ++w)
    CHECK(numerics.participation({net::Phase::training, 5}, w, kBatches).micro_batches ==
          ended(law, 9, 5, w));
  numemu::test::write_file(file, "1 1 1 5");
  CHECK_THROWS_WITH(recipe_of(drop.dump()), Catch::Contains("expected latencies with the digest"));
}

TEST_CASE("drop: what thresholds are refused", "[fast]") {
  CHECK(recipe_of(R"j("threshold(10,normal( 1 ,0.40))")j").json()["drop"]["latency"] ==
        "normal(1,0.4)");
  CHECK_THROWS_WITH(recipe_of(R"j("threshold(0)")j"), Catch::Contains("threshold"));
  CHECK_THROWS_WITH(recipe_of(R"j("threshold(1,normal(1))")j"),
                    Catch::Contains("expected normal(MEAN,SIGMA)"));
  CHECK_THROWS_WITH(recipe_of(R"j("threshold(1,file(/nowhere))")j"),
                    Catch::Contains("/nowhere: cannot open"));
}

}  // namespace threshold_drop_test

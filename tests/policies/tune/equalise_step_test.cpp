// Steps equalise and smoothquant: both networks change alike, ranges that moved are calibrated
// again, and what cannot be moved is named.
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace equalise_step_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

const char kInt8[] = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int8", "granularity": "tensor"},
    "activation": {"format": "int8", "zero_point": "calibrated"}}})";

net::Tensor logits(const net::Graph& graph, const Tuning& tuning) {
  net::Numerics float32;
  return net::forward(graph, tuning.calibration.batch(0, kSamples), float32);
}

}  // namespace

TEST_CASE("equalise and smoothquant keep what the network computes", "[fast]") {
  const Recipe how = Recipe::parse_text(kInt8, "r");
  for (const char* step : {"equalise", "smoothquant"}) {
    INFO(step);
    Tuning tuning = small_tuning(how);
    for (net::Graph* const graph : {&tuning.graph, &tuning.reference}) {
      net::Tensor& weight = parameter_of(*graph, "conv1.weight");
      for (std::int64_t i = 0; i < 36; ++i) weight.data[i] *= 16;  // of output channel 0
    }
    tuning.ranges.clear();
    complete_ranges(tuning);
    const net::Tensor wide = net::weight_of(tuning.reference, "conv1");
    const net::Tensor before = logits(tuning.reference, tuning);
    const FixedRanges ranges = tuning.ranges;
    run_steps(std::string("gptq,") + step + "(scales=powers_of_two)", tuning);
    const bool same = logits(tuning.reference, tuning).data == before.data;
    CHECK(same);
    const bool moved = net::weight_of(tuning.reference, "conv1").data != wide.data;
    CHECK(moved);
    // The ranges of what conv2 reads moved with its channels; weights choose theirs again.
    CHECK(tuning.ranges["conv2"].activation != ranges.at("conv2").activation);
    CHECK(tuning.ranges["conv1"].activation == ranges.at("conv1").activation);
    CHECK(tuning.ranges["conv2"].weight.empty());
    CHECK(tuning.ranges["conv2"].activation);
  }
}

TEST_CASE("equalise and smoothquant name what stands between", "[fast]") {
  const Recipe how = Recipe::parse_text(kInt8, "r");
  const auto choices = parse_tune_steps("equalise,smoothquant(0.7)", "--steps");
  Tuning tuning = small_tuning(how);
  const auto equalise = choices[0].kind->make(*choices[0].options);
  equalise->run(tuning, 0, [](double) {});
  CHECK_THAT(equalise->summary(), Contains("2 of 3 links scaled by") &&
                                      Contains("layer fc (linear) go to the network's output"));
  const auto smooth = choices[1].kind->make(*choices[1].options);
  smooth->run(tuning, 0, [](double) {});
  CHECK_THAT(smooth->summary(), Contains("2 of 3 links scaled by") &&
                                    Contains("layer conv1 (conv2d) reads the network's input"));
  // One layer between input and output: nothing can be moved.
  net::Builder one("one", {5, 5, 4}, kClasses);
  one.global_pool("pool").classifier("fc");
  net::Graph a = one.take();
  net::initialize(a, 1);
  net::Builder two("one", {5, 5, 4}, kClasses);
  two.global_pool("pool").classifier("fc");
  net::Graph b = two.take();
  net::initialize(b, 1);
  Tuning alone{std::move(a), std::move(b), {}, how, "r.json", tuning.calibration, 0};
  CHECK_THROWS_WITH(run_steps("equalise", alone),
                    Contains("r.json: step equalise: no scales can be moved"));
}

}  // namespace equalise_step_test

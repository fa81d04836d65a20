// Step awq, and scales that move through a normalisation in pieces.
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace awq_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

constexpr std::int64_t kIn = 8, kHidden = 6;

/// A LayerNorm (or RMSNorm) in pieces, two linear layers and a ReLU. Channels 2 and 5 of what the
/// first layer reads are large.
net::Graph decomposed(bool mean) {
  const auto numbers = [](const net::Shape& shape, std::uint64_t seed) {
    const net::Tensor x = drawn(shape, seed);
    return std::vector<float>(x.data.begin(), x.data.end());
  };
  std::vector<float> gain(kIn, 1), shift = numbers({kIn}, 3);
  gain[2] = 30;
  gain[5] = 12;
  net::test::ModelWriter m;
  m.input("x", {-1, kIn})
      .floats("gain", {kIn}, gain)
      .floats("shift", {kIn}, shift)
      .floats("w1", {kIn, kHidden}, numbers({kIn, kHidden}, 1))
      .floats("w2", {kHidden, 3}, numbers({kHidden, 3}, 2));
  const std::vector<std::string> last = {
      net::test::attribute("axes", std::vector<std::int64_t>{-1}),
      net::test::attribute("keepdims", std::int64_t{1})};
  const std::string centred =
      mean ? m.op("Sub", {"x", m.op("ReduceMean", {"x"}, last)}) : std::string("x");
  const std::string square = m.op("ReduceMean", {m.op("Mul", {centred, centred})}, last);
  const std::string root = m.op("Sqrt", {m.op("Add", {square, m.number(1e-5f)})});
  const std::string normal = m.op("Mul", {"gain", m.op("Div", {centred, root})});
  m.node("MatMul", {mean ? m.op("Add", {normal, "shift"}) : normal, "w1"}, {"first"})
      .node("Relu", {"first"}, {"r"})
      .node("MatMul", {"r", "w2"}, {"second"})
      .output("second");
  net::Graph graph = m.import(13).graph;
  return graph;
}

Tuning tuning_on(const Recipe& recipe, bool mean) {
  return tuning_of(recipe, decomposed(mean), decomposed(mean), drawn({kSamples, kIn}, 7));
}

net::Tensor outputs(const Tuning& tuning) {
  net::Numerics float32;
  return net::forward(tuning.reference, tuning.calibration.batch(0, kSamples), float32);
}

const char kW3[] = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel"}}})";

}  // namespace

TEST_CASE("awq: the weights cost less and float32 stays", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3, "r");
  for (const bool mean : {true, false}) {
    INFO(mean);
    Tuning tuning = tuning_on(recipe, mean);
    const net::Tensor before = outputs(tuning);
    const double cost = off(tuning);
    run_steps("awq(scales=powers_of_two)", tuning);
    const bool same = outputs(tuning).data == before.data;
    CHECK(same);
    CHECK(off(tuning) < 0.7 * cost);
    // Real scales keep the function but for roundings.
    Tuning real = tuning_on(recipe, mean);
    run_steps("awq", real);
    CHECK(off(real) < 0.7 * cost);
    const net::Tensor after = outputs(real);
    for (std::int64_t i = 0; i < after.size(); ++i)
      CHECK(after.data[i] == Approx(before.data[i]).epsilon(1e-4).margin(1e-4));
  }
}

TEST_CASE("smoothquant and equalise: scales pass a normalisation in pieces", "[fast]") {
  const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {
      "weight": {"format": "int8"}, "activation": {"format": "int8"}}})",
                                           "r");
  for (const bool mean : {true, false}) {
    for (const char* const step : {"smoothquant", "equalise"}) {
      INFO(step << " " << mean);
      Tuning tuning = tuning_on(recipe, mean);
      const net::Tensor before = outputs(tuning);
      const double cost = off(tuning);
      const auto choices =
          parse_tune_steps(std::string(step) + "(scales=powers_of_two)", "--steps");
      const auto made = choices[0].kind->make(*choices[0].options);
      made->begin(tuning);
      made->run(tuning, 0, [](double) {});
      const bool same = outputs(tuning).data == before.data;
      CHECK(same);
      if (step == std::string("smoothquant")) {
        CHECK_THAT(made->summary(), Contains("2 of 2 links scaled"));
        CHECK(off(tuning) < cost / 2);
      }
    }
  }
}

TEST_CASE("awq: what reads the channels must be quantized", "[fast]") {
  const Recipe recipe = Recipe::parse_text(kW3, "r");
  Tuning tuning = small_tuning(recipe);
  run_steps("awq", tuning);
  const Recipe half = Recipe::parse_text(R"({"numemu_recipe": 1, "layers": [{"match": "conv1",
      "roles": {"weight": {"format": "int3"}}}]})",
                                         "r");
  Tuning first = small_tuning(half);
  CHECK_THROWS_WITH(run_steps("awq", first), Contains("step awq: no scales can be moved"));
}

}  // namespace awq_test

// AdaQuant: the first error as predicted, gradients of the quantized layer, less error, the same
// bits, and what is not trained.
#include "policies/tune/adaquant.hpp"

#include <omp.h>

#include <cmath>

#include "emu/net/graph.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/tune/base/roles.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace adaquant_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// A convolution 5 -> 6 on 40 images of 6 x 6, behind a ReLU as its inputs are.
struct Layer {
  std::unique_ptr<net::Op> op = std::make_unique<net::Conv2d>(net::Conv2dOptions{
      .in_channels = 5, .out_channels = 6, .kernel_height = 3, .kernel_width = 3, .pad = 1});
  net::Tensor x = noise({40, 6, 6, 5}, 1), target;
  RolePolicy activation = integers(4, Granularity::tensor);

  Layer() {
    for (float& v : x.data) v = std::max(v, 0.0f);
    op->parameters()[0].value = noise({6, 3, 3, 5}, 2);
    op->parameters()[1].value = noise({6}, 3);
    const net::Tensor* const inputs[] = {&x};
    const net::Shape shapes[] = {x.shape};
    target = net::Tensor(op->output_shape(shapes));
    net::Numerics numerics;
    op->forward({.layer = "layer", .numerics = numerics, .step = {}}, inputs, target);
    activation.format = &find_format("uint4");
    activation.zero_point = true;
    activation.fix({RoleQuantizer(activation).scale_of_elements(x.data.data(), x.size())});
  }
  AdaQuantLayer problem(const RolePolicy& weight) {
    return {.op = *op,
            .x = x,
            .target = target,
            .relu = true,
            .weight = weight,
            .activation = activation};
  }
};

/// Rates at which a few steps show: the published ones are for 1,000.
AdaQuantOptions few(std::int64_t iterations) {
  return {.iterations = iterations,
          .batch = 20,
          .activation_rate = 0.02,
          .range_rate = 0.02,
          .weight_rate = 0.003,
          .bias_rate = 0.003};
}

}  // namespace

TEST_CASE("adaquant: the error of rounding the weight is tr(D X^T X D^T)", "[fast]") {
  for (const RolePolicy& weight : {integers(3), blocks("mx(float4_e2m1fn,4)")}) {
    Layer layer;
    const AdaQuantResult result = adaquant(layer.problem(weight), few(0));
    CHECK(result.predicted > 0);
    // Sums of 45 products in float32: each rounds by 2^-24 of a partial sum, errors of both signs.
    constexpr double kFloat32 = 1e-5;
    CHECK(result.rounded == Approx(result.predicted).epsilon(kFloat32));
    CHECK(result.after == result.before);
    CHECK(result.best == 0);
  }
}

TEST_CASE("adaquant: the error falls, and the network's float32 layer is far from the grid",
          "[fast]") {
  Layer layer;
  const net::Tensor weight = layer.op->parameters()[0].value;
  std::int64_t seen = 0;
  const AdaQuantResult result = adaquant(layer.problem(integers(3)), few(60),
                                         [&](std::int64_t done) { CHECK(done == ++seen); });
  CHECK(seen == 60);
  CHECK(result.before > result.rounded / 10);
  CHECK(result.after < 0.8 * result.before);
  CHECK(result.best > 0);
  CHECK(result.weight_scales.size() == 6);
  REQUIRE(result.activation);
  CHECK(result.activation->scale > 0);
  CHECK(layer.op->parameters()[0].value.data != weight.data);
}

TEST_CASE("adaquant: each kind of parameter that is trained lowers the error", "[fast]") {
  for (int kind = 0; kind < 4; ++kind) {
    INFO("kind " << kind);
    AdaQuantOptions options = few(40);
    double* const rates[] = {&options.activation_rate, &options.range_rate, &options.weight_rate,
                             &options.bias_rate};
    for (int other = 0; other < 4; ++other)
      if (other != kind) *rates[other] = 0;
    Layer layer;
    const AdaQuantResult result = adaquant(layer.problem(integers(2)), options);
    CHECK(result.after < result.before);
  }
}

TEST_CASE("adaquant: nothing gets worse, whatever the rates", "[fast]") {
  Layer layer;
  AdaQuantOptions wild = few(10);
  wild.activation_rate = wild.range_rate = wild.weight_rate = wild.bias_rate = 100;
  const net::Tensor weight = layer.op->parameters()[0].value;
  const AdaQuantResult result = adaquant(layer.problem(integers(4)), wild);
  CHECK(result.after == result.before);
  CHECK(layer.op->parameters()[0].value.data == weight.data);
}

TEST_CASE("adaquant: the same bits for any number of threads, others for another seed", "[fast]") {
  const int before = omp_get_max_threads();
  std::vector<std::vector<float>> weights;
  for (const int threads : {1, 3, 2}) {
    omp_set_num_threads(threads);
    Layer layer;
    AdaQuantOptions options = few(20);
    options.seed = threads == 2 ? 1 : 0;
    adaquant(layer.problem(integers(3)), options);
    weights.push_back(layer.op->parameters()[0].value.data);
  }
  omp_set_num_threads(before);
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] != weights[2]);
}

TEST_CASE("adaquant: formats without a range of their own train weight and bias", "[fast]") {
  Layer layer;
  AdaQuantLayer problem = layer.problem(blocks("mx(float4_e2m1fn,4)"));
  problem.activation = blocks("mx(float4_e2m1fn,4)");
  const AdaQuantResult result = adaquant(problem, few(60));
  CHECK(result.after < result.before);
  CHECK(result.weight_scales.empty());
  CHECK_FALSE(result.activation);
}

namespace {

const char kW3A3[] = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel", "scale": "mse"},
    "activation": {"format": "uint3", "zero_point": "calibrated"}}})";
constexpr char kFew[] =
    "iterations=50,batch=20,activation_rate=0.02,range_rate=0.01,weight_rate=0.003";

}  // namespace

TEST_CASE("adaquant brings the quantized network nearer to float32", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const Tuning plain = small_tuning(how);
  for (const char* mode : {"sequential", "parallel"}) {
    Tuning tuning = small_tuning(how);
    run_steps(std::string("adaquant(mode=") + mode + "," + kFew + ")", tuning);
    CHECK(off(tuning) < 0.7 * off(plain));
    for (const char* layer : {"conv1", "conv2", "fc"}) {
      CHECK_FALSE(tuning.ranges[layer].weight.empty());
      CHECK(tuning.ranges[layer].activation != plain.ranges.at(layer).activation);
    }
  }
}

TEST_CASE("adaquant: a restart between layers leads to the same bytes", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const std::string text = std::string("adaquant(") + kFew + ")";
  CHECK_THAT(restarted_alike(text, 3, how),
             Catch::StartsWith("3 layers: sum of mean squared errors"));
}

TEST_CASE("adaquant: without quantized activations weights and biases alone are trained",
          "[fast]") {
  const Recipe how =
      Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}}})", "r");
  const Tuning plain = small_tuning(how);
  Tuning tuning = small_tuning(how);
  run_steps(std::string("adaquant(") + kFew + ")", tuning);
  CHECK(off(tuning) < off(plain));
  CHECK(tuning.ranges.empty());
}

TEST_CASE("adaquant in parallel tunes each layer as if it were alone", "[fast]") {
  const Recipe how = Recipe::parse_text(kW3A3, "r");
  const auto tuned = [&](const char* mode, const std::vector<std::int64_t>& parts) {
    Tuning tuning = small_tuning(how);
    const std::vector<TuneStepChoice> choices =
        parse_tune_steps(std::string("adaquant(mode=") + mode + "," + kFew + ")", "--steps");
    const auto step = choices[0].kind->make(*choices[0].options);
    CHECK(step->begin(tuning) == 3);
    for (const std::int64_t part : parts) step->run(tuning, part, [](double) {});
    return tuning;
  };
  // Its inputs and targets are float32's: W, b and ranges minimise |W X + b - Q(V) Q(X) - b'|^2 for
  // the X of the reference, whatever became of the layers before.
  CHECK(tuned_numbers(tuned("parallel", {2, 0, 1})) == tuned_numbers(tuned("parallel", {0, 1, 2})));
  const Tuning last = tuned("parallel", {2}), all = tuned("parallel", {0, 1, 2});
  CHECK(last.graph.nodes.back().op->parameters()[0].value.data ==
        all.graph.nodes.back().op->parameters()[0].value.data);
  CHECK(last.ranges.at("fc") == all.ranges.at("fc"));
  CHECK(tuned_numbers(tuned("sequential", {0, 1, 2})) != tuned_numbers(all));
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  CHECK(tuned_numbers(tuned("parallel", {0, 1, 2})) == tuned_numbers(all));
  omp_set_num_threads(before);
}

}  // namespace adaquant_test

// Multiply-adds of training by image size: a network by hand, the published counts, counted steps.
#include "emu/net/build/builder.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/image_sizes/image_sizes.hpp"
#include "tests/catch.hpp"

namespace numemu::cost_test {

using namespace numemu::experiments;

TEST_CASE("image-sizes: cost by hand", "[fast]") {
  net::Builder net("two", {8, 8, 1}, 10);
  net.conv3x3("conv", 4).relu("relu").depthwise("depthwise", 2).global_pool("pool");
  net.flatten("flatten").classifier("fc");
  const net::Graph graph = net.take();
  // conv: 9 x 4 weights, no gradient of the images; depthwise: 9 x 4 over half the side; fc: 4
  // x 10.
  CHECK(image_sizes::sample_cost(graph, 8) == 2 * 64 * 36 + (2 * 16 + 64) * 36 + 3 * 40);
  CHECK(image_sizes::sample_cost(graph, 6) == 2 * 36 * 36 + (2 * 9 + 36) * 36 + 3 * 40);
  CHECK(image_sizes::sample_cost(graph, 5) == 2 * 25 * 36 + (2 * 9 + 25) * 36 + 3 * 40);
}

TEST_CASE("image-sizes: steps of 64 at 28 pixels cost .996 at 20 and 1 at 14 by area", "[fast]") {
  net::TrainOptions options;
  options.batch = 64;
  CHECK(image_sizes::area_cost(options, 28, 20) == Approx(.996).margin(6e-4).epsilon(0));
  CHECK(image_sizes::area_cost(options, 28, 14) == 1);
  const net::Graph graph = net::build_net("mobilenet-small", {28, 28, 1}, 10);
  // 20 halves twice as 28 does; 14 halves to 7, then to 4 where a quarter of 28 would be 3.5.
  CHECK(image_sizes::step_cost(graph, options, 28, 20) == Approx(.996).margin(2e-3));
  CHECK(image_sizes::step_cost(graph, options, 28, 14) > 1.1);
}

TEST_CASE("image-sizes: counted products are those of the shapes", "[fast]") {
  for (const std::int64_t size : {9, 12}) {
    net::Graph graph = net::build_net("mobilenet-small", {12, 12, 1}, 10);
    net::initialize(graph, 0);
    image_sizes::at_size(graph, size);
    double counted = 0;
    net::Observing numerics({.before = [&](const net::Step&, const net::Product& product) {
      counted += net::multiply_adds(product);
    }});
    training_pass(graph, net::Tensor({2, size, size, 1}), {0, 1}, numerics, 0, 0);
    CHECK(counted == 2 * image_sizes::sample_cost(graph, size));
  }
}

}  // namespace numemu::cost_test

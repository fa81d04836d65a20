// Effective bits: elements, scales and what stays float32, counted by hand.
#include "policies/bits/effective_bits.hpp"

#include <fmt/format.h>

#include "emu/net/nets.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "tests/catch.hpp"

namespace effective_bits_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("effective bits count elements, scales and float32 biases", "[fast]") {
  net::Graph graph = net::build_net("mlp", {2, 2, 1}, 10);  // 4-256-128-10
  net::initialize(graph, 0);
  const FloatReference reference = float_reference(graph, net::Tensor({3, 2, 2, 1}, 0.5f));
  const double weights = 4 * 256 + 256 * 128 + 128 * 10, biases = 256 + 128 + 10, channels = biases;
  const double activations = 4 + 256 + 128;
  const auto bits = [&](const std::string& weight, const std::string& activation,
                        const std::string& more = "") {
    const std::string text = R"({"numemu_recipe": 1, "roles": {"weight": )" + weight +
                             R"(, "activation": )" + activation + "}" + more + "}";
    return effective_bits({Recipe::parse_text(text, "r"), graph}, reference);
  };
  const EffectiveBits tensor = bits(R"({"format": "int4"})", R"({"format": "int8"})");
  CHECK(tensor.weight == Approx((4 * weights + 3 * 32 + 32 * biases) / (weights + biases)));
  CHECK(tensor.product_weight == Approx((4 * weights + 3 * 32) / weights));
  // A static scale is one number for all samples, a dynamic one is one of each sample.
  CHECK(tensor.activation == 8);
  CHECK(bits("null", R"({"format": "int8"})", R"(, "calibrate": {"rule": "dynamic"})").activation ==
        Approx((8 * activations + 3 * 32) / activations));
  CHECK(bits("null", R"({"format": "int8", "zero_point": "calibrated"})",
             R"j(, "calibrate": {"rule": "percentile(99.9)"})j")
            .activation == 8);
  const EffectiveBits channel = bits(R"({"format": "int4", "granularity": "channel"})", "null");
  CHECK(channel.weight == Approx((4 * weights + 32 * channels + 32 * biases) / (weights + biases)));
  CHECK(channel.activation == 32);
  const EffectiveBits blocks = bits(R"({"format": "mxfp4", "granularity": "block"})",
                                    R"({"format": "nvfp4", "granularity": "block"})");
  // Lines of 4, 256 and 128 elements: 1, 8 and 4 blocks of 32, one byte each.
  CHECK(blocks.weight ==
        Approx((4 * weights + 8 * (256 + 128 * 8 + 10 * 4) + 32 * biases) / (weights + biases)));
  // 16 elements a block, and one tensor scale for each of the three activations.
  CHECK(blocks.activation == Approx((4 * activations + 8 * (1 + 16 + 8) + 3 * 32) / activations));
  const EffectiveBits unscaled = bits(R"({"format": "bfloat16", "scale": "none"})", "null");
  CHECK(unscaled.weight == Approx((16 * weights + 32 * biases) / (weights + biases)));
}

TEST_CASE("effective bits under masks count what is kept, tails too", "[fast]") {
  net::Graph graph = net::build_net("mlp", {3, 2, 1}, 10);  // 6-256-128-10
  net::initialize(graph, 0);
  const FloatReference reference = float_reference(graph, net::Tensor({3, 3, 2, 1}, 0.5f));
  const double first = 6 * 256, rest = 256 * 128 + 128 * 10, biases = 256 + 128 + 10;
  const auto weight = [&](const std::string& mask) {
    const std::string text =
        R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8", "scale": "none", "mask": ")" +
        mask + "\"}}}";
    const double bits = effective_bits({Recipe::parse_text(text, "r"), graph}, reference).weight;
    return bits * (first + rest + biases) - 32 * biases;
  };
  // 2:4 of 6 inputs: a group and a tail of two.
  CHECK(weight("greedy(2:4,remainder=pad)") == Approx(10 * (4 * 256 + rest / 2)));
  CHECK(weight("greedy(2:4,remainder=dense)") == Approx(10 * (2 * 256 + rest / 2) + 8 * 2 * 256));
  // One of 16: the tail of six keeps one, or all.
  CHECK(weight("greedy(1:16,remainder=pad)") == Approx(12 * (256 + rest / 16)));
  CHECK(weight("greedy(1:16,remainder=dense)") == Approx(8 * first + 12 * rest / 16));
  CHECK(weight("greedy(4:4,remainder=pad)") == Approx(8 * (first + rest)));
  // Tiles: 6 inputs and 10 outputs leave tails.
  CHECK(weight("transposable(2:4,remainder=dense)") ==
        Approx(10 * (2 * 256 + 256 * 64 + 8 * 64) + 8 * (2 * 256 + 2 * 128)));
  CHECK(weight("unstructured(0.25)") == Approx((8 * 0.25 + 1) * (first + rest)));
}

TEST_CASE("effective bits along the reduction: a convolution's blocks end with its depth",
          "[fast]") {
  net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(graph, 0);
  const FloatReference reference = float_reference(graph, net::Tensor({2, 28, 28, 1}, 0.5f));
  const Recipe recipe = Recipe::parse_text(
      R"j({"numemu_recipe": 1, "layers": [{"match": "conv1", "roles": {"activation":
          {"format": "group(int8,128,float32)", "axis": "reduction"}}}]})j",
      "r");
  const net::Shape shape = {1, 28, 28, 1};
  // 25 elements and a scale of 32 bits.
  CHECK(stored_bits(recipe.layer("conv1")[RolePart::activation], shape, 25) ==
        Approx(28 * 28 * (8 + 32.0 / 25)));
  double elements = 0;
  for (const auto& [name, x] : reference.inputs) elements += static_cast<double>(x.size()) / 2;
  CHECK(effective_bits({recipe, graph}, reference).activation ==
        Approx((28 * 28 * (8 + 32.0 / 25) + 32 * (elements - 28 * 28)) / elements));
}

TEST_CASE("effective bits of the role saved: blocks run along the whole sample", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {8, 8, 6}}};
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  const auto saved = [&](const char* format, std::int64_t height) {
    graph.inputs[0].shape = {height, 8, 6};
    const Recipe recipe = Recipe::parse_text(
        fmt::format(R"j({{"numemu_recipe": 1, "roles": {{"saved": {{"format": "{}"}}}}}})j",
                    format),
        "r");
    const FloatReference reference = float_reference(graph, net::Tensor({1, height, 8, 6}, 1));
    return effective_bits({recipe, graph}, reference).saved;
  };
  // 384 elements, two groups with a scale and a minimum.
  CHECK(saved("group(uint2,256,float32,min)", 8) == Approx(2 + 2 * 64 / 384.0));
  // Groups that ended at the 6 channels would take 12.7 bits.
  CHECK(saved("group(uint2,6,float32,min)", 8) == Approx(12.7).margin(0.05).epsilon(0));
  // The published code has minima in bfloat16, 16 bits fewer in a group: 2.125 bits, 15.06 times
  // fewer than float32.
  const double published = saved("group(uint2,256,bfloat16,min)", 16) - 16 / 256.0;
  CHECK(published == 2.125);
  CHECK(32 / published == Approx(15.06).margin(5e-3).epsilon(0));
}

TEST_CASE("parameter bytes: masters and states with their scales", "[fast]") {
  const net::Graph graph = net::build_net("mlp", {2, 2, 1}, 10);  // 4-256-128-10
  const double weights = 4 * 256 + 256 * 128 + 128 * 10, biases = 256 + 128 + 10;
  const auto bytes = [&](const std::string& keys, const std::string& optimizer = "adam") {
    const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1)" + keys + "}", "r");
    net::TrainOptions options;
    options.optimizer = optimizer;
    CHECK(stores_few_bits({recipe, graph}) == !keys.empty());
    return parameter_bytes({recipe, graph}, options);
  };
  CHECK(bytes("").master == 4);
  CHECK(bytes("").state == 8);
  CHECK(bytes("", "sgd").state == 4);
  CHECK(bytes(R"(, "update": {"master": "bfloat16"})").master == 2);
  CHECK(bytes(R"(, "update": {"master": "bfloat16"})").state == 8);
  const std::string blocks = R"j({"format": "group(int8,64,float32)"})j";
  // Lines of 4, 256 and 128 elements: 1, 4 and 2 blocks; biases of 256, 128 and 10: 4, 2 and 1.
  const double scales = 256 + 128 * 4 + 10 * 2 + 4 + 2 + 1;
  const double moment = 1 + 4 * scales / (weights + biases);
  CHECK(bytes(R"(, "roles": {"state": )" + blocks + "}").state == Approx(2 * moment));
  CHECK(bytes(R"(, "roles": {"state": {"first": )" + blocks + "}}").state == Approx(4 + moment));
  CHECK(bytes(R"(, "roles": {"state": {"second": )" + blocks + "}}").state == Approx(4 + moment));
  CHECK(bytes(R"(, "roles": {"state": {"second": )" + blocks + "}}", "sgd").state == 4);
  CHECK(bytes(R"(, "layers": [{"match": "fc2", "roles": {"state": {"format": "bfloat16"}}}])")
            .state == Approx(8 - 4 * (256 * 128 + 128) / (weights + biases)));
}

}  // namespace effective_bits_test

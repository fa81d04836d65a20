// The separable network: its size, and that depthwise filters see one channel each.
#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::mobilenet_test {
namespace {

TEST_CASE("mobilenet-small has depthwise and pointwise weights only", "[fast]") {
  Graph graph = build_net("mobilenet-small", {32, 32, 3}, 10);
  std::int64_t expected = 16 * 27 + 2 * 16 + 128 * 10 + 10, from = 16;
  for (const std::int64_t to : {32, 64, 64, 128, 128, 128}) {
    expected += 9 * from + 2 * from + from * to + 2 * to;
    from = to;
  }
  CHECK(graph.parameter_count() == expected);
}

TEST_CASE("a channel of a depthwise layer changes that channel alone", "[fast]") {
  Graph graph = build_net("mobilenet-small", {8, 8, 3}, 10);
  initialize(graph, 1);
  const auto depthwise = [&] {
    Tensor seen;
    const Observer keep = [&](const Node& node, const Tensor& tensor) {
      if (node.name == "block1.depthwise") seen = tensor;
    };
    Numerics numerics;
    forward(graph, test::random_tensor({1, 8, 8, 3}, 1), numerics, {}, &keep);
    return seen;
  };
  const Tensor before = depthwise();
  for (Parameter* parameter : graph.parameters()) {
    if (parameter->name == "bn1.bias") parameter->value.data[5] += 1;
  }
  const Tensor after = depthwise();
  REQUIRE(before.shape == Shape{1, 8, 8, 16});
  for (std::int64_t i = 0; i < before.size(); ++i) {
    if (i % 16 != 5) CHECK(before.data[i] == after.data[i]);
  }
  CHECK(before.data != after.data);
}

}  // namespace
}  // namespace numemu::net::mobilenet_test

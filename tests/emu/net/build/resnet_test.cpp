// Residual networks: published sizes, layer names, and the shortcut computed by hand.
#include <algorithm>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::resnet_test {
namespace {

TEST_CASE("resnets have the published sizes", "[fast]") {
  // He et al. 2016, table 6: 0.27, 0.46 and 0.85 million.
  const auto count = [](const char* name) {
    return build_net(name, {32, 32, 3}, 10).parameter_count();
  };
  const auto expected = [](std::int64_t blocks) {
    std::int64_t sum = 16 * 27 + 2 * 16 + 64 * 10 + 10;
    for (const std::int64_t c : {16, 32, 64}) {
      const std::int64_t from = c == 16 ? 16 : c / 2;
      sum += 9 * c * (from + (2 * blocks - 1) * c) + 4 * blocks * c;
    }
    return sum;
  };
  CHECK(count("resnet20") == expected(3));
  CHECK(count("resnet32") == expected(5));
  CHECK(count("resnet56") == expected(9));
  CHECK(count("resnet20") / 10'000 == 26);  // 0.2697
  CHECK(count("resnet32") / 10'000 == 46);
  CHECK(count("resnet56") / 10'000 == 85);
}

TEST_CASE("layers of a resnet are named by stage and block", "[fast]") {
  const Graph graph = build_net("resnet20", {32, 32, 3}, 10);
  std::vector<std::string> products, names;
  for (const Node& node : graph.nodes) {
    names.push_back(node.name);
    if (!node.op->products().empty()) products.push_back(node.name);
  }
  CHECK(products.size() == 20);
  CHECK(products.front() == "conv1");
  CHECK(products[7] == "stage2.block1.conv1");
  CHECK(products.back() == "fc");
  const auto first = std::find(names.begin(), names.end(), "stage2.block1.conv1");
  const std::vector<std::string> block(first, first + 9);
  CHECK(block == std::vector<std::string>{
                     "stage2.block1.conv1", "stage2.block1.bn1", "stage2.block1.relu1",
                     "stage2.block1.conv2", "stage2.block1.bn2", "stage2.block1.shortcut",
                     "stage2.block1.pad", "stage2.block1.add", "stage2.block1.relu2"});
}

TEST_CASE("a shortcut to more channels takes every second pixel and pads with zeros", "[fast]") {
  Graph graph = build_net("resnet20", {8, 8, 3}, 10);
  initialize(graph, 1);
  Tensor before, beside;
  const Observer keep = [&](const Node& node, const Tensor& tensor) {
    if (node.name == "stage1.block3.relu2") before = tensor;
    if (node.name == "stage2.block1.pad") beside = tensor;
  };
  Numerics numerics;
  forward(graph, test::random_tensor({2, 8, 8, 3}, 1), numerics, {}, &keep);
  REQUIRE(before.shape == Shape{2, 8, 8, 16});
  REQUIRE(beside.shape == Shape{2, 4, 4, 32});
  for (std::int64_t i = 0; i < beside.size(); ++i) {
    const std::int64_t c = i % 32, x = i / 32 % 4, y = i / 128 % 4, n = i / 512;
    const bool inside = c >= 8 && c < 24;
    CHECK(beside.data[i] == (inside ? before.data[((n * 8 + 2 * y) * 8 + 2 * x) * 16 + c - 8] : 0));
  }
}

}  // namespace
}  // namespace numemu::net::resnet_test

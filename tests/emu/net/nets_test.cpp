// The reference networks: sizes, names, other input shapes, unknown names.
#include "emu/net/nets.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

TEST_CASE("lenet and mlp have the published sizes", "[fast]") {
  CHECK(build_net("lenet", {28, 28, 1}, 10).parameter_count() == 61706);
  CHECK(build_net("mlp", {28, 28, 1}, 10).parameter_count() ==
        784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  const Graph lenet = build_net("lenet", {28, 28, 1}, 10);
  std::vector<std::string> names;
  for (const Parameter* p : lenet.parameters())
    names.push_back(p->name + " " + to_string(p->value.shape));
  CHECK(names == std::vector<std::string>{"conv1.weight [6, 5, 5, 1]", "conv1.bias [6]",
                                          "conv2.weight [16, 5, 5, 6]", "conv2.bias [16]",
                                          "fc1.weight [120, 400]", "fc1.bias [120]",
                                          "fc2.weight [84, 120]", "fc2.bias [84]",
                                          "fc3.weight [10, 84]", "fc3.bias [10]"});
}

TEST_CASE("sizes follow the input", "[fast]") {
  for (const std::string& name : net_names()) {
    const Graph graph = build_net(name, {32, 32, 3}, 7);
    Numerics numerics;
    CHECK(forward(graph, Tensor({2, 32, 32, 3}), numerics).shape == Shape{2, 7});
  }
  CHECK(build_net("lenet", {32, 32, 3}, 10).parameters()[4]->value.shape == Shape{120, 6 * 6 * 16});
}

TEST_CASE("unknown networks and inputs that are too small are refused", "[fast]") {
  CHECK_THROWS_WITH(build_net("lenat", {28, 28, 1}, 10), Catch::Contains("lenet"));
  CHECK_THROWS_AS(build_net("lenet", {4, 4, 1}, 10), Error);
  CHECK_THROWS_AS(build_net("lenet", {784}, 10), Error);
}

}  // namespace
}  // namespace numemu::net

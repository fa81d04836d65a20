// The builder: shapes, branches, what it refuses.
#include "emu/net/build/builder.hpp"

#include "emu/net/ops/binary.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net::builder_test {
namespace {

TEST_CASE("every layer reads the current value", "[fast]") {
  Builder net("n", {8, 6, 4}, 5);
  CHECK(net.shape() == Shape{1, 8, 6, 4});
  CHECK(net.conv3x3("a", 7, 2).shape() == Shape{1, 4, 3, 7});
  CHECK(net.depthwise("b", 2).shape() == Shape{1, 2, 2, 7});
  CHECK(net.conv1x1("c", 9).batch_norm("d").relu6("e").shape() == Shape{1, 2, 2, 9});
  CHECK(net.max_pool("f", 2).shape() == Shape{1, 1, 1, 9});
  CHECK(net.flatten("g").classifier("h").shape() == Shape{1, 5});
  const Graph graph = net.take();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    CHECK(graph.nodes[i].inputs == std::vector<int>{static_cast<int>(i)});
  CHECK(graph.nodes[1].op->parameters()[0].value.shape == Shape{7, 3, 3, 1});
}

TEST_CASE("branches leave from a value and join", "[fast]") {
  Builder net("n", {3}, 2);
  const int input = net.value();
  const int left = net.linear("left", 4).value();
  const int right = net.at(input).linear("right", 4, false).value();
  CHECK(net.shape() == Shape{1, 4});
  net.node("sum", std::make_unique<Binary>("add"), {left, right}).relu("relu");
  const Graph graph = net.take();
  CHECK(graph.nodes[1].inputs == std::vector<int>{0});
  CHECK(graph.nodes[2].inputs == std::vector<int>{1, 2});
  CHECK(graph.nodes[3].inputs == std::vector<int>{3});
  CHECK(graph.nodes[1].op->parameters().size() == 1);
}

TEST_CASE("layers that do not fit are refused with the network's name", "[fast]") {
  Builder net("flat", {3}, 2);
  CHECK_THROWS_WITH(net.conv3x3("c", 4), "network flat: c needs images, got [1, 3]");
  CHECK_THROWS_AS(net.node("sum", std::make_unique<Binary>("add"), {0}), Error);
  Builder images("pictures", {4, 4, 1}, 2);
  CHECK_THROWS_WITH(images.embedding("e", 4),
                    "network pictures: expected windows [context] of a text, got [4, 4, 1]");
}

}  // namespace
}  // namespace numemu::net::builder_test

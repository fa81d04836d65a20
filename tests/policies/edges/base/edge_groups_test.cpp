// Which tensors are codes, where they are rounded, and which share a scale.
#include "policies/edges/base/edge_groups.hpp"

#include <memory>
#include <string>

#include "emu/net/build/builder.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "tests/catch.hpp"

namespace numemu::edge_groups_test {

using policies::EdgeGroups, policies::EdgeRules;

/// a = relu(conv(x)); b = relu6(conv(a)); c = concat(a, b); d = pool(c); e = conv(d) + conv(d);
/// relu, flatten, linear, exponential.
struct Branches {
  int conv1, relu1, conv2, relu2, concat, pool, left, right, sum, last, flat, fc;
  net::Graph graph;

  Branches() {
    net::Builder b("branches", {4, 4, 3}, 5);
    const auto conv = [&](std::string name, std::int64_t in) {
      b.conv(std::move(name), {.in_channels = in, .out_channels = 4});
      return b.value();
    };
    conv1 = conv("conv1", 3);
    relu1 = b.relu("relu1").value();
    conv2 = conv("conv2", 4);
    relu2 = b.relu6("relu2").value();
    concat = b.node("concat", std::make_unique<net::Concat>(-1), {relu1, relu2}).value();
    pool = b.max_pool("pool", 2).value();
    left = conv("left", 8);
    b.at(pool);
    right = conv("right", 8);
    sum = b.node("sum", std::make_unique<net::Binary>("add"), {left, right}).value();
    last = b.relu("last").value();
    flat = b.flatten("flat").value();
    fc = b.classifier("fc").value();
    graph = b.take();
  }
};

EdgeRules plain(std::string_view) { return {.quantized = true}; }

TEST_CASE("edge groups: bounds come before the rounding, views are their input", "[fast]") {
  const Branches n;
  const EdgeGroups groups(n.graph, plain);
  for (const auto& [product, at] : {std::pair(n.conv1, n.relu1),
                                    {n.conv2, n.relu2},
                                    {n.sum, n.last},
                                    {n.left, n.left},
                                    {n.fc, n.fc}}) {
    CHECK(groups.quantized_at(product) == at);
    CHECK(groups.rounds(at));
    CHECK(groups.rounds(product) == (product == at));
  }
  CHECK(groups.group(n.conv1) == EdgeGroups::kNone);
  // The input is rounded by the product that reads it; a concatenation by who reads that.
  CHECK(groups.group(0) != EdgeGroups::kNone);
  CHECK_FALSE(groups.rounds(0));
  CHECK_FALSE(groups.rounds(n.concat));
  CHECK(groups.group(n.concat) == groups.group(n.pool));
  CHECK(groups.group(n.flat) == groups.group(n.last));
  CHECK(groups.group(n.relu1) != groups.group(n.relu2));
  CHECK(groups.group(n.left) != groups.group(n.right));
  // Elements that are picked are of the same tensor.
  CHECK(groups.tensor(n.pool) == n.concat);
  CHECK(groups.tensor(n.flat) == n.last);
  CHECK(groups.tensor(n.conv1) == EdgeGroups::kNone);
  CHECK(groups.groups() == 8);  // input, relu1, relu2, concat, left, right, last, fc
}

TEST_CASE("edge groups: one scale for what is added or concatenated", "[fast]") {
  const Branches n;
  const EdgeGroups one(n.graph, [](std::string_view) {
    return EdgeRules{.quantized = true, .add_one = true, .concat_one = true};
  });
  CHECK(one.group(n.relu1) == one.group(n.relu2));
  CHECK(one.group(n.relu1) == one.group(n.concat));
  CHECK(one.group(n.left) == one.group(n.right));
  CHECK(one.group(n.left) != one.group(n.last));
  CHECK(one.tensor(n.relu1) != one.tensor(n.relu2));
  CHECK(one.groups() == 5);
  const EdgeGroups of_sum(n.graph, [](std::string_view layer) {
    return EdgeRules{.quantized = true, .add_one = layer == "sum", .concat_one = layer == "sum"};
  });
  CHECK(of_sum.groups() == 7);
}

TEST_CASE("edge groups: layers choose, and what is fused has one reader", "[fast]") {
  const Branches n;
  const EdgeGroups apart(n.graph, [](std::string_view layer) {
    return EdgeRules{.quantized = layer != "left", .fused = layer != "conv1"};
  });
  CHECK(apart.quantized_at(n.conv1) == n.conv1);
  CHECK(apart.rounds(n.conv1));
  CHECK(apart.rounds(n.relu1));
  CHECK(apart.group(n.left) == EdgeGroups::kNone);
  CHECK(apart.quantized_at(n.left) == EdgeGroups::kNone);

  net::Builder b("two readers", {4}, 3);
  const int fc = b.linear("fc", 3).value(), relu = b.relu("relu").value();
  const int sum = b.node("sum", std::make_unique<net::Binary>("add"), {fc, relu}).value();
  const net::Graph graph = b.take();
  const EdgeGroups groups(graph, plain);
  CHECK(groups.quantized_at(fc) == fc);
  CHECK(groups.rounds(relu));
  CHECK(groups.rounds(sum));
}

/// An operator of a kind that nothing else knows.
class Unheard final : public net::Op {
 public:
  explicit Unheard(net::OnCodes on_codes) : Op({.kind = "unheard", .on_codes = on_codes}) {}
  net::Shape output_shape(net::Shapes inputs) const override { return inputs[0]; }
  void forward(const net::OpCall&, net::OpInputs, net::Tensor&) const override {}
  void backward(const net::OpCall&, const net::OpBackward&) const override {}
};

TEST_CASE("edge groups: what an operator declares decides, not its kind", "[fast]") {
  using net::OnCodes;
  for (const OnCodes declared : {OnCodes::never, OnCodes::computes, OnCodes::normalises,
                                 OnCodes::bounds, OnCodes::picks, OnCodes::adds}) {
    net::Builder b("declared", {4}, 3);
    const int fc = b.linear("fc", 4).value();
    const int own = b.node("own", std::make_unique<Unheard>(declared)).value();
    const int soft = b.node("soft", std::make_unique<net::Softmax>()).value();
    const net::Graph graph = b.take();
    const EdgeGroups groups(graph, plain);
    const bool fuses = declared == OnCodes::normalises || declared == OnCodes::bounds;
    CHECK((groups.group(own) != EdgeGroups::kNone) == (declared != OnCodes::never));
    CHECK(groups.quantized_at(fc) == (fuses ? own : fc));
    CHECK(groups.rounds(fc) == !fuses);
    CHECK((groups.tensor(own) == fc) == (declared == OnCodes::picks));
    CHECK(groups.group(soft) == EdgeGroups::kNone);
  }
}

TEST_CASE("edge groups: other operators stay in float32 between products", "[fast]") {
  net::Builder b("softmax", {4}, 3);
  const int fc = b.linear("fc", 3).value();
  const int soft = b.node("soft", std::make_unique<net::Softmax>()).value();
  const int next = b.linear("next", 3).value();
  const int end = b.node("end", std::make_unique<net::Softmax>()).value();
  const net::Graph graph = b.take();
  const EdgeGroups groups(graph, plain);
  CHECK(groups.rounds(fc));
  CHECK(groups.rounds(soft));  // a product reads it
  CHECK(groups.rounds(next));
  CHECK(groups.group(end) == EdgeGroups::kNone);
}

}  // namespace numemu::edge_groups_test

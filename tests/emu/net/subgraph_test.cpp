// Parts of a network, one after the other, compute the bits of the whole in both directions.
#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::subgraph_test {
namespace {

const Step kStep{.phase = Phase::training, .index = 3};

Injection constant(const std::string& value, const Tensor& gradient) {
  return {value, [gradient](const Tensor&) { return gradient; }};
}

void check_cut(Graph& graph, const Tensor& x, const std::string& cut) {
  INFO(graph.name << " cut at " << cut);
  const std::string output = graph.nodes.back().name;
  const std::vector<std::string> input{"input"}, middle{cut};
  Graph front = subgraph(graph, input, cut), back = subgraph(graph, middle, output);
  CHECK(front.parameters().size() + back.parameters().size() == graph.parameters().size());
  Numerics float32;
  const Tensor whole = forward(graph, x, float32);
  CHECK(forward(back, forward(front, x, float32), float32).data == whole.data);

  const Tensor at = test::random_tensor(whole.shape, 2);
  const std::vector<Injection> end{constant(output, at)};
  const Gradients expected = gradients(graph, {&x, 1}, float32, kStep, input, end, 5);
  const Tensor between =
      gradients(front, {&x, 1}, float32, kStep, {}, {}, 5).output;  // as in training
  const Gradients second = gradients(back, {&between, 1}, float32, kStep, middle, end, 5);
  const std::vector<Injection> handed{constant(cut, second.values[0])};
  const Gradients first = gradients(front, {&x, 1}, float32, kStep, input, handed, 5);
  CHECK(second.output.data == expected.output.data);
  CHECK(first.values[0].data == expected.values[0].data);
  std::vector<Tensor> parameters = first.parameters;
  parameters.insert(parameters.end(), second.parameters.begin(), second.parameters.end());
  REQUIRE(parameters.size() == expected.parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    CHECK(parameters[p].data == expected.parameters[p].data);
}

TEST_CASE("two parts give the bits of the whole, forward and backward", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  Targets targets;
  const Tensor x = data.train_batch({0, 1, 2, 3, 4, 5, 6, 7}, targets);
  for (const char* cut : {"conv", "norm", "flatten", "dropout"}) check_cut(graph, x, cut);
}

TEST_CASE("parts share the parameters of the whole", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  const std::vector<std::string> from{"relu"};
  Graph part = subgraph(graph, from, "fc");
  CHECK(part.inputs[0].name == "relu");
  CHECK(part.inputs[0].shape == Shape{3, 3, 4});
  REQUIRE(part.parameters().size() == 2);
  CHECK(part.parameters()[0] == graph.parameters()[graph.parameters().size() - 2]);
  CHECK(part.parameters()[0]->name == "fc.weight");
}

TEST_CASE("a part that crosses a branch takes all values that lead into it", "[fast]") {
  Graph graph = build_net("resnet20", {8, 8, 3}, 10);
  initialize(graph, 1);
  const Tensor x = test::random_tensor({2, 8, 8, 3}, 3);
  const std::string output = graph.nodes.back().name;
  std::size_t add = 0;
  while (graph.nodes[add].op->kind() != "add") ++add;
  const Node& join = graph.nodes[add];
  check_cut(graph, x, join.name);
  std::vector<std::string> branches;
  for (const int v : join.inputs) branches.emplace_back(graph.value_name(v));
  const Graph back = subgraph(graph, branches, output);
  Numerics float32;
  std::vector<Tensor> middle;
  for (const std::string& branch : branches) {
    const std::vector<std::string> input{"input"};
    middle.push_back(forward(subgraph(graph, input, branch), x, float32));
  }
  CHECK(forward(back, middle, float32).data == forward(graph, x, float32).data);
  const std::vector<std::string> one{branches[0]};
  CHECK_THROWS_WITH(subgraph(graph, one, output),
                    Catch::Contains("also depends on the input input"));
}

TEST_CASE("a part starts from the inputs that its value depends on", "[fast]") {
  Graph graph;
  graph.name = "two";
  graph.inputs = {{"left", {3}}, {"right", {4}}};
  const int left = graph.add("a", std::make_unique<Linear>(3, 2), {0});
  const int right = graph.add("b", std::make_unique<Linear>(4, 2), {1});
  graph.add("sum", std::make_unique<Binary>("add"), {left, right});
  initialize(graph, 1);
  const std::vector<Tensor> batch = {test::random_tensor({2, 3}, 3),
                                     test::random_tensor({2, 4}, 4)};
  Numerics float32;
  const PartFromInputs b = part_from_inputs(graph, "b");
  CHECK(b.inputs == std::vector<std::size_t>{1});
  const std::vector<Tensor> read = b.read(batch);
  REQUIRE(read.size() == 1);
  CHECK(forward(b.graph, read, float32).shape == Shape{2, 2});
  const PartFromInputs sum = part_from_inputs(graph, "sum");
  CHECK(sum.inputs == std::vector<std::size_t>{0, 1});
  CHECK(forward(sum.graph, sum.read(batch), float32).data == forward(graph, batch, float32).data);
}

TEST_CASE("parts that cannot be are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  const auto part = [&](const std::vector<std::string>& from, const std::string& to) {
    return subgraph(graph, from, to);
  };
  CHECK_THROWS_WITH(part({"rleu"}, "fc"), Catch::Contains("'relu'"));
  CHECK_THROWS_WITH(part({"relu"}, "fcc"), Catch::Contains("'fc'"));
  CHECK_THROWS_WITH(part({"fc"}, "relu"), Catch::Contains("depends on the input"));
  CHECK_THROWS_WITH(part({"relu"}, "relu"), Catch::Contains("a value that depends on relu"));
  CHECK_THROWS_WITH(part({"relu", "relu"}, "fc"), Catch::Contains("twice"));
  CHECK_THROWS_WITH(part({"input", "relu"}, "fc"),
                    Catch::Contains("a value that depends on input"));
}

}  // namespace
}  // namespace numemu::net::subgraph_test

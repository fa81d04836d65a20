// The graph of the operator and its numerics.
#include "tests/policies/one_layer.hpp"

namespace numemu::policies::test {

OneLayer::OneLayer(const std::string& keys, std::unique_ptr<net::Op> op, const net::Shape& input,
                   std::size_t inputs)
    : graph_(of(std::move(op), input, inputs)),
      numerics_(Recipe::parse_text(R"j({"numemu_recipe": 1, "seed": 7, )j" + keys + "}", "r"),
                graph_, "r"),
      at_(numerics_) {}

net::Graph OneLayer::of(std::unique_ptr<net::Op> op, const net::Shape& input, std::size_t inputs) {
  net::Graph graph;
  graph.name = "one";
  std::vector<int> values;
  for (std::size_t i = 0; i < inputs; ++i) {
    graph.inputs.push_back({"input" + std::to_string(i), input});
    values.push_back(static_cast<int>(i));
  }
  graph.add("layer", std::move(op), values);
  net::initialize(graph, 0);
  return graph;
}

}  // namespace numemu::policies::test

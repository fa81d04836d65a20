// The float32 tensors of the layers.
#include "policies/calibrate/reference.hpp"

#include <memory>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace reference_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("a reference has the operands and outputs of every layer", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"a", {3, 4}}, {"b", {5, 4}}};
  graph.add("first", std::make_unique<net::Linear>(4, 4), {0});
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("scores", std::make_unique<net::MatMul>(net::MatMulOptions{.transpose_b = true}),
            {3, 1});
  net::initialize(graph, 1);
  const std::vector<net::Tensor> batch = {noise({6, 3, 4}, 1), noise({6, 5, 4}, 2)};
  const FloatReference reference = float_reference(graph, batch);
  CHECK(reference.samples() == 6);
  CHECK(reference.inputs.size() == 2);
  CHECK(differences(reference.inputs.at("first").data, batch[0].data) == 0);
  CHECK_FALSE(reference.seconds.contains("first"));
  CHECK(differences(reference.seconds.at("scores").data, batch[1].data) == 0);
  CHECK(reference.outputs.at("scores").shape == net::Shape{6, 3, 5});
  CHECK(differences(reference.outputs.at("scores").data, reference.logits.data) == 0);
  CHECK(reference.outputs.at("first").shape == net::Shape{6, 3, 4});
  CHECK(first_samples(reference.logits, 2).shape == net::Shape{2, 3, 5});
  CHECK(first_samples(reference.logits, 9).shape == net::Shape{6, 3, 5});
}

TEST_CASE("a recurrent layer has its times side by side", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"x", {7, 3}}};
  graph.add("lstm", std::make_unique<net::Lstm>(3, 4), {0});
  net::initialize(graph, 1);
  const FloatReference reference =
      float_reference(graph, std::vector<net::Tensor>{noise({2, 7, 3}, 1)});
  for (const auto& [name, x] : reference.inputs) {
    INFO(name);
    CHECK(x.dim(0) == 2);
  }
  std::int64_t states = 0;
  for (const auto& [name, x] : reference.inputs)
    states += x.shape == net::Shape{2, 6, 4};  // none at the first
  CHECK(states == 1);
}

TEST_CASE("a recurrent layer of one step multiplies nothing", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"x", {1, 3}}};
  graph.add("lstm", std::make_unique<net::Lstm>(3, 4), {0});
  net::initialize(graph, 1);
  const FloatReference reference =
      float_reference(graph, std::vector<net::Tensor>{noise({2, 1, 3}, 1)});
  CHECK(reference.inputs.at("lstm.recurrent").shape == net::Shape{2, 0});
  CHECK(reference.outputs.at("lstm.recurrent").shape == net::Shape{2, 0});
  CHECK(reference.inputs.at("lstm.input").shape == net::Shape{2, 1, 3});
}

}  // namespace reference_test

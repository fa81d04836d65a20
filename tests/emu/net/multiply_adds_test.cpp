// Multiply-adds of layers and attention, counted by hand.
#include "emu/net/multiply_adds.hpp"

#include "emu/net/nets.hpp"
#include "emu/net/ops/matmul.hpp"
#include "tests/catch.hpp"

using namespace numemu;

TEST_CASE("multiply-adds of a network and of stacked products", "[fast]") {
  net::Graph mlp = net::build_net("mlp", {8, 8, 1}, 10);
  net::initialize(mlp, 1);
  CHECK(net::multiply_adds(mlp, {net::Tensor({3, 8, 8, 1})}) ==
        3 * (64 * 256 + 256 * 128 + 128 * 10));

  net::Graph scores;
  scores.inputs = {{"query", {5, 8}}, {"key", {7, 8}}};
  scores.add("scores",
             std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 2, .transpose_b = true}),
             {0, 1});
  CHECK(net::multiply_adds(scores, {net::Tensor({3, 5, 8}), net::Tensor({3, 7, 8})}) ==
        3 * 2 * 5 * 7 * 4);
}

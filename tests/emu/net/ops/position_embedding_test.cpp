// Positions: the sum and its gradients, and the shapes that are refused.
#include "emu/net/ops/position_embedding.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("position_embedding adds a row per position", "[fast]") {
  constexpr std::int64_t kBatch = 3, kLength = 4, kWidth = 5;
  PositionEmbedding op(kLength, kWidth);
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y = arguments[0];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += arguments[1][i % (kLength * kWidth)];
    return y;
  };
  // One rounding forward, and one of the sum over the batch.
  test::check_op(op, {test::random_tensor({kBatch, kLength, kWidth}, 1)}, reference,
                 test::dot_tolerance(kBatch));
}

TEST_CASE("position_embedding refuses other lengths", "[fast]") {
  PositionEmbedding op(4, 5);
  const auto shape = [&](Shape input) { return op.output_shape(std::span(&input, 1)); };
  CHECK(shape({7, 4, 5}) == Shape{7, 4, 5});
  CHECK_THROWS_WITH(shape({7, 3, 5}), Catch::Contains("[batch, 4, 5], got [7, 3, 5]"));
  CHECK_THROWS_AS(shape({7, 4, 6}), Error);
  CHECK_THROWS_AS(shape({4, 5}), Error);
  CHECK_THROWS_AS(PositionEmbedding(0, 5), Error);
  CHECK(op.parameters()[0].value.shape == Shape{4, 5});
  CHECK(op.parameters()[0].fan_in == 5);
}

}  // namespace
}  // namespace numemu::net

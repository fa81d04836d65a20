// The largest and smallest elements of lines and their places; ties, NaN, gradients.
#include "emu/net/ops/top_k.hpp"

#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

test::OpResult run(const TopKOptions& options, const Shape& shape, std::vector<float> data) {
  Tensor x(shape);
  x.data = std::move(data);
  Numerics numerics;
  return test::run_op(TopK(options), {x}, numerics);
}

TEST_CASE("top_k orders the largest or smallest elements of an axis", "[fast]") {
  const std::vector<float> x{3, 1, 4, 1, 5, 9, 2, 6};
  CHECK(run({.k = 3}, {2, 4}, x).output.data == std::vector<float>{4, 3, 1, 9, 6, 5});
  CHECK(run({.k = 3, .places = true}, {2, 4}, x).output.data ==
        std::vector<float>{2, 0, 1, 1, 3, 0});
  CHECK(run({.axis = 0, .k = 1, .largest = false}, {2, 4}, x).output.data ==
        std::vector<float>{3, 1, 2, 1});
  const test::OpResult dropped = run({.axis = 1, .places = true, .keep = false}, {2, 4}, x);
  CHECK(dropped.output.shape == Shape{2});
  CHECK(dropped.output.data == std::vector<float>{2, 1});
}

TEST_CASE("of equal elements the first or the last one comes first; NaN is the largest", "[fast]") {
  CHECK(run({.places = true}, {4}, {1, 7, 7, 0}).output.data == std::vector<float>{1});
  CHECK(run({.places = true, .last_first = true}, {4}, {1, 7, 7, 0}).output.data ==
        std::vector<float>{2});
  CHECK(run({.k = 2, .places = true}, {3}, {1, kNan, 7}).output.data == std::vector<float>{1, 2});
}

TEST_CASE("the gradient goes to the chosen elements", "[fast]") {
  const test::OpResult result = run({.k = 2}, {4}, {3, 1, 4, 1});
  const std::vector<float>& g = result.grad_output.data;
  CHECK(result.grad_inputs[0].data == std::vector<float>{g[1], 0, g[0], 0});
  CHECK(run({.k = 2, .places = true}, {4}, {3, 1, 4, 1}).grad_inputs[0].data ==
        std::vector<float>(4, 0));
}

TEST_CASE("top_k refuses more elements than there are", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(TopK({.k = 4}).output_shape(shapes), Catch::Contains("at least 4 elements"));
  CHECK_THROWS_WITH(TopK({.k = 0}), Catch::Contains("at least one"));
}

}  // namespace
}  // namespace numemu::net

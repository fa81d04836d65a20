// A constant: its value, shape and no gradient.
#include "emu/net/ops/constant.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("a constant gives its value and is never trained", "[fast]") {
  Constant op(test::random_tensor({2, 3}, 1));
  REQUIRE(op.parameters().size() == 1);
  CHECK(op.parameters()[0].name == "value");
  CHECK_FALSE(op.parameters()[0].trained);
  CHECK(op.result() == ResultKind::view);
  Numerics numerics;
  const test::OpResult result = test::run_op(op, {}, numerics);
  CHECK(result.output.shape == Shape{2, 3});
  CHECK(result.output.data == test::random_tensor({2, 3}, 1).data);
  CHECK(result.grad_parameters[0].empty());
  CHECK(Constant(Tensor({1}, kAnyNan)).kind() == "constant");
  CHECK(Constant(Tensor({1}, kInfinity)).parameters()[0].fan_in < 0);
  const std::vector<Shape> one{{2}};
  CHECK_THROWS_WITH(op.output_shape(one), Catch::Contains("no inputs"));
}

}  // namespace
}  // namespace numemu::net

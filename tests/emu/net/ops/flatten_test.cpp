// Flatten keeps the elements in order, both ways.
#include "emu/net/ops/flatten.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("flatten keeps the elements in order, both ways", "[fast]") {
  Flatten op;
  const auto reference = [](const std::vector<test::Doubles>& arguments) { return arguments[0]; };
  constexpr double kTolerance = 60 * 0x1p-53 * 0x1p12;  // roundings of the difference quotient
  test::check_op(op, {test::random_tensor({2, 3, 5, 2}, 1)}, reference, kTolerance);
  const std::vector<Shape> shapes{{2, 3, 5, 2}}, scalar{Shape{}};
  CHECK(op.output_shape(shapes) == Shape{2, 30});
  CHECK_THROWS_AS(op.output_shape(scalar), Error);
}

}  // namespace
}  // namespace numemu::net

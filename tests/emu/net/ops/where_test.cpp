// Where: choice, gradients, broadcasting, special values.
#include "emu/net/ops/where.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("where and its gradients", "[fast]") {
  Where op;
  Tensor condition({2, 1, 5});
  condition.data = {0, 1, -2, 0, 0.5f, 1, 1, 0, 0, 0};
  const std::vector<Tensor> inputs{condition, test::random_tensor({3, 5}, 1),
                                   test::random_tensor({1}, 2)};
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (int n = 0; n < 2; ++n) {
      for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 5; ++c)  // by the condition itself, which the differences leave alone
          y.push_back(condition.data[n * 5 + c] != 0 ? arguments[1][r * 5 + c] : arguments[2][0]);
      }
    }
    return y;
  };
  constexpr double kTolerance = 30 * 0x1p-24;  // a sum of at most 30 gradients below 1, rounded
  test::check_op(op, inputs, reference, kTolerance);
}

TEST_CASE("where takes NaN for true and gives the neutral NaN", "[fast]") {
  Tensor condition({3}), a({3}), b({3}, 2);
  condition.data = {kAnyNan, -0.0f, kInfinity};
  a.data = {5, 5, kAnyNan};
  Numerics numerics;
  CHECK(test::bits(test::run_op(Where(), {condition, a, b}, numerics).output) ==
        std::vector<std::uint32_t>{0x40a00000, 0x40000000, 0x7fc00000});
  const std::vector<Shape> two{{2}, {2}}, wrong{{2}, {3}, {1}};
  CHECK_THROWS_WITH(Where().output_shape(two), Catch::Contains("three"));
  CHECK_THROWS_WITH(Where().output_shape(wrong), Catch::Contains("[2], [3], [1]"));
}

}  // namespace
}  // namespace numemu::net

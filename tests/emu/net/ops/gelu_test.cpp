// Both forms of gelu: values, gradients, tails, special values, threads.
#include "emu/net/ops/gelu.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("gelu and its gradient in both forms", "[fast]") {
  Tensor x = test::random_tensor({3, 50}, 1);
  for (float& v : x.data) v *= 6;
  // Results and gradients are below 6: three roundings of float32.
  constexpr double kTolerance = 6 * 3 * 0x1p-24;
  constexpr double kThird = 2;  // numerically 1.6 at most
  Gelu exact(GeluForm::erf);
  test::check_pointwise(
      exact, x, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); }, kTolerance,
      kThird);
  Gelu approximate(GeluForm::tanh);
  test::check_pointwise(
      approximate, x,
      [](double v) {
        constexpr double kPi = 3.14159265358979323846;
        return v / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (v + 0.044715 * v * v * v)));
      },
      kTolerance, kThird);
}

TEST_CASE("gelu keeps its relative precision in the lower tail", "[fast]") {
  for (const float v : {-3.0f, -6.0f, -9.0f, -12.5f}) {
    const double expected = v * 0.5 * std::erfc(-double{v} / std::sqrt(2.0));
    constexpr double kRelative = 0x1p-23;  // 2 ulp
    CHECK(test::forward_of(Gelu(), {v}).data[0] == Approx(expected).epsilon(kRelative).margin(0));
  }
}

TEST_CASE("gelu of special values", "[fast]") {
  for (const GeluForm form : {GeluForm::erf, GeluForm::tanh}) {
    CHECK(
        test::bits(test::forward_of(Gelu(form), {kInfinity, 3e38f, -kInfinity, -3e38f, kAnyNan})) ==
        std::vector<std::uint32_t>{0x7f800000, std::bit_cast<std::uint32_t>(3e38f), 0x80000000,
                                   0x80000000, 0x7fc00000});
    Tensor x({2});
    x.data = {kInfinity, -kInfinity};
    Numerics numerics;
    const test::OpResult result = test::run_op(Gelu(form), {x}, numerics);
    CHECK(result.grad_inputs[0].data[0] == result.grad_output.data[0]);
    CHECK(result.grad_inputs[0].data[1] == 0);
    test::check_threads(Gelu(form), {test::random_tensor({150, 100}, 2)});
  }
}

}  // namespace
}  // namespace numemu::net

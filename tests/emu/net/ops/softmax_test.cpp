// softmax: values, gradients, every axis, masked rows, special values, threads.
#include "emu/net/ops/softmax.hpp"

#include <bit>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/axis_check.hpp"

namespace numemu::net {
namespace {

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("softmax and its gradient along every axis", "[fast]") {
  Tensor x = test::random_tensor({3, 4, 5}, 1);
  for (float& v : x.data) v *= 3;
  const std::int64_t lengths[] = {3, 4, 5}, strides[] = {20, 5, 1};
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t length = lengths[axis], stride = strides[axis];
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(60);
      for (std::int64_t k = 0; k < 60; ++k) {
        const std::int64_t start = k - k / stride % length * stride;
        const auto at = [&](std::int64_t i) { return start + i * stride; };
        double sum = 0;
        for (std::int64_t i = 0; i < length; ++i) sum += std::exp(arguments[0][at(i)]);
        const std::int64_t i = k / stride % length;
        y[k] = std::exp(arguments[0][at(i)]) / sum;
      }
      return y;
    };
    // Results are below 1, gradients sum 5 terms; each is rounded a few times.
    constexpr double kTolerance = 1 * 8 * 0x1p-24;
    constexpr double kThird = 5;  // of 5 terms, each derivative of a softmax at most 1
    Softmax op(axis), same(axis - 3);
    test::check_op(op, {x}, reference, kTolerance, {.third = kThird});
    Numerics numerics;
    CHECK(test::bits(test::run_op(same, {x}, numerics).output) ==
          test::bits(test::run_op(op, {x}, numerics).output));
  }
}

TEST_CASE("softmax of masked rows and special values", "[fast]") {
  Tensor x({5, 3});
  x.data = {0, -kInfinity, 0, -kInfinity, -kInfinity, -kInfinity, kAnyNan, 1,
            2, kInfinity,  1, 2,          1e38f,      -1e38f,     1e38f};
  Numerics numerics;
  const test::OpResult result = test::run_op(Softmax(), {x}, numerics);
  const Tensor& y = result.output;
  constexpr std::uint32_t kNeutral = 0x7fc00000;
  const std::uint32_t half = std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t none = 0;
  const std::uint32_t least = 0;
  CHECK(test::bits(y) == std::vector<std::uint32_t>{half, none, half, kNeutral, kNeutral, kNeutral,
                                                    kNeutral, kNeutral, kNeutral, kNeutral,
                                                    kNeutral, kNeutral, half, least, half});
  for (int i = 0; i < 3; ++i) CHECK(std::isfinite(result.grad_inputs[0].data[i]));
  CHECK(result.grad_inputs[0].data[1] == 0);
}

TEST_CASE("softmax has the same bits on any number of threads and along a strided axis", "[fast]") {
  test::check_axes<Softmax>();
}

TEST_CASE("softmax refuses axes that are not there or empty", "[fast]") {
  test::check_refused_axes<Softmax>("softmax");
}

}  // namespace
}  // namespace numemu::net

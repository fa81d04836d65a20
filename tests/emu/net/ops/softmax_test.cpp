// softmax and log_softmax: values, gradients, every axis, masked rows, special values, threads.
#include "emu/net/ops/softmax.hpp"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::softmax_test {
namespace {

using test::kAnyNan;
using test::kInfinity;

/// What the two differ in.
template <class Operator>
struct Expected;
template <>
struct Expected<Softmax> {
  static constexpr const char* kName = "softmax";
  static constexpr double kLargest = 1;  ///< magnitude of a result
  static constexpr float kHalf = 0.5f, kNone = 0, kLeast = 0;
  static double value(double x, double sum) { return std::exp(x) / sum; }
};
template <>
struct Expected<LogSoftmax> {
  static constexpr const char* kName = "log_softmax";
  static constexpr double kLargest = 9;
  static constexpr float kHalf = -0.693147181f, kNone = -kInfinity, kLeast = -2e38f;
  static double value(double x, double sum) { return x - std::log(sum); }
};

template <class Operator>
void check_every_axis() {
  Tensor x = test::random_tensor({3, 4, 5}, 1);
  for (float& v : x.data) v *= 3;
  const std::int64_t lengths[] = {3, 4, 5}, strides[] = {20, 5, 1};
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t length = lengths[axis], stride = strides[axis];
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(60);
      for (std::int64_t k = 0; k < 60; ++k) {
        const std::int64_t start = k - k / stride % length * stride;
        double sum = 0;
        for (std::int64_t i = 0; i < length; ++i) sum += std::exp(arguments[0][start + i * stride]);
        y[k] = Expected<Operator>::value(arguments[0][k], sum);
      }
      return y;
    };
    // Gradients sum 5 terms; each is rounded a few times.
    constexpr double kTolerance = Expected<Operator>::kLargest * 8 * 0x1p-24;
    constexpr double kThird = 5;  // of 5 terms, each derivative of a softmax at most 1
    Operator op(axis), same(axis - 3);
    test::check_op(op, {x}, reference, kTolerance, {.third = kThird});
    Numerics numerics;
    CHECK(test::bits(test::run_op(same, {x}, numerics).output) ==
          test::bits(test::run_op(op, {x}, numerics).output));
  }
}

TEST_CASE("softmax, its logarithm and their gradients along every axis", "[fast]") {
  check_every_axis<Softmax>();
  check_every_axis<LogSoftmax>();
}

template <class Operator>
test::OpResult check_special_values() {
  using E = Expected<Operator>;
  Tensor x({5, 3});
  x.data = {0, -kInfinity, 0, -kInfinity, -kInfinity, -kInfinity, kAnyNan, 1,
            2, kInfinity,  1, 2,          1e38f,      -1e38f,     1e38f};
  Numerics numerics;
  test::OpResult result = test::run_op(Operator(), {x}, numerics);
  const float nan = std::bit_cast<float>(0x7fc00000u);
  Tensor y({5, 3});
  y.data = {E::kHalf, E::kNone, E::kHalf, nan, nan,      nan,       nan,     nan,
            nan,      nan,      nan,      nan, E::kHalf, E::kLeast, E::kHalf};
  CHECK(test::bits(result.output) == test::bits(y));
  for (int i = 0; i < 3; ++i) CHECK(std::isfinite(result.grad_inputs[0].data[i]));
  return result;
}

TEST_CASE("softmax and its logarithm of masked rows and special values", "[fast]") {
  CHECK(check_special_values<Softmax>().grad_inputs[0].data[1] == 0);
  check_special_values<LogSoftmax>();
}

/// The same bits on any number of threads, and along axis 0 of the transposed matrix.
template <class Operator>
void check_axes() {
  const Tensor x = test::random_tensor({100, 130}, 3);
  test::check_threads(Operator(), {x});
  test::check_threads(Operator(0), {x});
  Tensor transposed({130, 100});
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 130; ++k) transposed.data[k * 100 + i] = x.data[i * 130 + k];
  }
  Numerics numerics;
  const Tensor y = test::run_op(Operator(1), {x}, numerics).output;
  const Tensor t = test::run_op(Operator(0), {transposed}, numerics).output;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 130; ++k) REQUIRE(t.data[k * 100 + i] == y.data[i * 130 + k]);
  }
}

TEST_CASE("softmax has the same bits on any number of threads and along a strided axis", "[fast]") {
  check_axes<Softmax>();
  check_axes<LogSoftmax>();
}

template <class Operator>
void check_refused_axes() {
  const std::vector<Shape> two{{2, 3}}, empty{{2, 0}}, none;
  CHECK_THROWS_WITH(
      Operator(2).output_shape(two),
      Catch::Contains(std::string(Expected<Operator>::kName)) && Catch::Contains("[2, 3]"));
  CHECK_THROWS_WITH(Operator(-3).output_shape(two), Catch::Contains("axis -3"));
  CHECK_THROWS_WITH(Operator().output_shape(empty), Catch::Contains("[2, 0]"));
  CHECK_THROWS_WITH(Operator().output_shape(none), Catch::Contains("one input"));
}

TEST_CASE("softmax refuses axes that are not there or empty", "[fast]") {
  check_refused_axes<Softmax>();
  check_refused_axes<LogSoftmax>();
}

}  // namespace
}  // namespace numemu::net::softmax_test

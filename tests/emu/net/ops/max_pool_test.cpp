// Max-pooling: values, ties, NaN, gradients, windows that overlap, leave a border or reach into
// one.
#include "emu/net/ops/max_pool.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/pool_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("max_pool and its gradient are those of loops over every window", "[fast]") {
  for (const test::PoolCase& c : test::pool_cases()) {
    INFO(c.name());
    MaxPool op(c.options);
    // A shuffled ramp: all values differ by more than the difference step.
    Tensor x(c.x);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.data[i] = static_cast<float>((i * 7919 + 13) % 1009) / 1024 - 0.5f;
    }
    const std::vector<Shape> shapes{c.x};
    REQUIRE(op.output_shape(shapes) == c.y);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(c.y)),
                      -std::numeric_limits<double>::infinity());
      c.for_each_read([&](auto out, auto in, auto) {
        if (in >= 0) y[out] = std::max(y[out], arguments[0][in]);
      });
      return y;
    };
    // A gradient sums at most one number in [-1, 1] per window of a pixel; differences of some
    // hundred terms in float64 add less.
    test::check_op(op, {x}, reference,
                   test::dot_tolerance(c.options.kernel_height * c.options.kernel_width));
  }
}

TEST_CASE("max_pool of a size is that of its options", "[fast]") {
  const Tensor x = test::random_tensor({2, 7, 6, 3}, 1);
  Numerics numerics;
  for (const std::int64_t stride : {0, 1, 2, 3}) {
    const MaxPool brief(3, stride), spelt({.kernel_height = 3,
                                           .kernel_width = 3,
                                           .stride_height = stride == 0 ? 3 : stride,
                                           .stride_width = stride == 0 ? 3 : stride});
    const test::OpResult a = test::run_op(brief, {x}, numerics),
                         b = test::run_op(spelt, {x}, numerics);
    CHECK(a.output.shape == b.output.shape);
    CHECK(a.output.data == b.output.data);
    CHECK(a.grad_inputs[0].data == b.grad_inputs[0].data);
  }
}

TEST_CASE("max_pool never takes its border", "[fast]") {
  const MaxPool op({.kernel_height = 2, .kernel_width = 2, .pad_top = 1, .pad_left = 1});
  Tensor x({1, 1, 1, 1}, -3), y({1, 1, 1, 1});
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == -3);
}

TEST_CASE("max_pool has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({8, 20, 20, 16}, 1);
  test::check_threads(MaxPool(2), {x});
  test::check_threads(MaxPool({.kernel_height = 3,
                               .kernel_width = 3,
                               .stride_height = 2,
                               .stride_width = 2,
                               .pad_top = 1,
                               .pad_left = 1}),
                      {x});
}

TEST_CASE("max_pool gives the gradient to the first of equal maxima and lets a NaN win", "[fast]") {
  MaxPool op(2);
  Numerics numerics;
  Tensor x({1, 2, 4, 1}), y({1, 1, 2, 1});
  const float nan = std::bit_cast<float>(0xffc12345u);  // any; the result is the neutral one
  x.data = {1, 3, 5, nan,                               //
            3, 2, 7, nan};
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == 3);
  CHECK(std::bit_cast<std::uint32_t>(y.data[1]) == 0x7fc00000u);
  Tensor g({1, 1, 2, 1});
  g.data = {10, 20};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)};
  op.backward({"pool", numerics}, inputs, nullptr, g, grad_inputs, {}, true);
  CHECK(grad_inputs[0].data == std::vector<float>{0, 10, 0, 20, 0, 0, 0, 0});
}

TEST_CASE("max_pool refuses images smaller than its window", "[fast]") {
  const MaxPool op(3);
  const std::vector<Shape> small{{1, 2, 9, 1}};
  CHECK_THROWS_WITH(op.output_shape(small), Catch::Contains("at least 3x3"));
  CHECK_THROWS_AS(MaxPool(0), Error);
}

}  // namespace
}  // namespace numemu::net

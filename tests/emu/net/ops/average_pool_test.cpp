// Average pooling: every option against loops over windows; float64 sums rounded once.
#include "emu/net/ops/average_pool.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/pool_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("average_pool and its gradient are those of loops over every window", "[fast]") {
  for (const test::PoolCase& c : test::pool_cases()) {
    INFO(c.name());
    AveragePool op(c.options);
    const std::vector<Shape> shapes{c.x};
    REQUIRE(op.output_shape(shapes) == c.y);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(c.y))), divisors(y.size());
      c.for_each_read([&](auto out, auto in, auto) {
        if (in >= 0) y[out] += arguments[0][in];
        if (in >= 0 || c.options.count_include_pad) ++divisors[out];
      });
      for (std::size_t i = 0; i < y.size(); ++i) y[i] /= divisors[i];
      return y;
    };
    // One rounding of a number of at most 9 windows' gradients (below 9).
    constexpr double kTolerance = 9 * 0x1p-24;
    test::check_op(op, {test::random_tensor(c.x, 1)}, reference, kTolerance);
  }
}

TEST_CASE("average_pool rounds once", "[fast]") {
  const AveragePool op({.kernel_height = 3, .kernel_width = 1});
  Tensor x({1, 3, 1, 1}), y({1, 1, 1, 1});
  x.data = {0x1p24f, 9, 0x1p24f};  // float32 would round the sum, then the mean: 11184813
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == 11184814);  // (2^25 + 9) / 3 = 11184813.67
}

TEST_CASE("average_pool has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({8, 20, 20, 16}, 1);
  test::check_threads(AveragePool({.kernel_height = 3,
                                   .kernel_width = 3,
                                   .stride_height = 2,
                                   .stride_width = 1,
                                   .pad_top = 1,
                                   .ceil_mode = true}),
                      {x});
}

TEST_CASE("average_pool refuses images smaller than its window", "[fast]") {
  const std::vector<Shape> small{{1, 2, 9, 1}};
  CHECK_THROWS_WITH(AveragePool({.kernel_height = 3, .kernel_width = 3}).output_shape(small),
                    Catch::Contains("average_pool") && Catch::Contains("at least 3x3"));
  CHECK_THROWS_AS(AveragePool({.kernel_height = -1}), Error);
}

}  // namespace
}  // namespace numemu::net

// Global average pooling: means of channels, summed pairwise in float64 and rounded once.
#include "emu/net/ops/global_average_pool.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("global_average_pool and its gradient are those of loops in float64", "[fast]") {
  constexpr std::int64_t kBatch = 3, kPixels = 4 * 5, kChannels = 3;
  GlobalAveragePool op;
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y(kBatch * kChannels);
    for (std::int64_t n = 0; n < kBatch; ++n)
      for (std::int64_t p = 0; p < kPixels; ++p)
        for (std::int64_t c = 0; c < kChannels; ++c)
          y[n * kChannels + c] += arguments[0][(n * kPixels + p) * kChannels + c] / kPixels;
    return y;
  };
  constexpr double kTolerance = 0x1p-24;  // one rounding of a number below 1
  test::check_op(op, {test::random_tensor({kBatch, 4, 5, kChannels}, 1)}, reference, kTolerance);
  const std::vector<Shape> shapes{{2, 8, 8, 64}};
  CHECK(op.output_shape(shapes) == Shape{2, 1, 1, 64});
}

TEST_CASE("global_average_pool rounds a long sum once", "[fast]") {
  constexpr std::int64_t kPixels = 63 * 65;
  const GlobalAveragePool op;
  Tensor x({1, 63, 65, 1}, 1), y({1, 1, 1, 1});
  x.data[0] = 0x1p26f;  // float32 would lose every 1 that follows
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  // 16389.0007 to multiples of 2^-9; a sum rounded first would end one above.
  CHECK(y.data[0] == static_cast<float>((0x1p26 + kPixels - 1) / kPixels));
}

TEST_CASE("global_average_pool has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({4, 20, 20, 16}, 1);
  test::check_threads(GlobalAveragePool(), {x});
}

TEST_CASE("global_average_pool refuses what is no image", "[fast]") {
  const std::vector<Shape> flat{{2, 3}}, empty{{2, 0, 3, 1}};
  CHECK_THROWS_WITH(GlobalAveragePool().output_shape(flat), Catch::Contains("[2, 3]"));
  CHECK_THROWS_AS(GlobalAveragePool().output_shape(empty), Error);
}

}  // namespace
}  // namespace numemu::net

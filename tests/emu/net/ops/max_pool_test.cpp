// Max-pooling: values, ties, NaN, gradients, windows that overlap or leave a border.
#include "emu/net/ops/max_pool.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("max_pool and its gradient", "[fast]") {
  struct Case {
    std::int64_t size, stride, height, width;
  };
  for (const Case c :
       {Case{2, 2, 6, 4}, Case{2, 2, 5, 7}, Case{3, 2, 7, 7}, Case{3, 1, 4, 5}, Case{1, 2, 3, 3}}) {
    MaxPool op(c.size, c.stride);
    constexpr std::int64_t kBatch = 2, kChannels = 3;
    // A shuffled ramp: all values differ by more than the difference step.
    Tensor x({kBatch, c.height, c.width, kChannels});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.data[i] = static_cast<float>((i * 7919 + 13) % 1009) / 1024 - 0.5f;
    }
    const std::int64_t oh = (c.height - c.size) / c.stride + 1,
                       ow = (c.width - c.size) / c.stride + 1;
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y;
      for (std::int64_t n = 0; n < kBatch; ++n)
        for (std::int64_t i = 0; i < oh; ++i)
          for (std::int64_t j = 0; j < ow; ++j)
            for (std::int64_t ch = 0; ch < kChannels; ++ch) {
              double best = -std::numeric_limits<double>::infinity();
              for (std::int64_t a = 0; a < c.size; ++a)
                for (std::int64_t b = 0; b < c.size; ++b) {
                  const std::int64_t h = i * c.stride + a, w = j * c.stride + b;
                  best = std::max(
                      best, arguments[0][((n * c.height + h) * c.width + w) * kChannels + ch]);
                }
              y.push_back(best);
            }
      return y;
    };
    // A gradient sums at most size^2 numbers in [-1, 1]; differences of 200 terms in float64 add
    // less.
    test::check_op(op, {x}, reference, test::dot_tolerance(c.size * c.size));
  }
}

TEST_CASE("max_pool gives the gradient to the first of equal maxima, and a NaN wins", "[fast]") {
  MaxPool op(2);
  Numerics numerics;
  Tensor x({1, 2, 4, 1}), y({1, 1, 2, 1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  x.data = {1, 3, 5, nan,  //
            3, 2, 7, 6};
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == 3);
  CHECK(y.data[1] != y.data[1]);
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

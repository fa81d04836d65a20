// Embedding: rows there, pairwise float64 sums back, and numbers that are not rows.
#include "emu/net/ops/embedding.hpp"

#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("embedding and its gradient are those of loops in float64", "[fast]") {
  constexpr std::int64_t kCount = 6, kWidth = 3;
  Embedding op(kCount, kWidth);
  Tensor x({2, 2, 2});
  x.data = {0, 5, 2, 2, 3, 0, 2, 5};
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (const double number : arguments[0])
      for (std::int64_t c = 0; c < kWidth; ++c)
        y.push_back(arguments[1][std::lround(number) * kWidth + c]);
    return y;
  };
  test::check_op(op, {x}, reference, test::dot_tolerance(3));  // a row is read three times at most
  const std::vector<Shape> shapes{x.shape};
  CHECK(op.output_shape(shapes) == Shape{2, 2, 2, 3});
}

TEST_CASE("embedding sums the readers of a row pairwise in float64", "[fast]") {
  // One large gradient, then small ones that float32 would lose one by one.
  constexpr std::int64_t kReaders = 4096;
  const Embedding op(2, 1);
  Tensor x({kReaders}, 1), g({kReaders, 1}, 1);
  g.data[0] = 0x1p25f;
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)}, gradients{Tensor({2, 1})};
  op.backward({"embed", numerics}, inputs, nullptr, g, grad_inputs, gradients, true);
  CHECK(gradients[0].data == std::vector<float>{0, 0x1p25f + kReaders});
  // 2^25 + 4095 is not a float32; the nearest is 2^25 + 4096.
}

TEST_CASE("embedding has the same bits on every number of threads", "[fast]") {
  Embedding op(50, 33);
  op.parameters()[0].value = test::random_tensor({50, 33}, 1);
  Tensor x({20, 30});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data[i] = static_cast<float>(i * i % 50);
  test::check_threads(op, {x});
}

TEST_CASE("embedding names the number that is no row", "[fast]") {
  const Embedding op(4, 2);
  Numerics numerics;
  for (const float wrong : {4.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    Tensor x({3}), y({3, 2});
    x.data[1] = wrong;
    const std::vector<const Tensor*> inputs{&x};
    CHECK_THROWS_WITH(
        op.forward({"tokens", numerics}, inputs, y),
        Catch::Contains("tokens") && Catch::Contains("element 1") && Catch::Contains("0 to 3"));
  }
  const std::vector<Shape> scalar{Shape{}};
  CHECK_THROWS_WITH(op.output_shape(scalar), Catch::Contains("row numbers"));
  CHECK_THROWS_WITH(Embedding(0, 2), Catch::Contains("got 0 of 2"));
  CHECK_THROWS_WITH(Embedding((1 << 24) + 1, 2), Catch::Contains("2^24"));
}

}  // namespace
}  // namespace numemu::net

// The fully connected layer against float64 loops, and against the fused chain bit for bit.
#include "emu/net/ops/linear.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("linear and its gradients are those of loops in float64", "[fast]") {
  constexpr std::int64_t kBatch = 5, kIn = 7, kOut = 4;
  for (const bool bias : {true, false}) {
    Linear op(kIn, kOut, bias);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y;
      for (std::int64_t n = 0; n < kBatch; ++n) {
        for (std::int64_t o = 0; o < kOut; ++o) {
          double sum = bias ? arguments[2][o] : 0;
          for (std::int64_t i = 0; i < kIn; ++i)
            sum += arguments[0][n * kIn + i] * arguments[1][o * kIn + i];
          y.push_back(sum);
        }
      }
      return y;
    };
    test::check_op(op, {test::random_tensor({kBatch, kIn}, 1)}, reference,
                   test::dot_tolerance(kIn));
  }
}

TEST_CASE("linear is a fused chain over ascending inputs, then the bias", "[fast]") {
  Linear op(33, 3);
  op.parameters()[0].value = test::random_tensor({3, 33}, 1);
  op.parameters()[1].value = test::random_tensor({3}, 2);
  const Tensor x = test::random_tensor({2, 33}, 3);
  Numerics numerics;
  Tensor y({2, 3});
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"fc", numerics}, inputs, y);
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t o = 0; o < 3; ++o) {
      float chain = 0;
      for (std::int64_t i = 0; i < 33; ++i) {
        chain = std::fma(x.data[n * 33 + i], op.parameters()[0].value.data[o * 33 + i], chain);
      }
      CHECK(y.data[n * 3 + o] == chain + op.parameters()[1].value.data[o]);
    }
  }
}

TEST_CASE("linear refuses other shapes", "[fast]") {
  CHECK_THROWS_AS(Linear(0, 3), Error);
  const Linear op(4, 2);
  const std::vector<Shape> wrong{{3, 5}}, rank{{3, 2, 2}};
  CHECK_THROWS_WITH(op.output_shape(wrong),
                    Catch::Contains("[batch, ..., 4]") && Catch::Contains("[3, 5]"));
  CHECK_THROWS_AS(op.output_shape(rank), Error);
}

}  // namespace
}  // namespace numemu::net

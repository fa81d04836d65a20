// The bias and its gradient, including the order of the addition and the neutral NaN.
#include "emu/net/ops/bias.hpp"

#include <bit>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("a bias is one float32 addition per output, its gradient one rounding of a float64 sum",
          "[fast]") {
  Tensor y = test::random_tensor({7, 5, 3}, 1), bias = test::random_tensor({3}, 2), gradient({3});
  const Tensor before = y;
  add_bias(bias, y);
  for (std::size_t i = 0; i < y.data.size(); ++i)
    CHECK(y.data[i] == before.data[i] + bias.data[i % 3]);
  bias_gradient(before, gradient);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;  // exact: multiples of 2^-16 below 35
    for (std::size_t i = c; i < before.data.size(); i += 3) sum += before.data[i];
    CHECK(gradient.data[c] == static_cast<float>(sum));
  }
}

TEST_CASE("infinity minus infinity is the neutral NaN", "[fast]") {
  Tensor y({1, 1}), bias({1});
  y.data[0] = std::numeric_limits<float>::infinity();
  bias.data[0] = -y.data[0];
  add_bias(bias, y);
  CHECK(std::bit_cast<std::uint32_t>(y.data[0]) == 0x7fc00000);
}

}  // namespace
}  // namespace numemu::net

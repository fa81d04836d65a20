// The depthwise convolution of predictors against the general one, forward and backward.
#include "policies/zap/depthwise.hpp"

#include <omp.h>

#include <bit>
#include <cmath>
#include <limits>

#include "emu/net/ops/conv.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace depthwise_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

void fill(net::Tensor& x, std::uint32_t tensor) {
  const RandomSource random{2, Stream::vectors, tensor, 0};
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5);
}

/// What an operator gives, and its gradients of input, weight and bias for gradient `g`.
struct Results {
  net::Tensor y, dx, dw, db;
};

Results results_of(net::Op& op, const net::Tensor& x, const net::Tensor& g) {
  fill(op.parameters()[0].value, 7);
  fill(op.parameters()[1].value, 8);
  net::Numerics float32;
  const net::OpCall call{"layer", float32};
  const net::Tensor* const input = &x;
  Results r;
  r.y = net::Tensor(x.shape);
  op.forward(call, {&input, 1}, r.y);
  std::vector<net::Tensor> inputs{net::Tensor(x.shape)};
  std::vector<net::Tensor> parameters{net::Tensor(op.parameters()[0].value.shape),
                                      net::Tensor(op.parameters()[1].value.shape)};
  op.backward(call, {{&input, 1}, nullptr, g, inputs, parameters, true});
  r.dx = inputs[0];
  r.dw = parameters[0];
  r.db = parameters[1];
  return r;
}

double distance(const net::Tensor& a, const net::Tensor& b) {
  REQUIRE(a.shape == b.shape);
  double most = 0;
  for (std::int64_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(a.data[i]) - b.data[i]));
  return most;
}

Results general(const net::Tensor& x, const net::Tensor& g) {
  const std::int64_t c = x.dim(3);
  net::Conv2d conv({.in_channels = c,
                    .out_channels = c,
                    .kernel_height = 3,
                    .kernel_width = 3,
                    .pad = 1,
                    .groups = c});
  return results_of(conv, x, g);
}

}  // namespace

TEST_CASE("a depthwise convolution is the general one with a group per channel", "[fast]") {
  for (const net::Shape& shape : {net::Shape{3, 5, 7, 6}, net::Shape{2, 1, 1, 1},
                                  net::Shape{1, 1, 9, 16}, net::Shape{70, 4, 2, 3}}) {
    net::Tensor x(shape), g(shape);
    fill(x, 5);
    fill(g, 6);
    Depthwise3x3 fast(shape[3]);
    const Results found = results_of(fast, x, g), expected = general(x, g);
    // Ten terms below 1/2 each, rounded twice.
    constexpr double kSum = 10 * 10 * 0x1p-24;
    CHECK(distance(found.y, expected.y) <= kSum);
    CHECK(distance(found.dx, expected.dx) <= kSum);
    // One chain of float32 over all positions in the general one.
    const double positions = static_cast<double>(shape[0] * shape[1] * shape[2]);
    CHECK(distance(found.dw, expected.dw) <= positions * positions / 4 * 0x1p-24);
    CHECK(found.db.data == expected.db.data);
  }
}

TEST_CASE("one pixel sees the middle tap, its neighbours the opposite ones", "[fast]") {
  Depthwise3x3 op(1);
  for (int t = 0; t < 9; ++t) op.parameters()[0].value.data[t] = static_cast<float>(t + 1);
  net::Tensor x(net::Shape{1, 3, 3, 1}), y(x.shape);
  x.data[4] = 1;
  net::Numerics float32;
  const net::Tensor* const input = &x;
  op.forward({"layer", float32}, {&input, 1}, y);
  CHECK(y.data == std::vector<float>{9, 8, 7, 6, 5, 4, 3, 2, 1});
}

TEST_CASE("depthwise convolution: the same bits on one thread and on two", "[fast]") {
  const net::Shape shape{130, 6, 6, 3};
  net::Tensor x(shape), g(shape);
  fill(x, 5);
  fill(g, 6);
  const int threads = omp_get_max_threads();
  Depthwise3x3 op(3);
  omp_set_num_threads(1);
  const Results one = results_of(op, x, g);
  omp_set_num_threads(2);
  const Results two = results_of(op, x, g);
  omp_set_num_threads(threads);
  CHECK(one.y.data == two.y.data);
  CHECK(one.dx.data == two.dx.data);
  CHECK(one.dw.data == two.dw.data);
  CHECK(one.db.data == two.db.data);
}

TEST_CASE("infinities give the neutral NaN where they meet zeros", "[fast]") {
  net::Tensor x(net::Shape{1, 1, 2, 1}, std::numeric_limits<float>::infinity());
  Depthwise3x3 op(1);  // weights are zero
  net::Numerics float32;
  const net::Tensor* const input = &x;
  net::Tensor y(x.shape);
  op.forward({"layer", float32}, {&input, 1}, y);
  for (const float value : y.data) CHECK(std::bit_cast<std::uint32_t>(value) == 0x7fc00000u);
}

TEST_CASE("depthwise convolutions that are refused", "[fast]") {
  CHECK_THAT(message_of([] { Depthwise3x3(0); }), Catch::Contains("positive number of channels"));
  const Depthwise3x3 op(3);
  const std::vector<net::Shape> shapes{{1, 2, 2, 4}};
  CHECK_THAT(message_of([&] { op.output_shape(shapes); }),
             Catch::Contains("[batch, height, width, 3], got [1, 2, 2, 4]"));
}

}  // namespace depthwise_test

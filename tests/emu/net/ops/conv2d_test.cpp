// Convolution against seven loops in float64, and against the fused chain bit for bit.
#include "emu/net/ops/conv2d.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

struct Case {
  std::int64_t batch, height, width;
  Conv2dOptions options;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {2,
       6,
       5,
       {.in_channels = 1, .out_channels = 2, .kernel_height = 3, .kernel_width = 3, .pad = 1}},
      {2, 5, 6, {.in_channels = 3, .out_channels = 2, .kernel_height = 2, .kernel_width = 3}},
      {1,
       7,
       6,
       {.in_channels = 2,
        .out_channels = 3,
        .kernel_height = 3,
        .kernel_width = 3,
        .stride = 2,
        .pad = 1}},
      {2,
       8,
       7,
       {.in_channels = 1,
        .out_channels = 2,
        .kernel_height = 4,
        .kernel_width = 3,
        .stride = 3,
        .pad = 2}},
      {3,
       4,
       4,
       {.in_channels = 4, .out_channels = 5, .kernel_height = 1, .kernel_width = 1, .stride = 2}},
      {2,
       5,
       5,
       {.in_channels = 2,
        .out_channels = 1,
        .kernel_height = 5,
        .kernel_width = 5,
        .pad = 4,
        .bias = false}}};
  return all;
}

// Calls body(y, x, w) for every product of the convolution: flat indices into output, input and
// weight, in the order of the output's elements, then kh, kw, in.
template <class Body>
void for_each_product(const Case& c, Body body) {
  const Conv2dOptions& o = c.options;
  const std::int64_t oh = (c.height + 2 * o.pad - o.kernel_height) / o.stride + 1;
  const std::int64_t ow = (c.width + 2 * o.pad - o.kernel_width) / o.stride + 1;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j)
        for (std::int64_t out = 0; out < o.out_channels; ++out)
          for (std::int64_t kh = 0; kh < o.kernel_height; ++kh)
            for (std::int64_t kw = 0; kw < o.kernel_width; ++kw)
              for (std::int64_t in = 0; in < o.in_channels; ++in) {
                const std::int64_t h = i * o.stride + kh - o.pad, w = j * o.stride + kw - o.pad;
                if (h < 0 || h >= c.height || w < 0 || w >= c.width) continue;
                body(((n * oh + i) * ow + j) * o.out_channels + out,
                     ((n * c.height + h) * c.width + w) * o.in_channels + in,
                     ((out * o.kernel_height + kh) * o.kernel_width + kw) * o.in_channels + in);
              }
}

TEST_CASE("conv2d and its gradients are those of seven loops in float64", "[fast]") {
  for (const Case& c : cases()) {
    Conv2d op(c.options);
    const Conv2dOptions& o = c.options;
    const Tensor x = test::random_tensor({c.batch, c.height, c.width, o.in_channels}, 1);
    const std::vector<Shape> shapes{x.shape};
    const Shape y_shape = op.output_shape(shapes);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(y_shape)));
      for_each_product(
          c, [&](auto out, auto in, auto w) { y[out] += arguments[0][in] * arguments[1][w]; });
      for (std::size_t i = 0; o.bias && i < y.size(); ++i) y[i] += arguments[2][i % o.out_channels];
      return y;
    };
    // Every gradient sums at most as many products as there are output elements.
    test::check_op(op, {x}, reference, test::dot_tolerance(element_count(y_shape)));
  }
}

TEST_CASE("conv2d's products are fused chains, bit for bit", "[fast]") {
  for (const Case& c : cases()) {
    Conv2dOptions o = c.options;
    o.bias = false;
    Conv2d op(o);
    Numerics numerics;
    const OpCall call{"conv", numerics, Phase::training};
    const Tensor x = test::random_tensor({c.batch, c.height, c.width, o.in_channels}, 2);
    Tensor& w = op.parameters()[0].value;
    w = test::random_tensor(w.shape, 3);
    const std::vector<Shape> shapes{x.shape};
    const std::vector<const Tensor*> inputs{&x};
    Tensor y(op.output_shape(shapes));
    op.forward(call, inputs, y);
    std::vector<float> chain(y.data.size());
    for_each_product(
        c, [&](auto i, auto in, auto k) { chain[i] = std::fma(x.data[in], w.data[k], chain[i]); });
    CHECK(chain == y.data);

    const Tensor g = test::random_tensor(y.shape, 4);
    std::vector<Tensor> grad_inputs{Tensor(x.shape)}, grad_weights{Tensor(w.shape)};
    op.backward(call, inputs, nullptr, g, grad_inputs, grad_weights, true);
    // wgrad ascends over (n, oh, ow): the order in which the loops meet a weight.
    std::vector<float> wgrad(w.data.size());
    for_each_product(
        c, [&](auto i, auto in, auto k) { wgrad[k] = std::fma(g.data[i], x.data[in], wgrad[k]); });
    CHECK(wgrad == grad_weights[0].data);
    // dgrad ascends over flipped taps, which is ascending position of the output, then the output
    // channel.
    std::vector<float> dgrad(x.data.size());
    for_each_product(
        c, [&](auto i, auto in, auto k) { dgrad[in] = std::fma(g.data[i], w.data[k], dgrad[in]); });
    CHECK(dgrad == grad_inputs[0].data);
  }
}

TEST_CASE("conv2d refuses what it cannot compute", "[fast]") {
  CHECK_THROWS_WITH(Conv2d({.kernel_height = 3, .kernel_width = 3, .pad = 3}),
                    Catch::Contains("pad 3"));
  CHECK_THROWS_WITH(Conv2d({.stride = 0}), Catch::Contains("positive"));
  const Conv2d op({.in_channels = 3, .kernel_height = 3, .kernel_width = 3});
  const std::vector<Shape> channels{{1, 8, 8, 1}}, small{{1, 2, 8, 3}};
  CHECK_THROWS_WITH(op.output_shape(channels), Catch::Contains("[batch, height, width, 3]"));
  CHECK_THROWS_WITH(op.output_shape(small), Catch::Contains("smaller than the kernel 3x3"));
}

}  // namespace
}  // namespace numemu::net

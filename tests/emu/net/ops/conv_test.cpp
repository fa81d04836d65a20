// Convolution against seven loops in float64, and against the fused chain bit for bit.
#include "emu/net/ops/conv.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::conv_test {
namespace {

struct Case {
  std::int64_t batch, height, width;
  Conv2dOptions options;
};

std::int64_t or_else(std::int64_t own, std::int64_t unset, std::int64_t common) {
  return own == unset ? common : own;
}

// Calls body(y, x, w) for every product of the convolution: flat indices into output, input and
// weight, in the order of the output's elements, then kh, kw, in.
template <class Body>
void for_each_product(const Case& c, Body body) {
  const Conv2dOptions& o = c.options;
  const std::int64_t sy = or_else(o.stride_height, 0, o.stride),
                     sx = or_else(o.stride_width, 0, o.stride);
  const std::int64_t dy = or_else(o.dilation_height, 0, o.dilation),
                     dx = or_else(o.dilation_width, 0, o.dilation);
  const std::int64_t top = or_else(o.pad_top, -1, o.pad), left = or_else(o.pad_left, -1, o.pad),
                     bottom = or_else(o.pad_bottom, -1, o.pad),
                     right = or_else(o.pad_right, -1, o.pad);
  const std::int64_t ins = o.in_channels / o.groups, outs = o.out_channels / o.groups;
  std::int64_t oh = 0, ow = 0;
  while (oh * sy + dy * (o.kernel_height - 1) < c.height + top + bottom) ++oh;
  while (ow * sx + dx * (o.kernel_width - 1) < c.width + left + right) ++ow;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j)
        for (std::int64_t out = 0; out < o.out_channels; ++out)
          for (std::int64_t kh = 0; kh < o.kernel_height; ++kh)
            for (std::int64_t kw = 0; kw < o.kernel_width; ++kw)
              for (std::int64_t in = 0; in < ins; ++in) {
                const std::int64_t h = i * sy + kh * dy - top, w = j * sx + kw * dx - left;
                if (h < 0 || h >= c.height || w < 0 || w >= c.width) continue;
                body(((n * oh + i) * ow + j) * o.out_channels + out,
                     ((n * c.height + h) * c.width + w) * o.in_channels + out / outs * ins + in,
                     ((out * o.kernel_height + kh) * o.kernel_width + kw) * ins + in);
              }
}

// Every combination of small groups, kernels, strides, dilations and pads, also pads wider than the
// kernel.
std::vector<Case> combinations() {
  struct Axes {
    std::int64_t height, width;
  };
  struct Pads {
    std::int64_t top, left, bottom, right;
  };
  std::vector<Case> cases;
  for (const std::int64_t groups : {1, 2, 4})
    for (const Axes kernel : {Axes{1, 1}, Axes{2, 3}, Axes{3, 3}})
      for (const Axes stride : {Axes{1, 1}, Axes{2, 2}, Axes{3, 2}})
        for (const Axes dilation : {Axes{1, 1}, Axes{2, 1}, Axes{2, 2}})
          for (const Pads pads :
               {Pads{0, 0, 0, 0}, Pads{1, 1, 1, 1}, Pads{0, 1, 2, 0}, Pads{4, 0, 1, 5}}) {
            cases.push_back({2,
                             5,
                             6,
                             {.in_channels = 4,
                              .out_channels = 8,
                              .kernel_height = kernel.height,
                              .kernel_width = kernel.width,
                              .bias = false,
                              .groups = groups,
                              .stride_height = stride.height,
                              .stride_width = stride.width,
                              .pad_top = pads.top,
                              .pad_left = pads.left,
                              .pad_bottom = pads.bottom,
                              .pad_right = pads.right,
                              .dilation_height = dilation.height,
                              .dilation_width = dilation.width}});
          }
  return cases;
}

TEST_CASE("conv2d and its gradients are those of seven loops in float64", "[fast]") {
  const std::vector<Case> cases = {
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
        .bias = false}},
      {1,
       7,
       6,
       {.in_channels = 4,
        .out_channels = 6,
        .kernel_height = 3,
        .kernel_width = 2,
        .groups = 2,
        .dilation = 2,
        .stride_width = 2,
        .pad_top = 3,
        .pad_right = 1}}};
  for (const Case& c : cases) {
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

TEST_CASE("conv2d's products are fused chains bit for bit in every combination", "[fast]") {
  for (const Case& c : combinations()) {
    const Conv2dOptions& o = c.options;
    INFO("groups " << o.groups << " kernel " << o.kernel_height << "x" << o.kernel_width
                   << " stride " << o.stride_height << "x" << o.stride_width << " dilation "
                   << o.dilation_height << "x" << o.dilation_width << " pads " << o.pad_top << " "
                   << o.pad_left << " " << o.pad_bottom << " " << o.pad_right);
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
    REQUIRE(chain == y.data);

    const Tensor g = test::random_tensor(y.shape, 4);
    std::vector<Tensor> grad_inputs{Tensor(x.shape)}, grad_weights{Tensor(w.shape)};
    op.backward(call, {inputs, nullptr, g, grad_inputs, grad_weights, true});
    // wgrad ascends over (n, oh, ow): the order in which the loops meet a weight.
    std::vector<float> wgrad(w.data.size());
    for_each_product(
        c, [&](auto i, auto in, auto k) { wgrad[k] = std::fma(g.data[i], x.data[in], wgrad[k]); });
    REQUIRE(wgrad == grad_weights[0].data);
    // dgrad ascends over flipped taps, which is ascending position of the output, then the output
    // channel.
    std::vector<float> dgrad(x.data.size());
    for_each_product(
        c, [&](auto i, auto in, auto k) { dgrad[in] = std::fma(g.data[i], w.data[k], dgrad[in]); });
    REQUIRE(dgrad == grad_inputs[0].data);
  }
}

TEST_CASE("conv2d hands over one matrix a group whose blocks stay in the group", "[fast]") {
  struct Recorder : Numerics {
    std::vector<Product> seen;
    void product(const Step& step, const Product& p) override {
      seen.push_back(p);
      Numerics::product(step, p);
    }
  } numerics;
  const Conv2d op({.in_channels = 6,
                   .out_channels = 9,
                   .kernel_height = 2,
                   .kernel_width = 2,
                   .bias = false,
                   .groups = 3});
  const Tensor x = test::random_tensor({2, 3, 3, 6}, 1), g = test::random_tensor({2, 2, 2, 9}, 2);
  Tensor y(g.shape);
  const std::vector<const Tensor*> inputs{&x};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)}, grads{Tensor({9, 2, 2, 2})};
  op.forward({"conv", numerics}, inputs, y);
  op.backward({"conv", numerics}, {inputs, nullptr, g, grad_inputs, grads, true});
  REQUIRE(numerics.seen.size() == 3);
  const auto is = [](const Stack& s, std::int64_t outer, std::int64_t inner, std::int64_t width) {
    return s.outer == outer && s.inner == inner && s.width == width;
  };
  const Product &fprop = numerics.seen[0], &wgrad = numerics.seen[1], &dgrad = numerics.seen[2];
  CHECK((fprop.kind == GemmKind::fprop && fprop.m == 8 && fprop.n == 3 && fprop.k == 8));
  CHECK((is(fprop.a.stack, 1, 3, 2) && is(fprop.b.stack, 3, 1, 2) && is(fprop.d_stack, 1, 3, 3)));
  CHECK((!fprop.a.along_rows && !fprop.b.along_rows));
  CHECK((wgrad.kind == GemmKind::wgrad && wgrad.m == 3 && wgrad.n == 8 && wgrad.k == 8));
  CHECK((is(wgrad.a.stack, 1, 3, 3) && is(wgrad.b.stack, 1, 3, 2) && is(wgrad.d_stack, 3, 1, 8)));
  CHECK((wgrad.a.along_rows && wgrad.b.along_rows));
  CHECK((dgrad.kind == GemmKind::dgrad && dgrad.m == 18 && dgrad.n == 2 && dgrad.k == 12));
  CHECK((is(dgrad.a.stack, 1, 3, 3) && is(dgrad.b.stack, 3, 1, 8) && is(dgrad.d_stack, 1, 3, 2)));
  CHECK((!dgrad.a.along_rows && dgrad.b.along_rows));
}

TEST_CASE("conv2d spells its options out", "[fast]") {
  const Conv2d op({.kernel_height = 3,
                   .kernel_width = 3,
                   .stride = 2,
                   .pad = 3,
                   .dilation = 4,
                   .stride_width = 5,
                   .pad_left = 0,
                   .dilation_height = 6});
  REQUIRE(op.options().axes.size() == 2);
  const ConvAxis &height = op.options().axes[0], &width = op.options().axes[1];
  CHECK((height.stride == 2 && width.stride == 5));
  CHECK((height.pad_before == 3 && width.pad_before == 0));
  CHECK((height.pad_after == 3 && width.pad_after == 3));
  CHECK((height.dilation == 6 && width.dilation == 4));
}

// A convolution over any axes by visiting every output, tap and input pixel: body(y, x, w) with
// flat indices, for the products of one image per group.
template <class Body>
void for_each_spread_product(const ConvOptions& o, const Shape& x, const Shape& y, Body body) {
  const std::int64_t ins = o.in_channels / o.groups, outs = o.out_channels / o.groups;
  std::int64_t taps = 1, pixels_x = 1, pixels_y = 1;
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    taps *= o.axes[i].kernel;
    pixels_x *= x[i + 1];
    pixels_y *= y[i + 1];
  }
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t py = 0; py < pixels_y; ++py)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        // From the last axis to the first: where the tap lies in the input.
        std::int64_t rest_y = py, rest_tap = tap, px = 0, step = 1;
        bool inside = true;
        for (std::size_t i = o.axes.size(); i-- > 0;) {
          const ConvAxis& a = o.axes[i];
          const std::int64_t at =
              rest_y % y[i + 1] * a.stride + rest_tap % a.kernel * a.dilation - a.pad_before;
          inside = inside && at >= 0 && at % a.spread == 0 && at / a.spread < x[i + 1];
          px += at / a.spread * step;
          step *= x[i + 1];
          rest_y /= y[i + 1];
          rest_tap /= a.kernel;
        }
        if (!inside) continue;
        for (std::int64_t out = 0; out < o.out_channels; ++out)
          for (std::int64_t in = 0; in < ins; ++in)
            body((n * pixels_y + py) * o.out_channels + out,
                 (n * pixels_x + px) * o.in_channels + out / outs * ins + in,
                 (out * taps + tap) * ins + in);
      }
}

TEST_CASE("convolutions over one to three axes, spread or not, are loops in float64", "[fast]") {
  struct Of {
    Shape size;
    ConvOptions options;
    std::string kind;
  };
  const std::vector<Of> cases = {
      {{7}, {2, 3, {{3, 2, 1, 1, 0}}}, "conv1d"},
      {{6}, {4, 2, {{2, 1, 3, 2, 2}}, false, 2}, "conv1d"},
      // Transposed: stride 3 and a pad of the output, which is a negative pad here.
      {{4}, {2, 2, {{2, 1, 1, -1, 0, 3}}}, "conv1d"},
      {{3, 4}, {2, 4, {{3, 1, 1, 1, 2, 2}, {2, 1, 2, 2, 1, 3}}, true, 2}, "conv2d"},
      {{3, 4, 2}, {2, 2, {{2, 1, 1, 0, 1}, {3, 2, 1, 1, 1}, {1, 1, 1, 0, 0}}}, "conv3d"},
      {{2, 3, 2}, {2, 1, {{2, 1, 1, 1, 1, 2}, {2, 2, 1, 0, 2}, {2, 1, 2, 1, 3, 2}}}, "conv3d"}};
  for (const Of& c : cases) {
    Conv op(c.options);
    CHECK(op.kind() == c.kind);
    const ConvOptions& o = op.options();
    Shape shape{2};
    shape.insert(shape.end(), c.size.begin(), c.size.end());
    shape.push_back(o.in_channels);
    const Tensor x = test::random_tensor(shape, 1);
    const std::vector<Shape> shapes{x.shape};
    const Shape y_shape = op.output_shape(shapes);
    INFO(to_string(x.shape) << " to " << to_string(y_shape));
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(y_shape)));
      for_each_spread_product(o, x.shape, y_shape, [&](auto out, auto in, auto w) {
        y[out] += arguments[0][in] * arguments[1][w];
      });
      for (std::size_t i = 0; o.bias && i < y.size(); ++i) y[i] += arguments[2][i % o.out_channels];
      return y;
    };
    test::check_op(op, {x}, reference, test::dot_tolerance(element_count(y_shape)));
  }
}

TEST_CASE("conv2d refuses what it cannot compute", "[fast]") {
  CHECK_THROWS_WITH(Conv2d({.pad = -2}), Catch::Contains("pad") && Catch::Contains("-2"));
  CHECK_THROWS_WITH(Conv2d({.stride = 0}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(Conv2d({.dilation_width = -1}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(Conv2d({.in_channels = 4, .out_channels = 6, .groups = 4}),
                    Catch::Contains("4 groups do not divide"));
  const Conv2d op({.in_channels = 3, .kernel_height = 3, .kernel_width = 3});
  const std::vector<Shape> channels{{1, 8, 8, 1}}, small{{1, 2, 8, 3}};
  CHECK_THROWS_WITH(op.output_shape(channels), Catch::Contains("[batch, height, width, 3]"));
  CHECK_THROWS_WITH(op.output_shape(small), Catch::Contains("smaller than the kernel 3x3"));
  const Conv2d wide({.kernel_height = 3, .kernel_width = 3, .dilation_height = 3});
  const std::vector<Shape> low{{1, 6, 8, 1}};
  CHECK_THROWS_WITH(wide.output_shape(low), Catch::Contains("smaller than the kernel 7x3"));

  // Refused before anything is read: these tensors have shapes, and no elements.
  const Conv2d pointwise({.bias = false});
  Tensor x, y;
  x.shape = y.shape = {std::int64_t{1} << 19, 64, 65, 1};
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  CHECK_THROWS_WITH(pointwise.forward({"conv", numerics}, inputs, y),
                    Catch::Contains("beyond the 2^31") && Catch::Contains("smaller batch"));
}

}  // namespace
}  // namespace numemu::net::conv_test

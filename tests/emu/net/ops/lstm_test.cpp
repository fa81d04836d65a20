// The LSTM against float64 through time, against its own definition bit for bit, and its
// products.
#include "emu/net/ops/lstm.hpp"

#include <cmath>

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/product_recorder.hpp"

namespace numemu::net {
namespace {

struct Sizes {
  std::int64_t batch, time, in, hidden;
};

// `dot(a, b, sum)` is one product's step; the functions are those of the arithmetic.
template <class T, class Dot, class Sigmoid, class Tanh>
std::vector<T> lstm(const Sizes& s, const std::vector<T>& x, const std::vector<T>& w,
                    const std::vector<T>& r, const std::vector<T>& bias, const Dot& dot,
                    const Sigmoid& sigma, const Tanh& squash) {
  std::vector<T> y;
  y.resize(static_cast<std::size_t>(s.batch * s.time * s.hidden));
  for (std::int64_t n = 0; n < s.batch; ++n) {
    std::vector<T> h(s.hidden), c(s.hidden);
    for (std::int64_t t = 0; t < s.time; ++t) {
      std::vector<T> z(4 * s.hidden);
      for (std::int64_t g = 0; g < 4 * s.hidden; ++g) {
        T input = 0, recurrent = 0;
        for (std::int64_t i = 0; i < s.in; ++i)
          input = dot(x[(n * s.time + t) * s.in + i], w[g * s.in + i], input);
        for (std::int64_t i = 0; i < s.hidden; ++i)
          recurrent = dot(h[i], r[g * s.hidden + i], recurrent);
        z[g] = (input + bias[g]) + recurrent;
      }
      for (std::int64_t j = 0; j < s.hidden; ++j) {
        const T kept = sigma(z[s.hidden + j]) * c[j];
        c[j] = kept + sigma(z[j]) * squash(z[2 * s.hidden + j]);
        h[j] = sigma(z[3 * s.hidden + j]) * squash(c[j]);
        y[(n * s.time + t) * s.hidden + j] = h[j];
      }
    }
  }
  return y;
}

TEST_CASE("lstm and its gradients are those of float64 through time", "[fast]") {
  // A result or gradient passes through at most 6 steps, each of about 20 roundings of numbers
  // below 2; what a step passes on is scaled by weights and slopes below 1.
  constexpr double kTolerance = 6 * 20 * 0x1p-23;
  // Third derivatives of sigmoid and tanh are at most 1/8 and 2; a weight moves at most 24 gates.
  constexpr test::Smoothness kSmooth{.third = 48};
  for (const Sizes s : {Sizes{2, 4, 3, 3}, Sizes{3, 1, 2, 2}, Sizes{1, 6, 1, 4}}) {
    INFO("time " << s.time);
    Lstm op(s.in, s.hidden);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      return lstm<double>(
          s, arguments[0], arguments[1], arguments[2], arguments[3],
          [](double a, double b, double sum) { return sum + a * b; },
          [](double v) { return 1 / (1 + std::exp(-v)); }, [](double v) { return std::tanh(v); });
    };
    test::check_op(op, {test::random_tensor({s.batch, s.time, s.in}, 1)}, reference, kTolerance,
                   kSmooth);
  }
}

std::vector<Tensor> filled(Lstm& op) {
  std::vector<Tensor> values;
  for (Parameter& p : op.parameters()) {
    p.value = test::random_tensor(p.value.shape, static_cast<std::uint32_t>(values.size() + 10));
    values.push_back(p.value);
  }
  return values;
}

TEST_CASE("lstm takes initial states and gives its cells", "[fast]") {
  constexpr double kTolerance = 6 * 20 * 0x1p-23;
  constexpr test::Smoothness kSmooth{.third = 48};
  for (const Sizes s : {Sizes{2, 3, 3, 2}, Sizes{2, 1, 2, 3}}) {
    Lstm op({.in = s.in, .hidden = s.hidden, .initial = true}, true);
    // Arguments: x, h, c, weight, recurrent, bias.
    const auto reference = [&](const std::vector<test::Doubles>& a) {
      const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
      const std::int64_t hidden = s.hidden;
      test::Doubles y(static_cast<std::size_t>(s.batch * s.time * 2 * hidden));
      test::Doubles h = a[1], c = a[2];
      for (std::int64_t t = 0; t < s.time; ++t) {
        const test::Doubles last = h;
        for (std::int64_t n = 0; n < s.batch; ++n)
          for (std::int64_t j = 0; j < hidden; ++j) {
            double z[4];
            for (std::int64_t g = 0; g < 4; ++g) {
              const std::int64_t row = g * hidden + j;
              z[g] = a[5][row];
              for (std::int64_t i = 0; i < s.in; ++i)
                z[g] += a[0][(n * s.time + t) * s.in + i] * a[3][row * s.in + i];
              for (std::int64_t i = 0; i < hidden; ++i)
                z[g] += last[n * hidden + i] * a[4][row * hidden + i];
            }
            double& cell = c[n * hidden + j];
            cell = sigma(z[1]) * cell + sigma(z[0]) * std::tanh(z[2]);
            h[n * hidden + j] = sigma(z[3]) * std::tanh(cell);
            double* const out = y.data() + (n * s.time + t) * 2 * hidden + j;
            out[0] = h[n * hidden + j], out[hidden] = cell;
          }
      }
      return y;
    };
    test::check_op(
        op,
        {test::random_tensor({s.batch, s.time, s.in}, 1),
         test::random_tensor({s.batch, s.hidden}, 2), test::random_tensor({s.batch, s.hidden}, 3)},
        reference, kTolerance, kSmooth);
  }
}

TEST_CASE("lstm is its definition in float32 bit for bit in training and inference", "[fast]") {
  const Sizes s{2, 5, 3, 4};
  Lstm op(s.in, s.hidden);
  const std::vector<Tensor> p = filled(op);
  const Tensor x = test::random_tensor({s.batch, s.time, s.in}, 1);
  const std::vector<float> expected = lstm<float>(
      s, x.data, p[0].data, p[1].data, p[2].data,
      [](float a, float b, float sum) { return std::fma(a, b, sum); },
      [](float v) { return net::sigmoid(v); }, [](float v) { return net::tanh(v); });
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  Tensor y({s.batch, s.time, s.hidden}), trained(y.shape), context;
  op.forward({"rnn", numerics}, inputs, y);
  CHECK(y.data == expected);
  op.forward({"rnn", numerics, Phase::training, 0, {}, &context, nullptr}, inputs, trained);
  CHECK(trained.data == expected);
  CHECK(context.shape == Shape{s.batch, s.time, 5 * s.hidden});
}

TEST_CASE("lstm asks for one input product and one recurrent product a step", "[fast]") {
  test::ProductRecorder numerics;
  Lstm op(3, 4);
  filled(op);
  const Tensor x = test::random_tensor({2, 3, 3}, 1), g = test::random_tensor({2, 3, 4}, 2);
  const std::vector<const Tensor*> inputs{&x};
  Tensor y(g.shape), context;
  const OpCall call{"rnn", numerics, Phase::training, 0, {}, &context, nullptr, &context};
  op.forward(call, inputs, y);
  CHECK(numerics.seen == std::vector<std::string>{"rnn.input fprop 6x16x3",
                                                  "rnn.recurrent fprop 2x16x4",
                                                  "rnn.recurrent fprop 2x16x4"});
  numerics.seen.clear();
  std::vector<Tensor> grad_inputs{Tensor(x.shape)}, gradients;
  for (const Parameter& p : op.parameters()) gradients.emplace_back(p.value.shape);
  op.backward(call, inputs, nullptr, g, grad_inputs, gradients, true);
  CHECK(numerics.seen ==
        std::vector<std::string>{"rnn.recurrent dgrad 2x4x16", "rnn.recurrent dgrad 2x4x16",
                                 "rnn.recurrent wgrad 16x4x4", "rnn.input wgrad 16x3x6",
                                 "rnn.input dgrad 6x3x16"});
  REQUIRE(op.products().size() == 2);
  CHECK((op.products()[0].suffix == ".input" && op.products()[0].weight == 0));
  CHECK((op.products()[1].suffix == ".recurrent" && op.products()[1].weight == 1));
}

TEST_CASE("lstm has the same bits on every number of threads", "[fast]") {
  Lstm op(20, 40);
  filled(op);
  const Tensor x = test::random_tensor({64, 2, 20}, 1);
  test::check_threads(op, {x});
}

TEST_CASE("lstm refuses other shapes and backward without its gates", "[fast]") {
  CHECK_THROWS_WITH(Lstm(0, 1), Catch::Contains("positive"));
  const Lstm op(3, 2);
  const std::vector<Shape> wide{{2, 4, 5}}, flat{{2, 3}};
  CHECK_THROWS_WITH(op.output_shape(wide),
                    Catch::Contains("[batch, time, 3]") && Catch::Contains("[2, 4, 5]"));
  CHECK_THROWS_AS(op.output_shape(flat), Error);
  Numerics numerics;
  const Tensor x({1, 1, 3}), g({1, 1, 2});
  const std::vector<const Tensor*> inputs{&x};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)}, gradients(3);
  CHECK_THROWS_WITH(
      op.backward({"rnn", numerics}, inputs, nullptr, g, grad_inputs, gradients, true),
      Catch::Contains("rnn") && Catch::Contains("gates of forward"));
}

}  // namespace
}  // namespace numemu::net

// Recurrent layers against the recurrence written out in float64.
#include "emu/net/ops/recurrent.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::recurrent_test {
namespace {

/// float32; `seen` has "LAYER KIND MxNxK" of every product.
struct ProductRecorder : Numerics {
  std::vector<std::string> seen;
  void product(const Step& step, const Product& p) override {
    seen.push_back(std::string(p.layer) + " " + std::string(to_string(p.kind)) + " " +
                   std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k));
    Numerics::product(step, p);
  }
};

TEST_CASE("rnn and its gradients are those of float64 through time", "[fast]") {
  constexpr std::int64_t kBatch = 2, kTime = 3, kIn = 3, kHidden = 2;
  constexpr double kTolerance =
      3 * 10 * 0x1p-23;  // 3 steps of about 10 roundings of numbers below 4
  constexpr test::Smoothness kSmooth{.third = 48};
  for (const bool rectified : {false, true})
    for (const bool initial : {false, true}) {
      INFO("rectified " << rectified << " initial " << initial);
      Rnn op({.in = kIn, .hidden = kHidden, .initial = initial}, rectified);
      CHECK((op.kind() == "rnn" && op.rectified() == rectified));
      const auto reference = [&](const std::vector<test::Doubles>& a) {
        const test::Doubles* const p = a.data() + (initial ? 2 : 1);
        test::Doubles h(kBatch * kHidden), y;
        if (initial) h = a[1];
        y.resize(kBatch * kTime * kHidden);
        for (std::int64_t t = 0; t < kTime; ++t) {
          const test::Doubles last = h;
          for (std::int64_t n = 0; n < kBatch; ++n)
            for (std::int64_t j = 0; j < kHidden; ++j) {
              double sum = p[2][j];
              for (std::int64_t i = 0; i < kIn; ++i)
                sum += a[0][(n * kTime + t) * kIn + i] * p[0][j * kIn + i];
              for (std::int64_t i = 0; i < kHidden; ++i)
                sum += last[n * kHidden + i] * p[1][j * kHidden + i];
              h[n * kHidden + j] = y[(n * kTime + t) * kHidden + j] =
                  rectified ? std::max(sum, 0.0) : std::tanh(sum);
            }
        }
        return y;
      };
      std::vector<Tensor> inputs{test::random_tensor({kBatch, kTime, kIn}, 1)};
      if (initial) inputs.push_back(test::random_tensor({kBatch, kHidden}, 2));
      test::check_op(op, inputs, reference, kTolerance, rectified ? test::Smoothness{} : kSmooth);
    }
}

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
  ProductRecorder numerics;
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
  op.backward(call, {inputs, nullptr, g, grad_inputs, gradients, true});
  CHECK(numerics.seen ==
        std::vector<std::string>{"rnn.recurrent dgrad 2x4x16", "rnn.recurrent dgrad 2x4x16",
                                 "rnn.recurrent wgrad 16x4x4", "rnn.input wgrad 16x3x6",
                                 "rnn.input dgrad 6x3x16"});
  REQUIRE(op.products().size() == 2);
  CHECK((op.products()[0].suffix == ".input" && op.products()[0].weight == 0));
  CHECK((op.products()[1].suffix == ".recurrent" && op.products()[1].weight == 1));
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
      op.backward({"rnn", numerics}, {inputs, nullptr, g, grad_inputs, gradients, true}),
      Catch::Contains("rnn") && Catch::Contains("gates of forward"));
}

// weight [.., width] times v, rows `first` and on, plus what is there.
double dot(const double* row, const double* v, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += row[i] * v[i];
  return sum;
}

// As ONNX's specification has it; parameters weight, recurrent, bias, then recurrent_bias or
// candidate.
test::Doubles gru(const Sizes& s, bool reset_after, const test::Doubles& x, test::Doubles h,
                  const test::Doubles* p) {
  const std::int64_t hidden = s.hidden;
  test::Doubles y;
  y.resize(static_cast<std::size_t>(s.batch * s.time * hidden));
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t t = 0; t < s.time; ++t) {
      const double* const in = x.data() + (n * s.time + t) * s.in;
      double* const state = h.data() + n * hidden;
      const auto input = [&](std::int64_t row) {
        return dot(p[0].data() + row * s.in, in, s.in) + p[2][row];
      };
      const auto recurrent = [&](std::int64_t row) {
        return dot(p[1].data() + row * hidden, state, hidden) + (reset_after ? p[3][row] : 0);
      };
      const auto gate = [&](std::int64_t row) {
        return 1 / (1 + std::exp(-input(row) - recurrent(row)));
      };
      test::Doubles reset, next;
      for (std::int64_t j = 0; j < hidden; ++j) reset.push_back(gate(hidden + j) * state[j]);
      for (std::int64_t j = 0; j < hidden; ++j) {
        const std::int64_t row = 2 * hidden + j;
        const double fresh = std::tanh(
            input(row) + (reset_after ? gate(hidden + j) * recurrent(row)
                                      : dot(p[3].data() + j * hidden, reset.data(), hidden)));
        next.push_back((1 - gate(j)) * fresh + gate(j) * state[j]);
      }
      std::copy(next.begin(), next.end(), state);
      std::copy(next.begin(), next.end(), y.begin() + (n * s.time + t) * hidden);
    }
  }
  return y;
}

TEST_CASE("gru and its gradients are those of float64 through time", "[fast]") {
  // As for the LSTM: 5 steps of about 20 roundings of numbers below 2.
  constexpr double kTolerance = 5 * 20 * 0x1p-23;
  constexpr test::Smoothness kSmooth{.third = 64};
  for (const bool reset_after : {true, false})
    for (const bool initial : {false, true})
      for (const Sizes s : {Sizes{2, 3, 3, 3}, Sizes{3, 1, 2, 2}, Sizes{1, 5, 1, 3}}) {
        INFO("reset after " << reset_after << " initial " << initial << " time " << s.time);
        Gru op({.in = s.in, .hidden = s.hidden, .initial = initial}, reset_after);
        CHECK(op.reset_after() == reset_after);
        const auto reference = [&](const std::vector<test::Doubles>& arguments) {
          const test::Doubles zero(static_cast<std::size_t>(s.batch * s.hidden));
          return gru(s, reset_after, arguments[0], initial ? arguments[1] : zero,
                     arguments.data() + (initial ? 2 : 1));
        };
        std::vector<Tensor> inputs{test::random_tensor({s.batch, s.time, s.in}, 1)};
        if (initial) inputs.push_back(test::random_tensor({s.batch, s.hidden}, 2));
        test::check_op(op, inputs, reference, kTolerance, kSmooth);
      }
}

TEST_CASE("gru that resets the state has a third product, from the second step on", "[fast]") {
  ProductRecorder numerics;
  const Gru op({.in = 3, .hidden = 4}, false);
  test::run_op(op, {test::random_tensor({2, 2, 3}, 1)}, numerics);
  const std::string layer = numerics.seen.at(0).substr(0, numerics.seen[0].find('.'));
  std::vector<std::string> expected{
      ".input fprop 4x12x3",    ".recurrent fprop 2x8x4", ".candidate fprop 2x4x4",
      ".candidate dgrad 2x4x4", ".recurrent dgrad 2x4x8", ".recurrent wgrad 8x4x2",
      ".candidate wgrad 4x4x4", ".input wgrad 12x3x4",    ".input dgrad 4x3x12"};
  for (std::string& text : expected) text = layer + text;
  CHECK(numerics.seen == expected);
  REQUIRE(op.products().size() == 3);
  CHECK((op.products()[2].suffix == ".candidate" && op.products()[2].weight == 3));
}

TEST_CASE("gru refuses other shapes", "[fast]") {
  const Gru op({.in = 3, .hidden = 2, .initial = true});
  const std::vector<Shape> one{{2, 4, 3}}, wide{{2, 4, 3}, {2, 3}};
  CHECK_THROWS_WITH(op.output_shape(one), Catch::Contains("gru") && Catch::Contains("1 states"));
  CHECK_THROWS_WITH(op.output_shape(wide), Catch::Contains("[batch, 2]"));
}

}  // namespace

}  // namespace numemu::net::recurrent_test

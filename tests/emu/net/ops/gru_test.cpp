// The GRU in both forms against float64 through time, its products, threads and refusals.
#include "emu/net/ops/gru.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/product_recorder.hpp"

namespace numemu::net {
namespace {

struct Sizes {
  std::int64_t batch, time, in, hidden;
};

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
  test::ProductRecorder numerics;
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

TEST_CASE("gru has the same bits on every number of threads", "[fast]") {
  for (const bool reset_after : {true, false}) {
    Gru op({.in = 20, .hidden = 40}, reset_after);
    std::uint32_t made = 10;
    for (Parameter& p : op.parameters()) p.value = test::random_tensor(p.value.shape, ++made);
    test::check_threads(op, {test::random_tensor({64, 2, 20}, 1)});
  }
}

TEST_CASE("gru refuses other shapes", "[fast]") {
  const Gru op({.in = 3, .hidden = 2, .initial = true});
  const std::vector<Shape> one{{2, 4, 3}}, wide{{2, 4, 3}, {2, 3}};
  CHECK_THROWS_WITH(op.output_shape(one), Catch::Contains("gru") && Catch::Contains("1 states"));
  CHECK_THROWS_WITH(op.output_shape(wide), Catch::Contains("[batch, 2]"));
}

}  // namespace
}  // namespace numemu::net

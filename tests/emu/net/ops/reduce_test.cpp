// Operators along axes, against plain loops.
#include "emu/net/ops/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::reduce_test {
namespace {

using test::kAnyNan;
using test::kInfinity;

using test::Doubles;

/// What a reduction of a line is in float64.
double truth(std::string_view kind, const Doubles& line) {
  double sum = 0, squares = 0, magnitudes = 0, product = 1, exponentials = 0;
  for (const double v : line) {
    sum += v;
    squares += v * v;
    magnitudes += std::fabs(v);
    product *= v;
    exponentials += std::exp(v);
  }
  if (kind == "reduce_sum") return sum;
  if (kind == "reduce_mean") return sum / static_cast<double>(line.size());
  if (kind == "reduce_max") return *std::ranges::max_element(line);
  if (kind == "reduce_min") return *std::ranges::min_element(line);
  if (kind == "reduce_prod") return product;
  if (kind == "reduce_l1") return magnitudes;
  if (kind == "reduce_l2") return std::sqrt(squares);
  if (kind == "reduce_sum_square") return squares;
  if (kind == "reduce_log_sum") return std::log(sum);
  REQUIRE(kind == "reduce_log_sum_exp");
  return std::log(exponentials);
}

TEST_CASE("every reduction and its gradient over any axes", "[fast]") {
  const Shape shape{2, 3, 4};
  const std::int64_t strides[] = {12, 4, 1};
  const std::vector<std::vector<std::int64_t>> cases{{0},    {1},    {2},    {-1},
                                                     {0, 1}, {1, 2}, {2, 0}, {}};
  Tensor x = test::random_tensor(shape, 1);
  // Positive, for logarithms, and at least 2^-6 apart, so that no step changes an extreme.
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = 1 + 0x1p-5f * static_cast<float>(i * 7 % 24) + 0x1p-10f * x.data[i];
  for (const ReduceRule& rule : reduce_rules()) {
    for (const std::vector<std::int64_t>& axes : cases) {
      for (const bool keep : {true, false}) {
        bool reduced[3] = {axes.empty(), axes.empty(), axes.empty()};
        for (const std::int64_t axis : axes) reduced[axis < 0 ? axis + 3 : axis] = true;
        Shape expected;
        std::int64_t count = 1;
        for (int a = 0; a < 3; ++a) {
          if (!reduced[a]) expected.push_back(shape[a]);
          if (reduced[a] && keep) expected.push_back(1);
          if (reduced[a]) count *= shape[a];
        }
        const auto reference = [&](const std::vector<Doubles>& arguments) {
          std::vector<Doubles> lines(24 / count);
          for (std::int64_t i = 0; i < 24; ++i) {
            std::int64_t place = 0;
            for (int a = 0; a < 3; ++a)
              if (!reduced[a]) place = place * shape[a] + i / strides[a] % shape[a];
            lines[place].push_back(arguments[0][i]);
          }
          Doubles y;
          for (const Doubles& line : lines) y.push_back(truth(rule.kind, line));
          return y;
        };
        INFO(rule.kind);
        Reduce op(rule.kind, axes, keep);
        const std::vector<Shape> shapes{shape};
        CHECK(op.output_shape(shapes) == expected);
        // Results reach the product of 24 numbers below 1.8 and gradients its size; two roundings.
        const double size = rule.kind == "reduce_prod" ? std::pow(1.75, count) : 24 * 4;
        test::check_op(op, {x}, reference, 2 * 0x1p-24 * size, {.third = 4});
      }
    }
  }
}

TEST_CASE("reductions have the same bits on any number of threads", "[fast]") {
  const Tensor x = test::random_tensor({20, 30, 40}, 2);
  for (const ReduceRule& rule : reduce_rules()) {
    for (const std::int64_t axis : {0, 1, 2}) test::check_threads(Reduce(rule.kind, {axis}), {x});
  }
}

TEST_CASE("reductions of equal extremes, zeros and infinities", "[fast]") {
  Numerics numerics;
  Tensor x({1, 4});
  x.data = {2, 3, 3, 1};
  test::OpResult result = test::run_op(Reduce("reduce_max", {1}), {x}, numerics);
  const float g = result.grad_output.data[0];
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, g / 2, g / 2, 0});
  x.data = {2, 0, 3, 1};
  result = test::run_op(Reduce("reduce_prod", {1}), {x}, numerics);
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 6 * result.grad_output.data[0], 0, 0});
  x.data = {0, 0, 3, 1};
  result = test::run_op(Reduce("reduce_prod", {1}), {x}, numerics);
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 0, 0, 0});
  x.data = {0, 0, 0, 0};
  result = test::run_op(Reduce("reduce_l2", {1}), {x}, numerics);
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 0, 0, 0});
  x.data = {1000, 1000, -kInfinity, 0};
  CHECK(test::run_op(Reduce("reduce_log_sum_exp", {1}), {x}, numerics).output.data[0] ==
        Approx(1000.69314718).epsilon(0x1p-24));
  x.data = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  CHECK(test::run_op(Reduce("reduce_log_sum_exp", {1}), {x}, numerics).output.data[0] ==
        -kInfinity);
}

TEST_CASE("reductions keep one NaN and refuse wrong axes", "[fast]") {
  Tensor x({2, 2});
  x.data = {kAnyNan, 1, kInfinity, -kInfinity};
  Numerics numerics;
  CHECK(test::bits(test::run_op(Reduce("reduce_mean", {1}, false), {x}, numerics).output) ==
        std::vector<std::uint32_t>{0x7fc00000, 0x7fc00000});
  for (const ReduceRule& rule : reduce_rules()) {
    INFO(rule.kind);
    CHECK(test::bits(test::run_op(Reduce(rule.kind, {1}, false), {x}, numerics).output)[0] ==
          0x7fc00000);
  }
  const std::vector<Shape> two{{2, 3}}, empty{{2, 0}};
  CHECK_THROWS_WITH(Reduce("reduce_sum", {2}).output_shape(two), Catch::Contains("axis 2"));
  CHECK_THROWS_WITH(Reduce("reduce_sum", {1, -1}).output_shape(two), Catch::Contains("axis -1"));
  CHECK_THROWS_WITH(Reduce("reduce_sum", {1}).output_shape(empty), Catch::Contains("[2, 0]"));
  CHECK_THROWS_WITH(Reduce("reduce_sun"), Catch::Contains("did you mean 'reduce_sum'?"));
}

TEST_CASE("docs/networks.md has a line for every reduction", "[fast]") {
  const std::string docs = read_text(NUMEMU_SOURCE "/docs/networks.md");
  for (const ReduceRule& rule : reduce_rules()) {
    const std::string line =
        fmt::format("| `{}` | {} | {} | `{}` |", rule.kind, rule.formula,
                    rule.use ? test::reading_text("x", rule.use) : "", rule.onnx);
    INFO(line);
    CHECK(docs.find(line + "\n") != std::string::npos);
  }
}

TEST_CASE("cumulative sums along any axis", "[fast]") {
  const Shape shape{2, 3, 4};
  const std::int64_t strides[] = {12, 4, 1};
  for (const std::int64_t axis : {0, 1, 2, -1}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const std::int64_t at = axis < 0 ? axis + 3 : axis;
        const auto reference = [&](const std::vector<test::Doubles>& arguments) {
          test::Doubles y(24, 0);
          for (std::int64_t i = 0; i < 24; ++i) {
            const std::int64_t own = i / strides[at] % shape[at];
            for (std::int64_t k = 0; k < shape[at]; ++k) {
              const bool counts = (reverse ? k >= own : k <= own) && !(exclusive && k == own);
              if (counts) y[i] += arguments[0][i + (k - own) * strides[at]];
            }
          }
          return y;
        };
        CumulativeSum op({.axis = axis, .exclusive = exclusive, .reverse = reverse});
        constexpr double kTolerance = 4 * 0x1p-24;  // one rounding of sums below 4
        test::check_op(op, {test::random_tensor(shape, 1)}, reference, kTolerance);
      }
    }
  }
}

TEST_CASE("cumulative sums need the axis", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(CumulativeSum({.axis = 2}).output_shape(shapes), Catch::Contains("axis 2"));
}

const float kNan = std::numeric_limits<float>::quiet_NaN();

test::OpResult run(const TopKOptions& options, const Shape& shape, std::vector<float> data) {
  Tensor x(shape);
  x.data = std::move(data);
  Numerics numerics;
  return test::run_op(TopK(options), {x}, numerics);
}

TEST_CASE("top_k orders the largest or smallest elements of an axis", "[fast]") {
  const std::vector<float> x{3, 1, 4, 1, 5, 9, 2, 6};
  CHECK(run({.k = 3}, {2, 4}, x).output.data == std::vector<float>{4, 3, 1, 9, 6, 5});
  CHECK(run({.k = 3, .places = true}, {2, 4}, x).output.data ==
        std::vector<float>{2, 0, 1, 1, 3, 0});
  CHECK(run({.axis = 0, .k = 1, .largest = false}, {2, 4}, x).output.data ==
        std::vector<float>{3, 1, 2, 1});
  const test::OpResult dropped = run({.axis = 1, .places = true, .keep = false}, {2, 4}, x);
  CHECK(dropped.output.shape == Shape{2});
  CHECK(dropped.output.data == std::vector<float>{2, 1});
}

TEST_CASE("of equal elements the first or the last one comes first; NaN is the largest", "[fast]") {
  CHECK(run({.places = true}, {4}, {1, 7, 7, 0}).output.data == std::vector<float>{1});
  CHECK(run({.places = true, .last_first = true}, {4}, {1, 7, 7, 0}).output.data ==
        std::vector<float>{2});
  CHECK(run({.k = 2, .places = true}, {3}, {1, kNan, 7}).output.data == std::vector<float>{1, 2});
}

TEST_CASE("the gradient goes to the chosen elements", "[fast]") {
  const test::OpResult result = run({.k = 2}, {4}, {3, 1, 4, 1});
  const std::vector<float>& g = result.grad_output.data;
  CHECK(result.grad_inputs[0].data == std::vector<float>{g[1], 0, g[0], 0});
  CHECK(run({.k = 2, .places = true}, {4}, {3, 1, 4, 1}).grad_inputs[0].data ==
        std::vector<float>(4, 0));
}

TEST_CASE("top_k refuses more elements than there are", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(TopK({.k = 4}).output_shape(shapes), Catch::Contains("at least 4 elements"));
  CHECK_THROWS_WITH(TopK({.k = 0}), Catch::Contains("at least one"));
}

}  // namespace

}  // namespace numemu::net::reduce_test

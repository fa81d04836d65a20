// Statistics of a batch, both statistics of a norm, ghost batches, running values, inference,
// threads.
#include "emu/net/ops/batch_norm.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <string_view>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::batch_norm_test {
namespace {

constexpr auto kExact = NormRule::Constant::exact, kPublished = NormRule::Constant::published,
               kRepository = NormRule::Constant::repository;

TEST_CASE("the range factor is that of the published table", "[fast]") {
  const std::vector<std::pair<std::int64_t, double>> table{
      {4, 0.600561},    {16, 0.424661},   {64, 0.346734},   {256, 0.300281},
      {1024, 0.268579}, {4096, 0.245178}, {65536, 0.212330}};
  for (const auto& [n, factor] : table)
    CHECK(range_factor(kPublished, n) == Approx(factor).margin(5e-7).epsilon(0));  // six digits
  CHECK(range_factor(kPublished, 8) == Approx(0.4903562).margin(5e-8).epsilon(0));
}

TEST_CASE("the range factor of the published code is that of its table", "[fast]") {
  const std::vector<std::pair<std::int64_t, double>> table{
      {4, 0.324428},    {16, 0.229405},   {64, 0.187309},   {256, 0.162214},
      {1024, 0.145089}, {4096, 0.132447}, {65536, 0.114703}};
  for (const auto& [n, factor] : table)
    CHECK(range_factor(kRepository, n) == Approx(factor).margin(5e-7).epsilon(0));
  CHECK(range_factor(kRepository, 8) == Approx(0.2648945).margin(5e-8).epsilon(0));
}

TEST_CASE("the exact range factor is 1 / E[range] of normal values", "[fast]") {
  constexpr double kRelative = 1e-11;
  // Closed forms for 2 and 3 values; the others by quadrature with 30 digits.
  const std::vector<std::pair<std::int64_t, double>> expected{{2, 2 / std::sqrt(std::numbers::pi)},
                                                              {3, 3 / std::sqrt(std::numbers::pi)},
                                                              {8, 2.84720061209055551},
                                                              {25, 3.93062921950711316},
                                                              {32, 4.13933765585781389},
                                                              {128, 5.18919473719893337},
                                                              {65536, 8.58225863179291279},
                                                              {1000000, 9.72579497239292544}};
  for (const auto& [n, d2] : expected) {
    CAPTURE(n);
    CHECK(1 / range_factor(kExact, n) == Approx(d2).margin(0).epsilon(kRelative));
  }
}

TEST_CASE("variance is the mean squared deviation even far from zero", "[fast]") {
  Tensor x({1000, 2});
  for (int i = 0; i < 1000; ++i) {
    x.data[2 * i] = 100000 + static_cast<float>(i % 2);
    x.data[2 * i + 1] = static_cast<float>(i % 4);
  }
  const BatchStatistics batch = batch_statistics(x.data.data(), 1000, 2, {});
  CHECK(batch.mean == std::vector<double>{100000.5, 1.5});
  CHECK(batch.variance == std::vector<double>{0.25, 1.25});
  CHECK(batch.largest.empty());
}

TEST_CASE("shifts take a power of two in the place of one factor", "[fast]") {
  Tensor x({4, 1});
  x.data = {1.5f, 4.5f, -1, -5};  // of mean 0: AP2 2, 4, -1, -4
  const BatchStatistics batch =
      batch_statistics(x.data.data(), 4, 1, {.statistic = NormRule::Statistic::shift});
  CHECK(batch.mean == std::vector<double>{0});
  CHECK(batch.variance == std::vector<double>{(3 + 18 + 1 + 20) / 4.0});
  CHECK(batch.largest.empty());
}

TEST_CASE("the range takes the first of equal ends across chunks", "[fast]") {
  Tensor x({1000, 2});
  x.data[2 * 300] = x.data[2 * 900] = 5;
  x.data[2 * 999] = -3;
  x.data[1] = -7;
  x.data[2 * 511 + 1] = x.data[2 * 512 + 1] = 1;
  const BatchStatistics batch = batch_statistics(
      x.data.data(), 1000, 2, {.statistic = NormRule::Statistic::range, .constant = kPublished});
  CHECK(batch.largest == std::vector<std::int64_t>{300, 511});
  CHECK(batch.smallest == std::vector<std::int64_t>{999, 0});
  const double scale = 8 * range_factor(kPublished, 1000);
  CHECK(batch.variance == std::vector<double>{scale * scale, scale * scale});
}

TEST_CASE("the range in chunks is the mean over parts of nearly equal length", "[fast]") {
  // 10 rows in 4 chunks: rows 0-1, 2-4, 5-6, 7-9.
  const std::vector<float> x{1, 4, -2, 5, 5, 0, 8, 3, 3, 3};
  const BatchStatistics batch = batch_statistics(
      x.data(), 10, 1, {.statistic = NormRule::Statistic::range, .constant = kExact, .chunks = 4});
  CHECK(batch.largest == std::vector<std::int64_t>{1, 3, 6, 7});
  CHECK(batch.smallest == std::vector<std::int64_t>{0, 2, 5, 7});
  const double two = range_factor(kExact, 2), three = range_factor(kExact, 3);
  CHECK(batch.share == std::vector<double>{two / 4, three / 4, two / 4, three / 4});
  const double scale = (two * 3 + three * 7 + two * 8 + three * 0) / 4;
  CHECK(batch.variance[0] == Approx(scale * scale).epsilon(1e-15));
}

using test::kAnyNan;
using test::kInfinity;

struct Rule final : Numerics {
  explicit Rule(NormRule r) : rule(r) {}
  NormRule norm(const Step&, std::string_view) override { return rule; }
  NormRule rule;
};

constexpr std::int64_t kChannels = 3;
constexpr double kEpsilon = 0.03125;

constexpr auto kRange = NormRule::Statistic::range;

// E[max - min] of 4, 8, 10, 16 and 40 standard normal values, by quadrature with 30 digits.
const std::map<std::int64_t, double> kExpectedRange{{4, 2.05875074600792826},
                                                    {8, 2.84720061209055551},
                                                    {10, 3.07750546167034571},
                                                    {16, 3.53198278610957593},
                                                    {40, 4.32155435635003992}};

// What turns the range of n values into the deviation, from the formulas again.
double factor(NormRule::Constant constant, std::int64_t n) {
  if (constant == NormRule::Constant::exact) return 1 / kExpectedRange.at(n);
  const double published = 1 / std::sqrt(2 * std::log(static_cast<double>(n)));
  const double bound = 1 + std::sqrt(std::acos(-1) * std::log(4));
  return constant == kPublished ? published : 0.5 * 0.35 * bound * published;
}

// y of x [samples, pixels, channels] with statistics of each `group` samples.
test::Doubles normalised(const std::vector<test::Doubles>& arguments, std::int64_t samples,
                         std::int64_t pixels, std::int64_t group, const NormRule& rule) {
  const test::Doubles& x = arguments[0];
  test::Doubles y(x.size());
  for (std::int64_t first = 0; first < samples; first += group) {
    const std::int64_t begin = first * pixels, end = std::min(samples, first + group) * pixels;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const double n = static_cast<double>(end - begin);
      double mean = 0, variance = 0, scale = 0;
      for (std::int64_t r = begin; r < end; ++r) mean += x[r * kChannels + c] / n;
      for (std::int64_t r = begin; r < end; ++r) {
        const double v = x[r * kChannels + c];
        variance += (v - mean) * (v - mean) / n;
      }
      const std::int64_t length = (end - begin) / rule.chunks;
      for (std::int64_t first_row = begin; first_row < end; first_row += length) {
        double low = 1e9, high = -1e9;
        for (std::int64_t r = first_row; r < first_row + length; ++r) {
          low = std::min(low, x[r * kChannels + c]);
          high = std::max(high, x[r * kChannels + c]);
        }
        scale += factor(rule.constant, length) * (high - low) / rule.chunks;
      }
      if (rule.statistic == kRange) variance = scale * scale;
      for (std::int64_t r = begin; r < end; ++r) {
        y[r * kChannels + c] =
            (x[r * kChannels + c] - mean) / std::sqrt(variance + kEpsilon) * arguments[1][c] +
            arguments[2][c];
      }
    }
  }
  return y;
}

TEST_CASE("batch_norm and its gradients through every kind of statistics", "[fast]") {
  // 40 values per channel, 0.04 apart in a scrambled order: the ends of ranges are not ties.
  Tensor x({5, 2, 4, kChannels});
  for (int i = 0; i < 120; ++i)
    x.data[i] = static_cast<float>(i / 3 * 17 % 40 - 20) * 0.046875f + static_cast<float>(i % 3);
  using Constant = NormRule::Constant;
  std::vector<NormRule> rules{{.ghost_batch = 0}, {.ghost_batch = 2}, {.ghost_batch = 8}};
  for (const Constant constant : {Constant::exact, kPublished, Constant::repository}) {
    for (const std::int64_t ghost : {0, 2, 8})
      rules.push_back({.statistic = kRange, .constant = constant, .ghost_batch = ghost});
  }
  rules.push_back({.statistic = kRange, .chunks = 4});
  rules.push_back({.statistic = kRange, .constant = Constant::repository, .chunks = 5});
  rules.push_back({.statistic = kRange, .chunks = 2, .ghost_batch = 2});
  for (const NormRule& given : rules) {
    const std::int64_t group = given.ghost_batch == 0 ? 5 : given.ghost_batch;
    Rule rule(given);
    BatchNorm op({.channels = kChannels, .epsilon = kEpsilon});
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      return normalised(arguments, 5, 8, group, given);
    };
    CAPTURE(given.statistic, given.constant, given.chunks, given.ghost_batch);
    // Sums of 40 terms below 4; a and b are rounded to float32 and so are the saved statistics.
    constexpr double kTolerance = 40 * 4 * 0x1p-23;
    constexpr double kThird = 40;
    test::check_op(op, {x}, reference, kTolerance, {.third = kThird}, &rule);
  }
}

TEST_CASE("batch_norm by range is that of the published example", "[fast]") {
  BatchNorm op({.channels = 1, .epsilon = 1e-12});
  Tensor x({8, 1});
  x.data = {.5, -1, 2, 0, 1.5, -.5, 1, .5};
  Rule rule({.statistic = kRange, .constant = kPublished});
  const Tensor y = test::run_op(op, {x}, rule).output;
  const std::vector<double> expected{0,        -1.019667, 1.019667, -0.339889,
                                     0.679778, -0.679778, 0.339889, 0};
  for (int i = 0; i < 8; ++i) CHECK(y.data[i] == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("batch_norm by shifts multiplies by powers of two, and by those in backward", "[fast]") {
  constexpr std::int64_t kRows = 20;
  const Tensor x = test::random_tensor({5, 4, kChannels}, 8);
  Tensor g = test::random_tensor({5, 4, kChannels}, 9);
  Rule rule({.statistic = NormRule::Statistic::shift});
  BatchNorm op({.channels = kChannels, .epsilon = kEpsilon, .momentum = 0.25});
  op.parameters()[0].value.data = {1.5f, -0.3f, 0.7f};
  op.parameters()[1].value.data = {0.25f, -1, 2};
  const auto power = [](double v) {
    return std::copysign(std::exp2(std::round(std::log2(std::fabs(v)))), v);
  };
  Tensor y(x.shape), dx(x.shape), context;
  std::vector<BufferUpdate> buffers;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({.layer = "bn",
              .numerics = rule,
              .phase = Phase::training,
              .context = &context,
              .buffers = &buffers},
             inputs, y);
  std::vector<Tensor> grad_inputs{Tensor(x.shape)},
      grad_parameters{Tensor({kChannels}), Tensor({kChannels}), Tensor(), Tensor()};
  op.backward({.layer = "bn", .numerics = rule, .phase = Phase::training, .kept = &context},
              {inputs, nullptr, g, grad_inputs, grad_parameters, true});
  constexpr double kTolerance = 40 * 4 * 0x1p-23;  // as above
  for (std::int64_t c = 0; c < kChannels; ++c) {
    double mean = 0, v = 0, sum = 0, along = 0;
    for (std::int64_t r = 0; r < kRows; ++r) mean += x.data[r * kChannels + c] / double(kRows);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double d = x.data[r * kChannels + c] - mean;
      v += d * power(d) / double(kRows);
    }
    const double inverse = power(1 / std::sqrt(v + kEpsilon)),
                 weight = power(op.parameters()[0].value.data[c]),
                 bias = op.parameters()[1].value.data[c];
    const auto u = [&](std::int64_t r) { return (x.data[r * kChannels + c] - mean) * inverse; };
    for (std::int64_t r = 0; r < kRows; ++r) {
      sum += g.data[r * kChannels + c];
      along += g.data[r * kChannels + c] * u(r);
      CHECK(y.data[r * kChannels + c] == Approx(weight * u(r) + bias).margin(kTolerance));
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double expected =
          weight * inverse * (g.data[r * kChannels + c] - (sum + u(r) * along) / double(kRows));
      CHECK(grad_inputs[0].data[r * kChannels + c] == Approx(expected).margin(kTolerance));
    }
    CHECK(grad_parameters[0].data[c] == Approx(along).margin(kTolerance));
    CHECK(grad_parameters[1].data[c] == Approx(sum).margin(kTolerance));
    REQUIRE(buffers.size() == 2);
    Tensor running({kChannels}, 1);
    apply(buffers[1], running);
    CHECK(running.data[c] == Approx(0.75 + 0.25 * v).margin(kTolerance));
  }
  // Inference takes the powers of the running statistics.
  op.parameters()[3].value.data = {0.2f, 0.7f, 9};
  op.forward({.layer = "bn", .numerics = rule}, inputs, y);
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t c = i % kChannels;
    const auto at = [&](int p) -> double { return op.parameters()[p].value.data[c]; };
    const auto slope = static_cast<float>(power(at(0)) * power(1 / std::sqrt(at(3) + kEpsilon)));
    const float product = x.data[i] * slope;
    CHECK(y.data[i] == product + static_cast<float>(at(1) - at(2) * slope));
  }
}

TEST_CASE("batch_norm moves the running statistics group by group", "[fast]") {
  const Tensor x = test::random_tensor({6, 4, kChannels}, 3);
  for (const std::int64_t ghost : {0, 3}) {
    Rule rule({.ghost_batch = ghost});
    BatchNorm op({.channels = kChannels, .momentum = 0.25});
    op.parameters()[2].value = test::random_tensor({kChannels}, 4);
    const test::OpResult result = test::run_op(op, {x}, rule);
    REQUIRE(result.buffers.size() == 2);
    CHECK(result.buffers[0].parameter == 2);
    CHECK(result.buffers[1].parameter == 3);
    Tensor running_mean = op.parameters()[2].value, running_variance = op.parameters()[3].value;
    apply(result.buffers[0], running_mean);
    apply(result.buffers[1], running_variance);
    const int rows = ghost == 0 ? 24 : 12;
    for (int c = 0; c < kChannels; ++c) {
      double mean = op.parameters()[2].value.data[c], variance = 1;
      for (int first = 0; first < 24; first += rows) {
        double m = 0, v = 0;
        for (int r = first; r < first + rows; ++r) m += x.data[r * kChannels + c] / double(rows);
        for (int r = first; r < first + rows; ++r)
          v += std::pow(x.data[r * kChannels + c] - m, 2) / (rows - 1);
        mean = 0.75 * mean + 0.25 * m;
        variance = 0.75 * variance + 0.25 * v;
      }
      constexpr double kRounding = 0x1p-24;  // of numbers below 1 to float32
      CHECK(running_mean.data[c] == Approx(mean).margin(kRounding).epsilon(0));
      CHECK(running_variance.data[c] == Approx(variance).margin(kRounding).epsilon(0));
    }
  }
}

TEST_CASE("batch_norm in inference is one multiplication and one addition", "[fast]") {
  BatchNorm op({.channels = 2, .epsilon = 0.5});
  op.parameters()[0].value.data = {3, 0.1f};
  op.parameters()[1].value.data = {-1, 0.7f};
  op.parameters()[2].value.data = {0.3f, 5};
  op.parameters()[3].value.data = {0.25f, 9};
  const Tensor x = test::random_tensor({7, 3, 2}, 5);
  Tensor y(x.shape);
  Rule rule({.statistic = kRange, .ghost_batch = 1});  // concerns training alone
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"bn", rule}, inputs, y);
  for (int i = 0; i < 42; ++i) {
    const int c = i % 2;
    const auto at = [&](int p) -> double { return op.parameters()[p].value.data[c]; };
    const double slope = at(0) * (1 / std::sqrt(at(3) + 0.5));
    const auto a = static_cast<float>(slope), b = static_cast<float>(at(1) - at(2) * slope);
    const float product = x.data[i] * a;
    CHECK(y.data[i] == product + b);
  }
}

TEST_CASE("batch_norm has the same bits on any number of threads", "[fast]") {
  const Tensor x = test::random_tensor({10, 20, 30, kChannels}, 6);
  for (const std::int64_t ghost : {0, 4}) {
    for (const NormRule& given :
         {NormRule{.ghost_batch = ghost}, NormRule{.statistic = kRange, .ghost_batch = ghost},
          NormRule{.statistic = kRange, .chunks = 7, .ghost_batch = ghost},
          NormRule{.statistic = NormRule::Statistic::shift, .ghost_batch = ghost}}) {
      Rule rule(given);
      test::check_threads(BatchNorm({.channels = kChannels}), {x}, &rule);
    }
  }
}

TEST_CASE("batch_norm keeps NaN to its channel, as the neutral one", "[fast]") {
  Tensor x = test::random_tensor({4, 2}, 7);
  x.data[3] = kAnyNan;
  Numerics numerics;
  const test::OpResult result = test::run_op(BatchNorm({.channels = 2}), {x}, numerics);
  for (int i = 0; i < 8; ++i) {
    CHECK(std::isfinite(result.output.data[i]) == (i % 2 == 0));
    CHECK(std::isfinite(result.grad_inputs[0].data[i]) == (i % 2 == 0));
    if (i % 2 == 1) CHECK(test::bits(result.output)[i] == 0x7fc00000);
  }
  x.data[3] = kInfinity;
  CHECK(test::bits(test::run_op(BatchNorm({.channels = 2}), {x}, numerics).output)[3] ==
        0x7fc00000);
}

TEST_CASE("batch_norm refuses single values and other shapes and options", "[fast]") {
  Numerics numerics;
  const BatchNorm op({.channels = 2});
  CHECK_THROWS_WITH(test::run_op(op, {Tensor({1, 2})}, numerics),
                    Catch::Contains("layer") && Catch::Contains("at least 2 values"));
  Rule rule({.ghost_batch = 2});
  CHECK_THROWS_WITH(test::run_op(op, {Tensor({3, 2})}, rule), Catch::Contains("got 1"));
  Rule chunks({.statistic = kRange, .chunks = 4});
  CHECK_THROWS_WITH(test::run_op(op, {Tensor({7, 2})}, chunks),
                    Catch::Contains("at least 8 values") && Catch::Contains("4 chunks"));
  const std::vector<Shape> wrong{{4, 3}};
  CHECK_THROWS_WITH(op.output_shape(wrong),
                    Catch::Contains("batch_norm") && Catch::Contains("[4, 3]"));
  CHECK_THROWS_AS(BatchNorm({.channels = 0}), Error);
  CHECK_THROWS_AS(BatchNorm({.momentum = 1.5}), Error);
}

}  // namespace

}  // namespace numemu::net::batch_norm_test

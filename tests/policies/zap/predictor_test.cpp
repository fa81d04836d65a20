// The predictor against its formula written out, and what counts as a zero.
#include "policies/zap/predictor.hpp"

#include <omp.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "emu/net/ops/conv.hpp"
#include "formats/random.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

namespace predictor_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

net::Tensor random_maps(const net::Shape& shape, std::uint64_t seed) {
  net::Tensor x(shape);
  const RandomSource random{seed, Stream::vectors, 1, 0};
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] =
        static_cast<float>(std::max(0.0, 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1));
  return x;
}

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const ZapPredictor& predictor) {
  Values values;
  for (const net::Parameter* p : predictor.graph().parameters())
    values[p->name.substr(p->name.find(".zap.") + 5)] = p->value.data;
  return values;
}

/// Depthwise 3 x 3 with pad 1 and bias, then normalisation by running statistics, in float64.
std::vector<double> stage(const std::vector<double>& x, const net::Shape& shape, Values& p,
                          const std::string& conv, const std::string& norm) {
  const std::int64_t h = shape[1], w = shape[2], channels = shape[3];
  std::vector<double> y(x.size());
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t i = 0; i < h; ++i)
      for (std::int64_t j = 0; j < w; ++j)
        for (std::int64_t c = 0; c < channels; ++c) {
          double sum = p[conv + ".bias"][c];
          for (std::int64_t di = -1; di <= 1; ++di)
            for (std::int64_t dj = -1; dj <= 1; ++dj) {
              const std::int64_t y0 = i + di, x0 = j + dj;
              if (y0 < 0 || y0 >= h || x0 < 0 || x0 >= w) continue;
              sum += p[conv + ".weight"][c * 9 + (di + 1) * 3 + dj + 1] *
                     x[((n * h + y0) * w + x0) * channels + c];
            }
          y[((n * h + i) * w + j) * channels + c] =
              (sum - p[norm + ".running_mean"][c]) /
                  std::sqrt(p[norm + ".running_variance"][c] + 1e-5) * p[norm + ".weight"][c] +
              p[norm + ".bias"][c];
        }
  return y;
}

}  // namespace

TEST_CASE("a prediction is the formula of the specification", "[fast]") {
  ZapPredictor predictor("relu2", {5, 4, 3}, 6, 7);
  const RandomSource random{3, Stream::vectors, 2, 0};
  std::uint64_t next = 0;
  for (net::Parameter* p : predictor.graph().parameters())
    for (float& v : p->value.data) v = static_cast<float>(0.25 + random.uniform(next++));
  const net::Tensor x = random_maps({2, 5, 4, 3}, 11);
  Values values = values_of(predictor);
  std::vector<double> y(x.data.begin(), x.data.end());
  for (std::size_t i = 0; i < y.size(); ++i)
    if (predictor.mask().computed[i / 3 % 20] == 0) y[i] = 0;
  std::vector<double> z = stage(y, x.shape, values, "conv1", "bn1");
  for (double& v : z) v = std::max(0.0, v);
  z = stage(z, x.shape, values, "conv2", "bn2");
  const net::Tensor found = predictor.predict(x);
  REQUIRE(found.shape == x.shape);
  // Two chains of 9 products and one scale each, magnitudes below 64: 64 x 22 roundings x 2^-24.
  constexpr double kTolerance = 64 * 22 * 0x1p-24;
  for (std::size_t i = 0; i < z.size(); ++i) CHECK(std::fabs(found.data[i] - z[i]) <= kTolerance);
}

TEST_CASE("predicted positions are never read", "[fast]") {
  const ZapPredictor predictor("relu", {4, 4, 2}, 5, 1);
  net::Tensor x = random_maps({1, 4, 4, 2}, 5);
  const net::Tensor z = predictor.predict(x);
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (predictor.mask().computed[static_cast<std::size_t>(i / 2)] == 0)
      x.data[i] = i % 3 == 0 ? kNan : kInfinity;
  CHECK(predictor.predict(x).data == z.data);
}

TEST_CASE("a second convolution of zeros predicts 0: all skipped at 0, none at -0.1", "[fast]") {
  ZapPredictor predictor("relu", {4, 4, 2}, 5, 1);
  for (net::Parameter* p : predictor.graph().parameters())
    if (p->name.find("conv2") != std::string::npos) p->value = net::Tensor(p->value.shape);
  net::Tensor x(net::Shape{1, 4, 4, 2}, 1);
  const net::Tensor z = predictor.predict(x);
  CHECK(z.data == std::vector<float>(32, 0.0f));
  net::Tensor at_zero = x, below = x;
  skip_zeros(predictor.mask(), z, 0, at_zero);
  skip_zeros(predictor.mask(), z, -0.1f, below);
  for (std::int64_t i = 0; i < x.size(); ++i)
    CHECK(at_zero.data[i] == predictor.mask().computed[static_cast<std::size_t>(i / 2)]);
  CHECK(below.data == x.data);
}

TEST_CASE("what is kept is strictly above the threshold, or computed", "[fast]") {
  const PositionMask mask = position_mask(5, 1, 2);  // computed, predicted
  const auto kept = [&](float z, float threshold) { return keeps(mask, 1, 1, z, threshold); };
  CHECK(keeps(mask, 1, 0, kNan, 0));
  CHECK(keeps(mask, 1, 2, -5, 0));  // the next map
  CHECK_FALSE(kept(-0.0f, 0));
  CHECK_FALSE(kept(0, -0.0f));
  CHECK_FALSE(kept(0.1f, 0.1f));
  CHECK(kept(std::nextafter(0.1f, 1.0f), 0.1f));
  CHECK(kept(0x1p-149f, 0));
  CHECK_FALSE(kept(kNan, -kInfinity));
  CHECK_FALSE(kept(kInfinity, kInfinity));
  CHECK(kept(-1e30f, -kInfinity));

  net::Tensor x(net::Shape{1, 1, 2, 1}, kNan);
  skip_zeros(mask, net::Tensor(x.shape), 0, x);
  CHECK(std::isnan(x.data[0]));
  CHECK(x.data[1] == 0);
  CHECK_FALSE(std::signbit(x.data[1]));
}

TEST_CASE("maps that do not fit are refused", "[fast]") {
  const ZapPredictor predictor("relu7", {4, 4, 2}, 5);
  CHECK_THAT(message_of([&] {
               predictor.predict(net::Tensor(net::Shape{1, 4, 4, 3}));
             }),
             Catch::Contains("relu7.zap: expected maps [batch, then [4, 4, 2]]"));
  CHECK_THAT(message_of([] {
               ZapPredictor("r", {4, 4}, 5);
             }),
             Catch::Contains("[height, width, channels], got [4, 4]"));
}

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

namespace {

std::vector<float> weights_of(const ZapPredictor& predictor) {
  std::vector<float> all;
  for (const net::Parameter* p : predictor.graph().parameters())
    all.insert(all.end(), p->value.data.begin(), p->value.data.end());
  return all;
}

}  // namespace

TEST_CASE("the loss looks at predicted positions alone and is clamped", "[fast]") {
  const PositionMask mask = position_mask(5, 2, 2);  // 10/01
  net::Tensor x(net::Shape{1, 2, 2, 1}), z(x.shape), gradient;
  x.data = {3, 0.5f, 0, 7};
  z.data = {9, 0.25f, 0.5f, -9};
  // Errors: 0.25 - 1 and 0.5 - 0, over four elements.
  CHECK(zap_loss(mask, x, z, &gradient) == (0.75 * 0.75 + 0.25) / 4);
  CHECK(gradient.data == std::vector<float>{0, -0.375f, 0.25f, 0});
  z.data = {0, 2, -1, 0};  // both right beyond the clamp
  CHECK(zap_loss(mask, x, z, &gradient) == 0);
  CHECK(gradient.data == std::vector<float>(4, 0.0f));
  z.data = {0, -1, 2, 0};  // both wrong beyond it: no way back
  CHECK(zap_loss(mask, x, z, &gradient) == 0.5);
  CHECK(gradient.data == std::vector<float>(4, 0.0f));
  z.data = {0, 0, 1, 0};  // the clamp's ends let the derivative pass
  zap_loss(mask, x, z, &gradient);
  CHECK(gradient.data == std::vector<float>{0, -0.5f, 0.5f, 0});
}

TEST_CASE("the loss's derivative is its slope", "[fast]") {
  const PositionMask mask = position_mask(6, 5, 5);
  const net::Tensor x = testing::correlated_maps(2, 5, 5, 3, 4);
  net::Tensor z(x.shape), gradient;
  for (std::int64_t i = 0; i < z.size(); ++i) z.data[i] = static_cast<float>((i * 7 % 13) / 16.0);
  zap_loss(mask, x, z, &gradient);
  constexpr float kStep = 0x1p-8f;
  for (std::int64_t i = 0; i < z.size(); i += 5) {
    if (z.data[i] == 0) continue;
    net::Tensor up = z, down = z;
    up.data[i] += kStep;
    down.data[i] -= kStep;
    // A parabola: the central difference is exact but for cancellation, 2^-52 loss / step.
    const double slope = (zap_loss(mask, x, up) - zap_loss(mask, x, down)) / (2 * kStep);
    CHECK(std::fabs(slope - gradient.data[i]) <= 1e-9);
  }
}

TEST_CASE("training beats a random predictor that skips as much", "[fast]") {
  constexpr int kMask = 5;
  const net::Tensor train = testing::correlated_maps(192, 10, 10, 4, 1);
  const net::Tensor test = testing::correlated_maps(64, 10, 10, 4, 2);
  ZapPredictor predictor("relu", {10, 10, 4}, kMask, 3);
  const std::vector<float> zero{0};
  const std::vector<double> losses =
      train_predictor(predictor, train, {.epochs = 4, .batch = 32, .seed = 5});
  REQUIRE(losses.size() == 4);
  CHECK(losses.back() < 0.8 * losses.front());
  const ZapTally tally = tally_of(predictor.mask(), test, predictor.predict(test), 0.3f);
  const double rate = static_cast<double>(tally.skipped()) / static_cast<double>(tally.predicted);
  // Skipping at random at that rate would lose rate x (share of predicted positions).
  const double random = rate * (1 - mask_share(kMask).value());
  CHECK(rate > 0.2);
  CHECK(tally.error() < random / 3);
}

TEST_CASE("a trained predictor has the same bits on one thread and on two", "[fast]") {
  const net::Tensor maps = testing::correlated_maps(40, 9, 9, 5, 1);
  const int threads = omp_get_max_threads();
  const auto trained = [&](int count, std::uint64_t seed) {
    omp_set_num_threads(count);
    ZapPredictor predictor("relu", {9, 9, 5}, 4, 3);
    train_predictor(predictor, maps, {.epochs = 2, .batch = 16, .seed = seed});
    omp_set_num_threads(threads);
    return weights_of(predictor);
  };
  const std::vector<float> one = trained(1, 5);
  CHECK(one == trained(2, 5));
  CHECK(one != trained(1, 6));
}

TEST_CASE("training without maps, or with options out of range, is refused", "[fast]") {
  ZapPredictor predictor("relu", {4, 4, 2}, 5);
  CHECK_THAT(message_of([&] { train_predictor(predictor, net::Tensor(), {}); }),
             Catch::Contains("relu.zap: expected maps to train on"));
  const net::Tensor maps(net::Shape{2, 4, 4, 2});
  CHECK_FALSE(message_of([&] { train_predictor(predictor, maps, {.batch = 0}); }).empty());
}

}  // namespace predictor_test

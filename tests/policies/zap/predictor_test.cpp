// The predictor against its formula written out, and what counts as a zero.
#include "policies/zap/predictor.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

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
    if (p->name.find("conv2") != std::string::npos) p->value.data.assign(p->value.data.size(), 0);
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

}  // namespace predictor_test

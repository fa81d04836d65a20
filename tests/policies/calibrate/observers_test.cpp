// Observers: the rule of the recipe, batches joined, scales from thresholds; their histogram.
#include "policies/calibrate/observers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/value.hpp"
#include "tests/catch.hpp"

namespace observers_test {

using namespace numemu;
using namespace numemu::policies;
using Rule = CalibrationPolicy::Rule;

namespace {

RolePolicy role(const char* format) {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.scale = "absmax";
  return policy;
}

std::vector<float> numbers(std::int64_t n) {
  RandomSource random;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double u =
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -32);
    x.push_back(static_cast<float>(u * u * u * u * (i % 2 ? 3 : -3)));
  }
  return x;
}

double observed(Rule rule, const char* format, const std::vector<float>& x, std::int64_t batch,
                double percentile = 99) {
  const auto observer = Observer::make({rule, percentile, 512}, role(format));
  const auto n = static_cast<std::int64_t>(x.size());
  for (std::int64_t i = 0; i < n; i += batch) observer->see(x.data() + i, std::min(batch, n - i));
  return observer->threshold();
}

}  // namespace

TEST_CASE("observers: batches do not matter", "[fast]") {
  const std::vector<float> x = numbers(5000);
  for (const Rule rule : {Rule::absmax, Rule::percentile, Rule::mse, Rule::kl}) {
    const double whole = observed(rule, "int8", x, 5000);
    CHECK(whole > 0);
    CHECK(whole <= 3);
    CHECK(observed(rule, "int8", x, 61) == whole);
  }
}

TEST_CASE("observers: each rule is the one that was asked for", "[fast]") {
  const std::vector<float> x = numbers(5000);
  MagnitudeHistogram h;
  h.add(x.data(), 5000);
  Conversion c;
  c.format = &find_format("int4");
  CHECK(observed(Rule::absmax, "int4", x, 100) == h.largest());
  CHECK(observed(Rule::percentile, "int4", x, 100, 90) == percentile_threshold(h, 90));
  CHECK(observed(Rule::mse, "int4", x, 100) == mse_threshold(h, c));
  CHECK(observed(Rule::kl, "int4", x, 100) == kl_threshold(h, c));
  CHECK(observed(Rule::mse, "int4", x, 100) != h.largest());
}

TEST_CASE("observers: absmax gives the scale of the rule absmax", "[fast]") {
  const std::vector<float> x = numbers(999);
  Conversion c;
  c.format = &find_format("float8_e4m3fn");
  CHECK(absmax_scale(observed(Rule::absmax, "float8_e4m3fn", x, 10), c) ==
        find_scale_rule("absmax").scale({x.data(), 999, &c}));
}

TEST_CASE("observers: nothing seen, zeros, infinities; dynamic observes nothing", "[fast]") {
  for (const Rule rule : {Rule::absmax, Rule::percentile, Rule::mse, Rule::kl}) {
    CHECK(observed(rule, "int8", {}, 1) == 0);
    CHECK(observed(rule, "int8", {0.0f, -0.0f}, 1) == 0);
    const double threshold =
        observed(rule, "int8", {std::numeric_limits<float>::infinity(), std::nanf(""), 2.0f}, 1);
    CHECK(threshold > 0);
    CHECK(threshold <= 2);
  }
  CHECK_THROWS_AS(Observer::make({Rule::dynamic, 100, 512}, role("int8")), Error);
}

namespace {

/// About normal (a sum of 12 uniform numbers), with a few far outliers.
std::vector<float> sample(std::int64_t n, double outlier) {
  RandomSource random;
  random.seed = 3;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = -6;
    for (int j = 0; j < 12; ++j)
      sum += std::ldexp(
          static_cast<double>(random.bits(static_cast<std::uint64_t>(12 * i + j), 32)), -32);
    x.push_back(static_cast<float>(i % 1000 == 999 ? outlier : sum));
  }
  return x;
}

MagnitudeHistogram histogram(const std::vector<float>& x) {
  MagnitudeHistogram h;
  h.add(x.data(), static_cast<std::int64_t>(x.size()));
  return h;
}

Conversion conversion(const char* format, const char* rounding = "rne") {
  Conversion c;
  c.format = &find_format(format);
  c.rounding = parse_rounding(rounding);
  return c;
}

/// x as the codec gives it back under a scale.
double quantized(const Conversion& c, double x, double scale) {
  const float ratio = static_cast<float>(x / scale);
  const Encoded code = encode(*c.format, value_of(ratio), c.rounding, c.overflow);
  double value = to_double(decode(*c.format, code.code));
  if (c.format->kind == Kind::integer)
    value = std::max(value, -largest_element(c));  // symmetric use
  return value * scale;
}

double squared_error(const Conversion& c, const std::vector<float>& x, double threshold) {
  const double scale = absmax_scale(threshold, c);
  double error = 0;
  for (const float v : x) error += std::pow(quantized(c, v, scale) - v, 2);
  return error;
}

}  // namespace

TEST_CASE("clip: percentiles are order statistics to within a bin", "[fast]") {
  std::vector<float> x = sample(5000, 40);
  const MagnitudeHistogram h = histogram(x);
  std::sort(x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  for (const double percentile : {10.0, 50.0, 99.0, 99.9, 99.95}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percentile * 50 - 1e-9));
    const double exact = std::fabs(x[rank - 1]);
    const double found = percentile_threshold(h, percentile);
    CHECK(found >= exact);
    CHECK(found <= exact + h.width());
  }
  CHECK(percentile_threshold(h, 100) == 40);
  CHECK(percentile_threshold(histogram({0.0f, 0.0f}), 50) == 0);
  CHECK(percentile_threshold(histogram({0.0f, 0.0f, 8.0f}), 50) > 0);  // a scale must be positive
}

TEST_CASE("clip: mse has the least error of its candidates", "[fast]") {
  const std::vector<float> x = sample(4000, 25);
  const MagnitudeHistogram h = histogram(x);
  for (const char* format : {"int4", "int8", "float4_e2m1fn", "float8_e4m3fn", "uint4"}) {
    INFO(format);
    const Conversion c = conversion(format);
    const double found = mse_threshold(h, c);
    const double error = squared_error(c, x, found);
    double least = HUGE_VAL, at = 0;
    for (int j = 0; j <= kClipSteps; ++j) {
      const double candidate = h.largest() * std::pow(2.0, -j / 16.0);
      const double own = squared_error(c, x, candidate);
      if (own < least) least = own, at = candidate;
    }
    INFO("found " << found << " brute force " << at);
    // Bins are 2^-15 of the range wide: moving elements inside them changes the sum by far less.
    constexpr double kBinning = 1e-3;
    CHECK(error <= least * (1 + kBinning));
  }
  CHECK(mse_threshold(h, conversion("int4")) < 12);  // the outliers at 25 are clipped
  CHECK(mse_threshold(histogram({0.0f}), conversion("int4")) == 0);
}

TEST_CASE("clip: mse under stochastic rounding takes the expectation", "[fast]") {
  const std::vector<float> x = sample(2000, 25);
  const Conversion c = conversion("int4", "sr(24)");
  const auto expected = [&](double threshold) {
    const double scale = absmax_scale(threshold, c), largest = 7 * scale;
    double error = 0;
    for (const float v : x) {
      const double magnitude = std::fabs(v), low = std::floor(magnitude / scale) * scale;
      error += magnitude >= largest ? std::pow(magnitude - largest, 2)
                                    : (magnitude - low) * (low + scale - magnitude);
    }
    return error;
  };
  double least = HUGE_VAL;
  for (int j = 0; j <= kClipSteps; ++j)
    least = std::min(least, expected(25 * std::pow(2.0, -j / 16.0)));
  CHECK(expected(mse_threshold(histogram(x), c)) <= least * 1.001);
}

TEST_CASE("clip: kl has the least divergence, computed again as pytorch-quantization does",
          "[fast]") {
  const std::vector<float> x = sample(20000, 12);
  const MagnitudeHistogram h = histogram(x);
  for (const char* format : {"int8", "int4", "float8_e4m3fn"}) {
    INFO(format);
    const Conversion c = conversion(format);
    const double largest = largest_element(c);
    std::vector<double> bins(2048);
    for (const float v : x)
      bins[std::min(2047, static_cast<int>(std::fabs(v) / h.largest() * 2048))] += 1;
    bins[0] = bins[1];
    const auto divergence = [&](int kept) {
      std::vector<double> p(bins.begin(), bins.begin() + kept), q(p);
      for (int i = kept; i < 2048; ++i) p.back() += bins[i];
      std::map<double, std::pair<double, int>> cells;  // by element: mass, filled bins
      const auto element = [&](int i) { return quantized(c, (i + 0.5) / kept * largest, 1); };
      for (int i = 0; i < kept; ++i) {
        cells[element(i)].first += bins[i];
        cells[element(i)].second += bins[i] > 0;
      }
      double p_total = 0, q_total = 0, sum = 0;
      for (int i = 0; i < kept; ++i) {
        q[i] = bins[i] > 0 ? cells[element(i)].first / cells[element(i)].second : 0;
        p_total += p[i];
        q_total += q[i];
      }
      for (int i = 0; i < kept; ++i)
        if (p[i] > 0) sum += p[i] / p_total * std::log(p[i] / p_total / (q[i] / q_total));
      return sum;
    };
    const double found = kl_threshold(h, c);
    const int kept = static_cast<int>(std::lround(found / h.largest() * 2048));
    CHECK(found == h.largest() * kept / 2048);
    double least = HUGE_VAL;
    for (int i = 128; i <= 2048; i += 16) least = std::min(least, divergence(i));
    // Elements move by at most half a fine bin, a 32nd of a coarse one.
    constexpr double kBinning = 0.02;
    CHECK(divergence(kept) <= least * (1 + kBinning));
  }
  CHECK(kl_threshold(h, conversion("int4")) < 6);  // the outliers at 12 are clipped
  CHECK(kl_threshold(histogram({0.0f}), conversion("int8")) == 0);
}

namespace {

/// Numbers of many magnitudes and both signs.
std::vector<float> mixed_numbers(std::int64_t n) {
  RandomSource random;
  random.seed = 7;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = static_cast<std::int32_t>(random.bits(static_cast<std::uint64_t>(i), 32));
    x.push_back(std::ldexp(static_cast<float>(word), -31 - static_cast<int>(i % 9)));
  }
  return x;
}

bool same(const MagnitudeHistogram& a, const MagnitudeHistogram& b) {
  if (a.width() != b.width() || a.count() != b.count() || a.largest() != b.largest()) return false;
  const auto p = a.points(), q = b.points();
  return std::equal(p.begin(), p.end(), q.begin(), q.end(), [](const auto& x, const auto& y) {
    return x.value == y.value && x.count == y.count;
  });
}

}  // namespace

TEST_CASE("magnitude histogram: every element is in the bin its magnitude says", "[fast]") {
  const std::vector<float> x = mixed_numbers(3000);
  MagnitudeHistogram h;
  h.add(x.data(), 3000);
  CHECK(h.count() == 3000);
  CHECK(h.largest() == std::fabs(*std::max_element(x.begin(), x.end(), [](float a, float b) {
          return std::fabs(a) < std::fabs(b);
        })));
  CHECK(h.width() * MagnitudeHistogram::kBins > h.largest());
  CHECK(h.width() * MagnitudeHistogram::kBins <= 2 * h.largest());
  for (const int bin : {0, 1, 100, 30000}) {
    const auto inside = std::count_if(x.begin(), x.end(), [&](float v) {
      return std::fabs(v) >= bin * h.width() && std::fabs(v) < (bin + 1) * h.width();
    });
    CHECK(h.magnitudes(bin) == inside);
  }
  std::int64_t total = 0;
  double before = -HUGE_VAL;
  for (const auto& point : h.points()) {
    total += point.count;
    CHECK(point.value > before);
    before = point.value;
  }
  CHECK(total == 3000);
}

TEST_CASE("magnitude histogram: order and batches do not matter", "[fast]") {
  std::vector<float> x = mixed_numbers(3000);
  MagnitudeHistogram whole, batches, ascending;
  whole.add(x.data(), 3000);
  for (int i = 0; i < 3000; i += 37) batches.add(x.data() + i, std::min(37, 3000 - i));
  std::sort(x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  for (int i = 0; i < 3000; ++i) ascending.add(x.data() + i, 1);  // grows again and again
  CHECK(same(whole, batches));
  CHECK(same(whole, ascending));
}

TEST_CASE("magnitude histogram: zeros are apart, no numbers are left out", "[fast]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, std::nanf(""), -kInfinity};
  MagnitudeHistogram h;
  h.add(x, 2);
  CHECK(h.largest() == 0);
  CHECK(h.count() == 2);
  h.add(x + 2, 5);
  CHECK(h.count() == 4);
  const auto points = h.points();
  REQUIRE(points.size() == 3);
  CHECK(points[0].value == -1);
  CHECK(points[1].value == 0);
  CHECK(points[1].count == 2);
  CHECK(points[2].value == 1);
}

TEST_CASE("magnitude histogram: the ends of float32", "[fast]") {
  const float tiny = std::numeric_limits<float>::denorm_min(),
              huge = std::numeric_limits<float>::max();
  MagnitudeHistogram h;
  h.add(&tiny, 1);
  CHECK(h.largest() == tiny);
  CHECK(h.points().size() == 1);
  h.add(&huge, 1);
  CHECK(h.largest() == huge);
  CHECK(h.magnitudes(0) == 1);
  CHECK(h.magnitudes(MagnitudeHistogram::kBins - 1) == 1);
}

}  // namespace observers_test

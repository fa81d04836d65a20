// Error moments of samples against a plain loop, the encoder and Monte Carlo.
#include <omp.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "formats/analysis/error_moments.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace sample_error_moments_test {

using namespace numemu;

namespace {

// What the project demands of the prediction from values; both sides sum in float64.
constexpr double kTolerance = 1e-9;

double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

/// Normal values by Box and Muller, some exact zeros, some on the grid of step / 2 (ties), a few
/// far out.
std::vector<float> sample(int n, double step, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& value : x) {
    const double normal =
        std::sqrt(-2 * std::log(uniform(random))) * std::cos(2 * M_PI * uniform(random));
    const double kind = uniform(random);
    value = static_cast<float>(kind < 0.05   ? 0
                               : kind < 0.15 ? std::round(4 * normal) * step / 2
                               : kind < 0.16 ? 100 * normal
                                             : normal);
  }
  return x;
}

double value_by_encoder(const Format& f, float x, double scale, const Rounding& rounding) {
  const Value quotient = exact_quotient(value_of(x), value_of(scale));
  const double v = to_double(decode(f, encode(f, quotient, rounding, Overflow::saturate).code));
  return f.kind == Kind::integer && f.is_signed ? std::max(v, -largest_value(f)) : v;
}

}  // namespace

TEST_CASE("the sample version is the plain loop over the nearest value", "[fast]") {
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "int2", "int8", "float8_e5m2"}) {
    const std::vector<double> values = finite_values(find_format(name));
    const auto list = cells(find_format(name), parse_rounding("rne"), false);
    for (const float scale : {0.3F, 0.017F}) {
      const std::vector<float> x = sample(3000, scale, 1);
      long double square = 0, signal = 0;
      for (const float v : x) {
        double best = std::numeric_limits<double>::infinity();
        for (const double value : values) best = std::min(best, std::abs(value * scale - v));
        square += best * best;
        signal += static_cast<long double>(v) * v;
      }
      const ErrorMoments m = error_moments(list, scale, x.data(), 3000);
      INFO(name << " scale " << scale);
      CHECK(m.mse == Approx(static_cast<double>(square / 3000)).epsilon(1e-13));
      CHECK(m.signal == Approx(static_cast<double>(signal / 3000)).epsilon(1e-13));
    }
  }
}

TEST_CASE(
    "the sample version is the encoder's error in every mode, ties, saturation and flushes "
    "included",
    "[fast]") {
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "int4", "float8_e5m2fnuz", "e4m3+ftz",
                           "hfp8_e4m3_nosub"}) {
    const Format& f = find_format(name);
    for (const char* mode : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      const Rounding rounding = parse_rounding(mode);
      const auto list = cells(f, rounding, true);
      for (const float scale : {0.25F, 0.0913F}) {
        const std::vector<float> x = sample(2000, scale, 2);
        long double mean = 0, square = 0;
        int saturated = 0, flushed = 0;
        for (const float v : x) {
          const double element = value_by_encoder(f, v, scale, rounding);
          const double error = element * scale - v;
          mean += error;
          square += static_cast<long double>(error) * error;
          saturated += std::abs(v) > largest_value(f) * scale;
          flushed += v != 0 && element == 0;
        }
        const ErrorMoments m = error_moments(list, scale, x.data(), 2000);
        INFO(name << " " << mode << " scale " << scale);
        CHECK(m.mse == Approx(static_cast<double>(square / 2000)).epsilon(kTolerance));
        CHECK(m.mean == Approx(static_cast<double>(mean / 2000)).margin(1e-12));
        CHECK(m.saturated == saturated / 2000.0);
        CHECK(m.flushed == flushed / 2000.0);
      }
    }
  }
}

TEST_CASE("unsigned formats count negatives as out of range", "[fast]") {
  const auto list = cells(find_format("uint2"), parse_rounding("rne"), true);
  const float x[] = {-1, -0.25F, 0, 0.25F, 0.5F, 2, 5, -0.0F};
  const ErrorMoments m = error_moments(list, 1, x, 8);
  CHECK(m.saturated == 3.0 / 8);
  CHECK(m.flushed == 2.0 / 8);
  CHECK(m.mse == (1 + 0.0625 + 0.0625 + 0.25 + 4) / 8);
}

TEST_CASE("mse_normal leaves out subnormal cells and what saturates", "[fast]") {
  const auto list = cells(find_format("float4_e2m1fn"), parse_rounding("rne"), true);
  const float x[] = {0.1F, 0.6F, 1.1F, 5.5F, 7.0F, -8.0F};
  const ErrorMoments m = error_moments(list, 1, x, 6);
  const double normal = std::pow(1 - double{x[2]}, 2) + 0.25;
  CHECK(m.mse_normal == Approx(normal / 6).epsilon(1e-15));
  CHECK(m.mse ==
        Approx((normal + std::pow(double{x[0]}, 2) + std::pow(0.5 - double{x[1]}, 2) + 1 + 4) / 6)
            .epsilon(1e-15));
}

TEST_CASE("a large sample approaches the density and has the same bits for any number of threads",
          "[fast]") {
  constexpr int kCount = 400000;
  std::mt19937_64 random(3);
  std::vector<float> x(kCount);
  for (float& v : x) {
    v = static_cast<float>(std::sqrt(-2 * std::log(uniform(random))) *
                           std::cos(2 * M_PI * uniform(random)));
  }
  const auto list = cells(find_format("float8_e4m3fn"), parse_rounding("rne"), true);
  const double scale = 0.01F;
  const ErrorMoments sampled = error_moments(list, scale, x.data(), kCount);
  const ErrorMoments exact = error_moments(list, scale, *normal_density(0, 1));
  double fourth = 0;
  for (const float v : x)
    fourth +=
        std::pow(value_by_encoder(find_format("e4m3fn"), v, scale, Rounding{}) * scale - v, 4);
  const double standard_error = std::sqrt((fourth / kCount - exact.mse * exact.mse) / kCount);
  CHECK(std::abs(sampled.mse - exact.mse) <= 4 * standard_error);
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    const ErrorMoments again = error_moments(list, scale, x.data(), kCount);
    CHECK(std::memcmp(&again, &sampled, sizeof again) == 0);
  }
  omp_set_num_threads(before);
}

TEST_CASE("stochastic: expectations against direct Monte Carlo", "[fast]") {
  constexpr int kDraws = 400;
  std::mt19937_64 random(4);
  for (const char* name : {"int4", "float4_e2m1fn", "float8_e4m3fn"}) {
    const Format& f = find_format(name);
    const std::vector<double> values = finite_values(f);
    const float scale = 0.07F;
    const std::vector<float> x = sample(500, scale, 5);
    const double lowest = f.kind == Kind::integer ? -largest_value(f) : values.front();
    double sum = 0, sum_of_squares = 0, mean = 0, flushed = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      double mse = 0;
      for (const float v : x) {
        const double y = std::clamp(v / double{scale}, lowest, values.back());
        auto next = std::upper_bound(values.begin(), values.end(), y);
        if (next == values.end()) --next;
        const double low = *std::prev(next), high = *next;
        const double element = uniform(random) * (high - low) < y - low ? high : low;
        const double error = element * scale - v;
        mse += error * error / 500;
        mean += error / 500 / kDraws;
        flushed += (v != 0 && element == 0 ? 1.0 : 0.0) / 500 / kDraws;
      }
      sum += mse;
      sum_of_squares += mse * mse;
    }
    const double average = sum / kDraws;
    const double standard_error = std::sqrt((sum_of_squares / kDraws - average * average) / kDraws);
    const ErrorMoments m = stochastic_error_moments(brackets(f, true), scale, x.data(), 500);
    INFO(name);
    CHECK(std::abs(m.mse - average) <= 4 * standard_error);
    CHECK(std::abs(m.mean - mean) <= 4 * std::sqrt(m.mse / (500.0 * kDraws)));
    CHECK(std::abs(m.flushed - flushed) <= 4 * std::sqrt(0.25 / (500.0 * kDraws)));
    CHECK(m.saturated ==
          Approx(error_moments(cells(f, Rounding{}, true), scale, x.data(), 500).saturated));
  }
}

TEST_CASE("empty samples are refused, infinities and NaN show", "[fast]") {
  const auto list = cells(find_format("int4"), parse_rounding("rne"), true);
  const float x[] = {1, std::numeric_limits<float>::infinity(),
                     std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_AS(error_moments(list, 1, x, 0), Error);
  CHECK(std::isinf(error_moments(list, 1, x, 2).mse));
  CHECK(std::isnan(error_moments(list, 1, x, 3).mse));
}

}  // namespace sample_error_moments_test

// The MSE of a sorted sample against the plain one, with one scale and with one for each number.
#include <cmath>
#include <string>
#include <vector>

#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace sample_mse_test {

using namespace numemu;

namespace {

std::vector<double> draws(const char* name, int n) {
  const Distribution d = Distribution::parse(name, false);
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(d.draw({.seed = 4, .stream = Stream::data}, i));
  return x;
}

}  // namespace

TEST_CASE("the MSE of a sorted sample is the plain one", "[fast]") {
  std::vector<double> x = draws("lognormal:2:log2", 5000);
  x.insert(x.end(), {0, 0, 0.5, 0.75, -0.75, 1e-20, 448, 464});
  const auto n = static_cast<std::int64_t>(x.size());
  const SampleMse sample(x.data(), n);
  for (const char* format : {"float8_e4m3fn", "float16", "int8", "e3m2+ftz", "float8_e8m0fnu"}) {
    for (const char* mode : {"rne", "rup", "rodd", "sr(30)", "sr(30,a)"}) {
      const OutcomeLaw law =
          outcome_law(find_format(format), parse_rounding(mode), Overflow::saturate);
      // An unsigned format refuses negative numbers: no mean that could be compared.
      if (!find_format(format).is_signed) continue;
      for (const double scale : {0.001F, 0.3F, 1.0F}) {
        INFO(format << " " << mode << " " << scale);
        CHECK(sample.at(law, scale) ==
              Approx(error_figures(law, scale, x.data(), n).square.mean).epsilon(1e-8));
      }
    }
  }
}

TEST_CASE("numbers with scales of their own: each one's error, and multiples share a sample",
          "[fast]") {
  std::vector<float> x;
  for (const double v : draws("laplace", 4000)) x.push_back(static_cast<float>(v));
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<double> scales;
  for (std::int64_t i = 0; i < n; ++i)
    scales.push_back(i % 50 == 7 ? 0 : std::exp2(i / 16 % 5 - 3) * (1 + i / 16 % 3 / 8.0));
  const SampleMse sample(x.data(), scales.data(), n);
  for (const char* format : {"int4", "float4_e2m1fn", "float8_e4m3fn"}) {
    for (const char* mode : {"rne", "rtz", "sr(30)"}) {
      const OutcomeLaw law =
          outcome_law(find_format(format), parse_rounding(mode), Overflow::saturate);
      for (const double factor : {1.0, 0.75}) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double v = double{x[i]};
          sum += scales[i] == 0 ? v * v : error_figures(law, scales[i] * factor, &v, 1).square.mean;
        }
        INFO(format << " " << mode << " " << factor);
        // 2^-52 of the signal for each of at most 2 * 256 pieces.
        const double bound = 512 * 0x1p-52 * sample.signal();
        CHECK(std::abs(sample.at(law, factor) - sum / n) <= bound + 1e-8 * sum / n);
      }
    }
  }
  double signal = 0;
  for (const float v : x) signal += double{v} * v;
  CHECK(sample.signal() == Approx(signal / n).epsilon(1e-12));
  CHECK_THROWS_AS(SampleMse(x.data(), scales.data(), 0), Error);
}

}  // namespace sample_mse_test

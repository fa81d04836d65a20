// The best scales against dense searches.
#include "formats/analysis/best_scale.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace best_scale_test {

using namespace numemu;

namespace {

std::vector<double> draws(const char* name, int n, bool folded = false) {
  const Distribution d = Distribution::parse(name, folded);
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(d.draw({.seed = 4, .stream = Stream::data}, i));
  return x;
}

}  // namespace

TEST_CASE("best scales of laws: nothing on a dense grid is better", "[fast]") {
  for (const char* format : {"int4", "float4_e2m1fn", "uint4", "float6_e3m2fn"}) {
    for (const char* dist : {"normal", "laplace", "uniform", "lognormal:1"}) {
      for (const char* mode : {"rne", "rtz"}) {
        const Format& f = find_format(format);
        const Rounding rounding = parse_rounding(mode);
        const Distribution d = Distribution::parse(dist, !f.is_signed);
        const OutcomeLaw law = outcome_law(f, rounding, Overflow::saturate);
        const BestScale best = best_scale(f, rounding, d.density());
        INFO(format << " " << dist << " " << mode << ": " << best.real.scale);
        CHECK(best.real.square <= best.power_of_two.square * (1 + 1e-9));
        CHECK(best.real.square ==
              Approx(error_figures(law, best.real.scale, d.density()).square.mean).epsilon(1e-12));
        for (int t = -14 * 50; t <= 2 * 50; ++t) {
          const double scale = std::exp2(t / 50.0);
          const double square = mean_square_error(law, scale, d.density());
          // A point of the grid may lie nearer to a minimum than float32 allows.
          REQUIRE(square >= best.real.square * (1 - 1e-8));
          if (t % 50 == 0) REQUIRE(square >= best.power_of_two.square * (1 - 1e-8));
        }
      }
    }
  }
}

TEST_CASE("best scales with closed answers", "[fast]") {
  // A uniform law on [-1, 1] under 2k + 1 levels is best served by 2k + 1 equal cells.
  const Distribution uniform = Distribution::parse("uniform", false);
  for (const char* format : {"int3", "int4", "int8"}) {
    const Format& f = find_format(format);
    const BestScale best = best_scale(f, {}, uniform.density());
    const double scale = 1 / (largest_value(f) + 0.5);
    // MSE is quadratic in the scale at the minimum: half the digits.
    CHECK(best.real.scale == Approx(scale).epsilon(1e-5));
    CHECK(best.real.square == Approx(scale * scale / 12).epsilon(1e-9));
  }
  // The optimal scale of a sign is E|x|: MSE 1 - 2 / pi for the normal law.
  const Distribution normal = Distribution::parse("normal", false);
  const BestScale sign = best_scale(find_format("sign1"), {}, normal.density());
  CHECK(sign.real.scale == Approx(std::sqrt(2 / M_PI)).epsilon(1e-5));
  CHECK(sign.real.square == Approx(1 - 2 / M_PI).epsilon(1e-9));
}

TEST_CASE("formats with many binades: of equally good octaves the one nearest to 1", "[fast]") {
  const Distribution normal = Distribution::parse("normal", false);
  const BestScale best = best_scale(find_format("e8m3"), {}, normal.density());
  CHECK(best.power_of_two.scale == 1);
  CHECK(std::abs(std::log2(best.real.scale)) <= 1);
}

TEST_CASE("best scales of samples: nothing on a dense grid is better", "[fast]") {
  for (const char* format : {"int4", "float4_e2m1fn", "float8_e4m3fn", "uint4"}) {
    for (const char* mode : {"rne", "rtz", "sr(8)"}) {
      const Format& f = find_format(format);
      const Rounding rounding = parse_rounding(mode);
      const std::vector<double> x = draws("laplace", 3000, !f.is_signed);
      const auto n = static_cast<std::int64_t>(x.size());
      const BestScale best = best_scale(f, rounding, x.data(), n);
      const OutcomeLaw law = outcome_law(f, rounding, Overflow::saturate);
      const SampleMse sample(x.data(), n);
      INFO(format << " " << mode << ": " << best.real.scale);
      CHECK(best.real.square <= best.power_of_two.square * (1 + 1e-9));
      CHECK(best.real.square == Approx(sample.at(law, best.real.scale)).epsilon(1e-12));
      // Under rtz a sample's MSE jumps wherever a number changes its cell, by its share of the sum:
      // the search narrows the best of its starts only.
      const double missed = rounding.mode == RoundingMode::rtz ? 2e-3 : 1e-5;
      for (int t = -12 * 300; t <= 2 * 300; ++t)
        REQUIRE(sample.at(law, std::exp2(t / 300.0)) >= best.real.square * (1 - missed));
      for (int k = -20; k <= 4; ++k)
        REQUIRE(sample.at(law, std::exp2(k)) >= best.power_of_two.square * (1 - 1e-9));
    }
  }
}

TEST_CASE("best scales refuse what has none", "[fast]") {
  const std::vector<double> zeros(10, 0.0);
  CHECK_THROWS_WITH(best_scale(find_format("int4"), {}, zeros.data(), 10), Catch::Contains("zero"));
  CHECK_THROWS_AS(best_scale(find_format("int4"), {}, zeros.data(), 0), Error);
  CHECK_THROWS_AS(
      best_scale(find_format("float32"), {}, Distribution::parse("normal", false).density()),
      Error);
}

}  // namespace best_scale_test

// Limits of all formats: closed forms, and what Lloyd's algorithm reaches on blocks.
#include "formats/analysis/limits.hpp"

#include <cmath>
#include <numbers>

#include "formats/analysis/distribution.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "tests/catch.hpp"

namespace numemu::limits_test {

TEST_CASE("entropies of named laws and Shannon's bound", "[fast]") {
  const double e = std::numbers::e, pi = std::numbers::pi;
  CHECK(differential_entropy(*normal_density(0, 1)) == Approx(std::log2(2 * pi * e) / 2));
  CHECK(differential_entropy(*laplace_density(0, 1)) == Approx(std::log2(2 * e)));
  CHECK(differential_entropy(*uniform_density(-1, 1)) == Approx(1));
  // ln|x| normal with sigma S, both signs: log2(2 sqrt(2 pi e) S).
  CHECK(differential_entropy(*lognormal_density(0, 1.5, 0.5)) ==
        Approx(std::log2(2 * 1.5 * std::sqrt(2 * pi * e))));
  CHECK(shannon_bound(*normal_density(0, 2), 3) == Approx(4 * std::exp2(-6)));
  CHECK(shannon_bound(*laplace_density(0, 1), 0) < 2);
}

TEST_CASE("Student's t: moments by quadrature, draws by their moments", "[fast]") {
  for (const double nu : {2.5, 3.0, 5.0, 30.0}) {
    const auto law = student_density(nu);
    INFO(law->name());
    const Density::Moments all = law->moments(-HUGE_VAL, HUGE_VAL);
    CHECK(all.p0 == Approx(1));
    CHECK(all.p2 == Approx(nu / (nu - 2)));
    // Simpson's rule on a narrow and on a wide interval.
    for (const auto& [a, b] : {std::pair{0.3, 0.35}, {-1.0, 2.0}}) {
      constexpr int kSteps = 2000;
      double sum[3] = {};
      for (int i = 0; i <= kSteps; ++i) {
        const double x = a + (b - a) * i / kSteps;
        const double w = (b - a) / kSteps / 3 * (i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2);
        for (int k = 0; k < 3; ++k) sum[k] += w * law->pdf(x) * std::pow(x, k);
      }
      const Density::Moments m = law->moments(a, b);
      CHECK(m.p0 == Approx(sum[0]).epsilon(1e-10));
      CHECK(m.p1 == Approx(sum[1]).epsilon(1e-10));
      CHECK(m.p2 == Approx(sum[2]).epsilon(1e-9));
    }
    CHECK(law->cdf(0) == 0.5);
  }
  // Cauchy's neighbour of closed form: 3 degrees of freedom at 1.
  CHECK(student_density(3)->cdf(1) ==
        Approx(0.5 + (std::atan(1 / std::sqrt(3.0)) + std::sqrt(3.0) / 4) / std::numbers::pi));
  CHECK_THROWS_WITH(student_density(2), Catch::Contains("variance of others is infinite"));

  const Distribution t = Distribution::parse("student-t:9", false);
  const RandomSource source{.seed = 3, .stream = Stream::data};
  constexpr int kDraws = 200000;
  double second = 0, below = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = t.draw(source, i);
    second += x * x / kDraws;
    below += (x < 1 ? 1.0 : 0.0) / kDraws;
  }
  // Four standard errors: the fourth moment of 9 degrees is 3 * 81 / (7 * 5), a count's 1/2.
  CHECK(second == Approx(9 / 7.0).margin(4 * std::sqrt((243 / 35.0) / kDraws)));
  CHECK(below == Approx(t.density().cdf(1)).margin(4 * 0.5 / std::sqrt(double{kDraws})));
}

TEST_CASE("No block format of as many codes is better than the block limit", "[fast]") {
  const std::vector<float> x = normal::sample({.seed = 1, .stream = Stream::data}, 1 << 16);
  const auto n = std::ssize(x);
  const auto relative = [&](const char* name, const char* rule) {
    const BlockFormat& f = find_block_format(name);
    std::vector<float> y(x.size());
    quantize_blocks({.format = &f, .rule = &find_scale_rule(rule, f)}, block_layout(f, {n}, 0),
                    x.data(), {}, y.data());
    double noise = 0, signal = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      noise += (double{y[i]} - x[i]) * (double{y[i]} - x[i]);
      signal += double{x[i]} * x[i];
    }
    return noise / signal;
  };
  const double e8m0 = block_limit(x.data(), n, 32, 16, LimitScale::e8m0);
  CHECK(e8m0 < relative("mxfp4", "mse"));
  CHECK(e8m0 < relative("mx(nf4,32)", "mse"));
  CHECK(e8m0 < relative("mx(lloyd(normal,16),32)", "mse"));
  const double e4m3 = block_limit(x.data(), n, 16, 16, LimitScale::e4m3);
  CHECK(e4m3 < relative("nvfp4", "mse"));
  CHECK(e4m3 < relative("group(nf4,16,e4m3fn,tensor-scale)", "mse"));
  CHECK(e4m3 < relative("group(lloyd(normal,16),16,e4m3fn,tensor-scale)", "mse"));
  // Numbers that levels and scales hold exactly.
  const float exact[] = {1, -1, 0.5f, -0.5f, 2, -2, 1, -1};
  CHECK(block_limit(exact, 8, 4, 4, LimitScale::e8m0) < 1e-12);
}

}  // namespace numemu::limits_test

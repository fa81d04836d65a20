// The fits of two laws on samples of them, and on tensors that have none.
#include "formats/analysis/magnitude_law.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/policies/mask/gradient_samples.hpp"

namespace magnitude_law_test {

using namespace numemu;
using namespace numemu::policies::test;

namespace {

/// Rounding of moments made of a dozen operations on numbers up to the largest of them.
constexpr double kClosed = 1e-12;

}  // namespace

TEST_CASE("thresholds under the lognormal law are its quantiles", "[fast]") {
  CHECK(threshold_below({ThresholdLaw::lognormal, 3, 2, 1}, 0.5) == Approx(3).epsilon(kClosed));
  // Phi(1) of a standard normal law.
  CHECK(threshold_below({ThresholdLaw::lognormal, 3, 2, 1}, 0.841344746068542948) ==
        Approx(3 * std::exp(2)).epsilon(kClosed));
}

TEST_CASE("fits find their law, structural zeros aside", "[fast]") {
  constexpr std::int64_t kN = 200'000;
  for (const bool zeros : {false, true}) {
    const auto thinned = [&](const std::function<double(std::uint64_t)>& draw) {
      return sample(kN, [&](std::uint64_t i) { return zeros && i % 4 == 1 ? 0 : draw(i); });
    };
    const double nonzero = zeros ? 0.75 : 1, n = kN * nonzero;
    const std::vector<float> normal =
        thinned([](std::uint64_t i) { return 3e-7 * normal_sample(i); });
    const MagnitudeLaw fitted = fit_law(ThresholdLaw::normal, normal.data(), kN);
    CHECK(fitted.nonzero == nonzero);
    // Variance of sqrt(pi/2) |Z|: pi / 2 - 1.
    CHECK(std::fabs(fitted.scale / 3e-7 - 1) < 4 * std::sqrt((M_PI / 2 - 1) / n));
    const std::vector<float> lognormal =
        thinned([](std::uint64_t i) { return 1e-5 * lognormal_sample(i, 2); });
    const MagnitudeLaw of_logs = fit_law(ThresholdLaw::lognormal, lognormal.data(), kN);
    CHECK(of_logs.nonzero == nonzero);
    CHECK(std::fabs(std::log(of_logs.scale / 1e-5)) < 4 * 2 / std::sqrt(n));
    CHECK(std::fabs(of_logs.spread - 2) < 4 * 2 / std::sqrt(2 * n));
  }
}

TEST_CASE("a fit has the same bits whatever the order of its threads, and needs finite numbers",
          "[fast]") {
  std::vector<float> x = sample(70'001, normal_sample);
  for (const ThresholdLaw law : {ThresholdLaw::normal, ThresholdLaw::lognormal}) {
    const MagnitudeLaw once = fit_law(law, x.data(), std::ssize(x));
    const MagnitudeLaw again = fit_law(law, x.data(), std::ssize(x));
    CHECK(once.scale == again.scale);
    CHECK(once.spread == again.spread);
    // A power of two scales sums of magnitudes exactly.
    std::vector<float> scaled = x;
    for (float& value : scaled) value *= 0x1p-100F;
    const double of_scaled = fit_law(law, scaled.data(), std::ssize(x)).scale * 0x1p100;
    if (law == ThresholdLaw::normal)
      CHECK(of_scaled == once.scale);
    else
      CHECK(of_scaled == Approx(once.scale).epsilon(kClosed));
    const std::vector<float> zeros(100);
    CHECK_FALSE(fit_law(law, zeros.data(), 100).usable());
    CHECK(fit_law(law, zeros.data(), 100).nonzero == 0);
    CHECK_FALSE(fit_law(law, nullptr, 0).usable());
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{40'000}}) {
        std::vector<float> damaged = x;
        damaged[at] = bad;
        const MagnitudeLaw of_damaged = fit_law(law, damaged.data(), std::ssize(x));
        CHECK_FALSE(of_damaged.usable());
        CHECK(threshold_below(of_damaged, 0.9) == 0);
      }
    }
    const std::vector<float> equal(5000, -0.25F);
    CHECK(fit_law(law, equal.data(), 5000).usable());
    CHECK(fit_law(law, equal.data(), 5000).spread == 0);
  }
}

}  // namespace magnitude_law_test

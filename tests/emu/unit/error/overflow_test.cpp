// Probabilities of leaving a register beside simulated sums.
#include <cmath>

#include "emu/unit/error/error_model.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace overflow_test {

using namespace numemu;
using namespace numemu::unit;

TEST_CASE("overflow: normal steps beside simulation", "[fast]") {
  constexpr std::int64_t kWalks = 20000, kSteps = 64;
  constexpr double kLimit = 16;
  for (const double mean : {0.0, 0.1, -0.2}) {
    const SumLaw law{.mean = mean, .variance = 1, .count = kSteps};
    const RandomSource source{.seed = 8, .stream = Stream::probe};
    double end = 0, way = 0, saturated = 0, wrapped = 0;
    for (std::int64_t w = 0; w < kWalks; ++w) {
      double sum = 0, held = 0;
      bool left = false;
      for (std::int64_t i = 0; i < kSteps; ++i) {
        const double step = mean + normal::draw(source, static_cast<std::uint64_t>(w * kSteps + i));
        sum += step;
        held = std::clamp(held + step, -kLimit, kLimit);
        left = left || std::fabs(sum) > kLimit;
      }
      end += std::fabs(sum) > kLimit;
      way += left;
      saturated += (held - sum) * (held - sum);
      const double turn = std::remainder(sum, 2 * kLimit) - sum;
      wrapped += turn * turn;
    }
    // Four standard errors of 20,000 binomial draws at the smallest share here, 0.02: 0.2 of it;
    // squares of tails have kurtosis of about 10.
    INFO("mean " << mean);
    CHECK(beyond_at_end(law, kLimit) == Approx(end / kWalks).epsilon(0.1));
    CHECK(beyond_on_way(law, kLimit) == Approx(way / kWalks).epsilon(0.1));
    CHECK(saturation_noise(law, kLimit) == Approx(saturated / kWalks).epsilon(0.2));
    CHECK(wrapping_noise(law, kLimit) == Approx(wrapped / kWalks).epsilon(0.1));
  }
}

TEST_CASE("overflow: sums without variance", "[fast]") {
  CHECK(beyond_at_end({1, 0, 10}, 9.5) == 1);
  CHECK(beyond_at_end({1, 0, 10}, 10.5) == 0);
  CHECK(beyond_on_way({-1, 0, 10}, 9.5) == 1);
}

}  // namespace overflow_test

// Mask rules stochastic and hard as the table shows them.
#include "policies/mask/rules/stochastic.hpp"

#include <cmath>
#include <vector>

#include "formats/analysis/magnitude_law.hpp"
#include "policies/mask/mask_rule.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::policies;

namespace numemu::policies {
extern const MaskRule mask_stochastic, mask_hard;
}

namespace {

std::vector<float> gradients(std::int64_t n) {
  const RandomSource random{3, Stream::vectors, 0, 0};
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    // A third zeros, the rest symmetric with heavy tails.
    const double u = 2 * random.uniform(i) - 1;
    x.push_back(i % 3 == 0 ? 0.0F : static_cast<float>(1e-4 * u * u * u / (1.001 - u * u)));
  }
  return x;
}

}  // namespace

TEST_CASE("both rules take the threshold of their law and share", "[fast]") {
  const std::vector<float> x = gradients(30'000);
  for (const MaskRule* rule : {&mask_stochastic, &mask_hard}) {
    CHECK(rule->span == MaskSpan::tensor);
    CHECK(rule->options == std::vector<std::string_view>{"law", "history", "at"});
    CHECK(rule->random == (rule == &mask_stochastic));
    CHECK(rule->unbiased == rule->random);
    for (const ThresholdLaw law : {ThresholdLaw::normal, ThresholdLaw::lognormal}) {
      MaskPolicy policy;
      policy.rule = rule;
      policy.share = 0.8;
      policy.law = law;
      rule->check(policy);
      const double threshold = rule->threshold(policy, x.data(), std::ssize(x));
      CHECK(threshold == threshold_below(fit_law(law, x.data(), std::ssize(x)), 0.8));
      CHECK(threshold > 0);

      // The measured sum of squared errors is the expectation: exactly, or within 4 standard
      // errors, (y - g)^2 being within [0, tau^2].
      std::vector<float> y(x.size());
      rule->prune(policy, {8, Stream::mask, 1, 0},
                  {x.data(), y.data(), nullptr, std::ssize(x), 0, threshold});
      double error = 0, variance = 0;
      std::int64_t changed = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double g = std::fabs(static_cast<double>(x[i])), tau = threshold_value(threshold);
        const double e = y[i] - static_cast<double>(x[i]);
        error += e * e;
        changed += y[i] != x[i];
        if (g < tau) variance += std::pow(tau * (tau - 2 * g), 2) * g / tau * (1 - g / tau);
      }
      CHECK(changed > 1000);
      const double expected = rule->error(policy, x.data(), std::ssize(x), threshold);
      const double tolerance = rule->random ? 4 * std::sqrt(variance) : 1e-12 * expected;
      CHECK(std::fabs(error - expected) <= tolerance);
    }
    MaskPolicy whole;
    whole.rule = rule;
    whole.share = 1;
    CHECK_THAT(numemu::test::message_of([&] { rule->check(whole); }),
               Catch::StartsWith(std::string(rule->name) + ": expected"));
  }
}

TEST_CASE("a share outside (0, 1) is refused", "[fast]") {
  for (const double share : {0.0, 1.0, -0.5, 1.5}) {
    MaskPolicy policy;
    policy.share = share;
    CHECK_THAT(numemu::test::message_of([&] { require_share(policy); }),
               Catch::Contains("between 0 and 1"));
  }
  MaskPolicy policy;
  policy.share = 0.9;
  CHECK_NOTHROW(require_share(policy));
}

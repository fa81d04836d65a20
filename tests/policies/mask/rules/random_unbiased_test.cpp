// Random masks scaled by M / N: mean, variance, the masks of the rule without scale.
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/rules/random.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace random_unbiased_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

TEST_CASE("what the random masks keep is scaled by M / N", "[fast]") {
  for (const unit::Sparsity pattern : {unit::Sparsity{1, 2}, {2, 4}, {3, 5}, {8, 16}}) {
    const std::int64_t groups = 3000;
    const std::vector<float> x = sample("laplace", groups * pattern.group);
    std::vector<float> y(x.size()), plain(x.size());
    random_unbiased(pattern, mask_source(2), MaskRun{x.data(), y.data(), nullptr, groups, 9});
    keep_random(pattern, mask_source(2), MaskRun{x.data(), plain.data(), nullptr, groups, 9});
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      wrong += y[i] != static_cast<float>(double{plain[i]} * pattern.group / pattern.kept) ? 1 : 0;
    CHECK(wrong == 0);
  }
}

TEST_CASE("random masks are unbiased; at 50 % the variance is the square", "[fast]") {
  constexpr std::int64_t kDraws = 100000;
  constexpr double kErrors = 4;
  for (const unit::Sparsity pattern : {unit::Sparsity{1, 2}, {2, 4}, {1, 4}}) {
    const std::vector<float> x = sample("normal", pattern.group);
    const Moments m = moments(
        [&](const RandomSource& r, const MaskRun& run) { random_unbiased(pattern, r, run); }, x,
        kDraws, mask_source(7));
    double squares = 0;
    for (int i = 0; i < pattern.group; ++i) {
      const double factor = double{x[i]} * x[i] * (pattern.group - pattern.kept) / pattern.kept;
      squares += factor;
      CHECK(std::fabs(m.mean[i] - x[i]) <= kErrors * std::sqrt(factor / kDraws));
    }
    CHECK(estimator_variance(Estimator::random, pattern, x.data()) ==
          Approx(squares).epsilon(1e-14));
    // Of 1:2 every draw errs by the same.
    CHECK(std::fabs(m.error - squares) <=
          kErrors * std::sqrt(m.error_variance / kDraws) + 1e-10 * squares);
  }
}

TEST_CASE("a group with NaN or infinities keeps NaN; zeros lose their sign; overflow", "[fast]") {
  const std::vector<float> x = {1,     NAN,   2,        3,        -0.0F,    -0.0F,
                                -0.0F, -0.0F, 0x1p127F, 0x1p127F, 0x1p127F, 0x1p127F};
  std::vector<float> y = x;
  std::vector<std::uint8_t> keep(x.size());
  random_unbiased({2, 4}, mask_source(1), MaskRun{y.data(), y.data(), keep.data(), 3, 0});
  CHECK((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 0 && y[3] == 0));
  CHECK((keep[0] == 1 && keep[1] == 1 && keep[2] == 0 && keep[3] == 0));
  for (int i = 4; i < 8; ++i) CHECK((y[i] == 0 && !std::signbit(y[i]) && keep[i] == 0));
  CHECK(std::count(y.begin() + 8, y.end(), INFINITY) == 2);
}

}  // namespace random_unbiased_test

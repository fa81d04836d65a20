// Closed forms: published figures, a search for what cancels, covariances against draws.
#include "policies/mask/mvue_variance.hpp"

#include <numeric>

#include "policies/mask/kernels/mvue.hpp"
#include "policies/mask/rules/mvue_approx.hpp"
#include "policies/mask/rules/random.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace mvue_variance_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr unit::Sparsity kOneOfTwo{1, 2}, kTwoOfFour{2, 4};
constexpr double kErrors = 4;

double variance(Estimator estimator, const std::vector<float>& x,
                unit::Sparsity pattern = kTwoOfFour) {
  return estimator_variance(estimator, pattern, x.data());
}

void check_all(const std::vector<double>& measured, const std::vector<double>& expected,
               double within) {
  REQUIRE(measured.size() == expected.size());
  for (std::size_t i = 0; i < measured.size(); ++i)
    CHECK(std::fabs(measured[i] - expected[i]) <= within);
}

}  // namespace

TEST_CASE("published variances and probabilities", "[fast]") {
  constexpr double kSixDigits = 0.5e-6, kExact = 1e-14;
  const auto pairs = [](const std::vector<float>& x) {
    return variance(Estimator::exact, {x[0], x[1]}, kOneOfTwo) +
           variance(Estimator::exact, {x[2], x[3]}, kOneOfTwo);
  };
  struct Row {
    std::vector<float> x;
    double exact, approx, two_pairs;
  };
  for (const Row& row :
       {Row{{1, 2, 3, 4}, 20, 20.473561, 28}, Row{{1, 2, 3, 5}, 21.5, 22.771571, 34},
        Row{{1, 2, 3, 10}, 22, 29.835745, 64}, Row{{1, 1, 1, 1}, 4, 4, 4},
        Row{{1, 1, 1, 3}, 6, 6.75, 8}}) {
    CHECK(variance(Estimator::exact, row.x) == Approx(row.exact).epsilon(kExact));
    CHECK(std::fabs(variance(Estimator::approx, row.x) - row.approx) <= kSixDigits);
    CHECK(pairs(row.x) == Approx(row.two_pairs).epsilon(kExact));
  }
  CHECK(variance(Estimator::exact, {0, 1, 1, 1}) == Approx(1.5).epsilon(kExact));
  for (const Estimator e : {Estimator::exact, Estimator::approx}) {
    CHECK(variance(e, {0, 0, 1, 1}) == 0);
    CHECK(variance(e, {0, 0, 0, 1}) == 0);
    CHECK(variance(e, {0, 0, 0, 0}) == 0);
  }
  const float x[4] = {1, 2, 3, 10};
  check_all(inclusion_probabilities(Estimator::exact, kTwoOfFour, x), {1. / 6, 1. / 3, .5, 1},
            kExact);
  check_all(inclusion_probabilities(Estimator::approx, kTwoOfFour, x),
            {.190018, .370513, .539286, .900183}, kSixDigits);
  const auto check_pairs = [](const std::array<double, 4>& a, const std::vector<double>& expected,
                              double within) {
    const auto p = pair_probabilities(a);
    check_all({p.begin(), p.end()}, expected, within);
  };
  check_pairs({1, 2, 3, 4}, {0, .05, .15, .15, .25, .40}, kExact);
  check_pairs({1, 2, 3, 5}, {0, 0, .181818, .090909, .272727, .454545}, kSixDigits);
  check_pairs({1, 2, 3, 10}, {0, 0, 1. / 6, 0, 1. / 3, .5}, kExact);
}

TEST_CASE("pair probabilities are probabilities with the exact marginals", "[fast]") {
  constexpr double kRounding = 1e-14;  // a few float64 operations, all of size at most 1
  const std::vector<float> x = sample("lognormal:1.5", 4 * 20000);
  double worst = 0, least = 1;
  for (std::size_t g = 0; g < x.size(); g += 4) {
    std::array<float, 4> a{};
    for (std::size_t i = 0; i < 4; ++i) a[i] = std::fabs(x[g + i]);
    std::sort(a.begin(), a.end());
    const auto p = pair_probabilities({a[0], a[1], a[2], a[3]});
    const auto pi = inclusion_probabilities(Estimator::exact, kTwoOfFour, a.data());
    least = std::min(least, *std::min_element(p.begin(), p.end()));
    worst =
        std::max({worst, std::fabs(std::accumulate(p.begin(), p.end(), 0.0) - 1),
                  std::fabs(p[0] + p[1] + p[2] - pi[0]), std::fabs(p[0] + p[3] + p[4] - pi[1]),
                  std::fabs(p[1] + p[3] + p[5] - pi[2]), std::fabs(p[2] + p[4] + p[5] - pi[3])});
  }
  CHECK(least >= 0);
  CHECK(worst <= kRounding);
}

TEST_CASE("probabilities sum to N and joint ones to N - 1 times each", "[fast]") {
  constexpr double kRounding = 1e-13;
  for (const unit::Sparsity pattern : {unit::Sparsity{2, 4}, {1, 2}, {4, 8}, {5, 16}}) {
    const std::vector<float> x = sample("lognormal:1", 300 * pattern.group);
    for (int g = 0; g < 300; ++g) {
      const float* const group = x.data() + g * pattern.group;
      for (const Estimator e : {Estimator::exact, Estimator::approx, Estimator::random}) {
        if (e == Estimator::approx && pattern.group != 4) continue;
        const auto p = inclusion_probabilities(e, pattern, group);
        CHECK(std::fabs(std::accumulate(p.begin(), p.end(), 0.0) - pattern.kept) <= kRounding);
        const auto joint = joint_probabilities(e, pattern, group);
        for (int i = 0; i < pattern.group; ++i) {
          double others = 0;
          for (int j = 0; j < pattern.group; ++j)
            others += i == j ? 0 : joint[static_cast<std::size_t>(i * pattern.group + j)];
          CHECK(std::fabs(others - (pattern.kept - 1) * p[i]) <= kRounding);
        }
      }
    }
  }
}

TEST_CASE("approx costs between once and twice the least variance, however wide the group",
          "[fast]") {
  constexpr double kRounding = 1e-12;
  RandomSource random;
  double least = 2, most = 1;
  for (std::uint64_t g = 0; g < 40000; ++g) {
    float x[4];
    for (std::uint64_t i = 0; i < 4; ++i)
      x[i] = std::exp2(
          static_cast<float>((random.uniform(4 * g + i) - 0.5) * static_cast<double>(g % 60)));
    const double ratio = estimator_variance(Estimator::approx, kTwoOfFour, x) /
                         estimator_variance(Estimator::exact, kTwoOfFour, x);
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  CHECK(least >= 1 - kRounding);
  CHECK(most < 2);
  CHECK(most > 1.99);
  for (const auto& [e, published] :
       {std::pair{1e-1F, 1.61}, {1e-2F, 1.95}, {1e-3F, 1.995}, {1e-4F, 1.9995}}) {
    const std::vector<float> x = {e, e, e, 1};
    CHECK(variance(Estimator::approx, x) / variance(Estimator::exact, x) ==
          Approx(published).epsilon(0.003));
  }
  // Two large ones hide what is drawn: 4 e to first order, though 1 + e is 1 in float64.
  const float e = 0x1p-60F;
  CHECK(variance(Estimator::exact, {1, 1, e, e}) == Approx(4 * double{e}).epsilon(1e-12));
}

TEST_CASE("the variance of dW: 1:2, exact and approximate 2:4, random, to four standard errors",
          "[fast]") {
  constexpr std::int64_t kBatch = 16, kDraws = 10000;
  const std::vector<float> g = sample("lognormal:1", kBatch, 91), x = sample("normal", kBatch, 92);
  struct Case {
    Estimator estimator;
    unit::Sparsity pattern;
    Pruner prune;
  };
  const std::vector<Case> cases = {
      {Estimator::exact, kOneOfTwo, mvue_pairs},
      {Estimator::exact, kTwoOfFour,
       [](const RandomSource& r, const MaskRun& run) { mvue_groups(kTwoOfFour, r, run); }},
      {Estimator::approx, kTwoOfFour, mvue_approx},
      {Estimator::random, kTwoOfFour,
       [](const RandomSource& r, const MaskRun& run) { random_unbiased(kTwoOfFour, r, run); }}};
  for (const Case& c : cases) {
    INFO(static_cast<int>(c.estimator) << " " << c.pattern.kept << ":" << c.pattern.group);
    const std::int64_t groups = kBatch / c.pattern.group;
    double dense = 0, mean = 0, square = 0, fourth = 0;
    for (std::int64_t i = 0; i < kBatch; ++i) dense += double{x[i]} * g[i];
    std::vector<float> y(g.size());
    for (std::int64_t d = 0; d < kDraws; ++d) {
      c.prune(mask_source(5),
              MaskRun{g.data(), y.data(), nullptr, groups, static_cast<std::uint64_t>(d * groups)});
      double dw = -dense;
      for (std::int64_t i = 0; i < kBatch; ++i) dw += double{x[i]} * y[i];
      mean += dw / kDraws;
      square += dw * dw / kDraws;
      fourth += dw * dw * dw * dw / kDraws;
    }
    const double expected = product_variance(c.estimator, c.pattern, g.data(), x.data(), groups);
    CHECK(std::fabs(mean) <= kErrors * std::sqrt(expected / kDraws));
    CHECK(std::fabs(square - expected) <= kErrors * std::sqrt((fourth - square * square) / kDraws));
  }
  const float pair[2] = {-3, 2};
  CHECK(estimator_covariance(Estimator::exact, kOneOfTwo, pair)[1] == Approx(6).epsilon(1e-14));
}

}  // namespace mvue_variance_test

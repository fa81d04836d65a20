// Closed forms: published figures, a search for what cancels.
#include "policies/mask/mvue_variance.hpp"

#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace mvue_variance_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr unit::Sparsity kOneOfTwo{1, 2}, kTwoOfFour{2, 4};

double variance(Estimator estimator, const std::vector<float>& x,
                unit::Sparsity pattern = kTwoOfFour) {
  return estimator_variance(estimator, pattern, x.data());
}

}  // namespace

TEST_CASE("published variances", "[fast]") {
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

}  // namespace mvue_variance_test

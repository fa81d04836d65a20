// Predicted noise-to-signal ratios: closed forms, published figures, samples.
#include <numbers>

#include "experiments/mvue/pruning.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "policies/mask/kept_bits.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/rules/greedy.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

using namespace numemu;
using namespace numemu::experiments::mvue;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr unit::Sparsity kOneOfTwo{1, 2}, kTwoOfFour{2, 4};
constexpr double kQuadrature = 1e-6;  // relative, as documented

Distribution law(const std::string& name) { return Distribution::parse(name, false); }
double nsr(PruneMethod method, unit::Sparsity pattern, const std::string& name) {
  return predicted_nsr(method, pattern, law(name)).value();
}

}  // namespace

TEST_CASE("1:2 has closed forms", "[fast]") {
  const double pi = std::numbers::pi;
  CHECK(nsr(PruneMethod::exact, kOneOfTwo, "normal") == Approx(2 / pi).epsilon(1e-12));
  CHECK(nsr(PruneMethod::exact, kOneOfTwo, "laplace") == Approx(0.5).epsilon(1e-12));
  CHECK(nsr(PruneMethod::greedy, kOneOfTwo, "normal") == Approx(0.5 - 1 / pi).epsilon(kQuadrature));
  CHECK(greedy_shrink(kOneOfTwo, law("normal")) == Approx(std::sqrt(0.5)).epsilon(kQuadrature));
  for (const double s : {0.5, 1.0, 2.0}) {
    const std::string name = "lognormal:" + std::to_string(s);
    CHECK(nsr(PruneMethod::exact, kOneOfTwo, name) == Approx(std::exp(-s * s)).epsilon(1e-12));
    CHECK(nsr(PruneMethod::greedy, kOneOfTwo, name) ==
          Approx(normal::cdf(-std::sqrt(2.0) * s)).epsilon(kQuadrature));
    CHECK(greedy_shrink(kOneOfTwo, law(name)) ==
          Approx(normal::cdf(s / std::sqrt(2.0))).epsilon(kQuadrature));
  }
  CHECK(nsr(PruneMethod::random, kTwoOfFour, "normal") == 1);
  CHECK(nsr(PruneMethod::random, {1, 4}, "normal") == 3);
  CHECK(nsr(PruneMethod::exact, {4, 4}, "normal") == 0);
  CHECK_FALSE(predicted_nsr(PruneMethod::exact, {4, 8}, law("normal")));
  CHECK_THROWS_AS(predicted_nsr(PruneMethod::exact, kOneOfTwo, law("uniform")), Error);
}

TEST_CASE("2:4 has the published ratios", "[fast]") {
  // Exact for Laplace: an excess over the others is memoryless, P = 1/8.
  CHECK(nsr(PruneMethod::exact, kTwoOfFour, "laplace") == Approx(0.3125).epsilon(kQuadrature));
  struct Row {
    const char* name;
    double exact, approx, greedy;  // measured with 60000 blocks
  };
  constexpr double kMeasured = 0.01;  // three digits, or 240000 numbers of a heavy tail
  for (const Row& row :
       {Row{"normal", 0.474, 0.503, 0.1326}, Row{"laplace", 0.313, 0.347, 0.0799},
        Row{"lognormal:0.5", 0.674, 0.698, 0.2034}, Row{"lognormal:1", 0.2015, 0.2325, 0.0479}}) {
    INFO(row.name);
    CHECK(nsr(PruneMethod::exact, kTwoOfFour, row.name) == Approx(row.exact).epsilon(kMeasured));
    CHECK(nsr(PruneMethod::approx, kTwoOfFour, row.name) == Approx(row.approx).epsilon(kMeasured));
    CHECK(nsr(PruneMethod::greedy, kTwoOfFour, row.name) == Approx(row.greedy).epsilon(kMeasured));
  }
}

TEST_CASE("predicted ratios are the means over samples", "[fast]") {
  constexpr std::int64_t kGroups = 100000;
  constexpr double kErrors = 4;
  for (const char* name : {"normal", "laplace", "lognormal:0.5", "lognormal:1"}) {
    INFO(name);
    const std::vector<float> x = sample(name, 4 * kGroups, 8);
    const double second = magnitude_moments(law(name)).second;
    const auto check = [&](double predicted, auto&& squares) {
      double mean = 0, square = 0;
      for (std::int64_t g = 0; g < kGroups; ++g) {
        const double v = squares(x.data() + 4 * g) / (4 * second);
        mean += v / kGroups;
        square += v * v / kGroups;
      }
      CHECK(std::fabs(mean - predicted) <= kErrors * std::sqrt((square - mean * mean) / kGroups));
    };
    for (const auto& [method, estimator] : {std::pair{PruneMethod::exact, Estimator::exact},
                                            {PruneMethod::approx, Estimator::approx}})
      check(nsr(method, kTwoOfFour, name), [e = estimator](const float* group) {
        return estimator_variance(e, kTwoOfFour, group);
      });
    check(nsr(PruneMethod::greedy, kTwoOfFour, name), [](const float* group) {
      return pruned_squares(group, 4, largest_of_group(kTwoOfFour, group));
    });
  }
}

TEST_CASE("a wide lognormal, sampled where its squares are", "[fast]") {
  // Few samples of the law itself carry its squares: all scores are drawn kShift higher, and
  // weighed.
  constexpr double kSigma = 2, kShift = 1.35, kErrors = 4;
  constexpr std::int64_t kGroups = 100000;
  const std::vector<float> scores = sample("normal", 4 * kGroups, 9);
  const Distribution wide = law("lognormal:2");
  const double second = std::exp(2 * kSigma * kSigma);
  CHECK(magnitude_moments(wide).second == Approx(second).epsilon(1e-12));
  for (const auto& [method, estimator] : {std::pair{PruneMethod::exact, Estimator::exact},
                                          {PruneMethod::approx, Estimator::approx}}) {
    double mean = 0, square = 0;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      float x[4];
      double log_weight = 0;
      for (int i = 0; i < 4; ++i) {
        const double z = scores[static_cast<std::size_t>(4 * g + i)];
        log_weight += (z * z - (z + kShift) * (z + kShift)) / 2;
        x[i] = static_cast<float>(std::exp(kSigma * (z + kShift)));
      }
      const double v = std::exp(log_weight) * estimator_variance(estimator, kTwoOfFour, x);
      mean += v / (4 * second) / kGroups;
      square += v / (4 * second) * v / (4 * second) / kGroups;
    }
    CHECK(std::fabs(mean - nsr(method, kTwoOfFour, "lognormal:2")) <=
          kErrors * std::sqrt((square - mean * mean) / kGroups));
  }
}

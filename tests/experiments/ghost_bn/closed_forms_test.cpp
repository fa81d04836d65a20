// Laws of ghost batches: vectors of the noise of statistics, and laws fitted to points on them.
#include "experiments/ghost_bn/ghost_bn.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace numemu::closed_forms_test {

using namespace numemu::experiments::ghost_bn;

TEST_CASE("ghost-bn: noise of statistics", "[fast]") {
  struct Row {
    std::int64_t n;
    double variance;
  };
  for (const Row& row : {Row{16, .3423}, Row{32, .2461}, Row{128, .1245}, Row{256, .0882}}) {
    CHECK(variance_noise(row.n) == Approx(row.variance).margin(6e-5).epsilon(0));
    CHECK(mean_noise(row.n) * std::sqrt(static_cast<double>(row.n)) == Approx(1));
  }
  // Gamma(1) / Gamma(3 / 2) = 2 / sqrt(pi) and Gamma(7) / Gamma(15 / 2).
  CHECK(mean_inverse_deviation(4) == Approx(std::sqrt(2.0) * 2 / std::sqrt(M_PI)));
  CHECK(mean_inverse_deviation(16) ==
        Approx(std::sqrt(8.0) * 720 / (135135.0 / 128 * std::sqrt(M_PI))));
  CHECK(mean_variance(16) == 15.0 / 16);
}

TEST_CASE("ghost-bn: laws of growth know their own points", "[fast]") {
  std::vector<double> x, logarithm, root;
  for (double t = 1; t <= 1024; t *= 2) {
    x.push_back(t);
    logarithm.push_back(0.5 + 3 * std::log(t));
    root.push_back(2 * std::sqrt(t));
  }
  CHECK(growth(x, logarithm).logarithm == Approx(1));
  CHECK(growth(x, logarithm).power < 0.999);
  CHECK(growth(x, root).power == Approx(1));
  CHECK(growth(x, root).exponent == Approx(0.5).margin(1e-6));
  CHECK(growth(x, root).logarithm < 0.9);
  CHECK(std::isnan(growth({1, 2}, {1, 2}).power));
  CHECK(std::isnan(growth({1, 2, 4}, {1, 1, 1}).power));
}

}  // namespace numemu::closed_forms_test

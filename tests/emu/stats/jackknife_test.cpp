// Of a mean the jackknife's error is the classic one; of other statistics that of theory.
#include "emu/stats/jackknife.hpp"

#include <cmath>
#include <vector>

#include "emu/stats/mean.hpp"
#include "tests/catch.hpp"

namespace jackknife_test {

using namespace numemu::stats;

TEST_CASE("jackknife: of a mean it is the standard error", "[fast]") {
  const std::vector<double> x = {1, 4, 4, 9, 16, -3, 2.5};
  double sum = 0;
  for (const double v : x) sum += v;
  const auto n = static_cast<double>(x.size());
  const double error = jackknife_error(std::ssize(x), [&](std::int64_t i) {
    return (sum - x[static_cast<std::size_t>(i)]) / (n - 1);
  });
  CHECK(error == Approx(mean_of(x).error));
  // exp(mean): the delta method.
  const double mean = sum / n / 100;
  const double of_exp = jackknife_error(std::ssize(x), [&](std::int64_t i) {
    return std::exp((sum - x[static_cast<std::size_t>(i)]) / (n - 1) / 100);
  });
  CHECK(of_exp == Approx(std::exp(mean) * mean_of(x).error / 100).epsilon(0.01));
}

TEST_CASE("jackknife: one group has no error", "[fast]") {
  CHECK(std::isnan(jackknife_error(1, [](std::int64_t) { return 1.0; })));
  CHECK(jackknife_error(2, [](std::int64_t) { return 1.0; }) == 0);
}

}  // namespace jackknife_test

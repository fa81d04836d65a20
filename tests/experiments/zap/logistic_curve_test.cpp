// Logistic fits: exact curves come back, and the fit is a minimum.
#include <cmath>
#include <vector>

#include "experiments/zap/thresholds.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;

namespace {

std::vector<double> grid() {
  std::vector<double> x;
  for (int i = -10; i <= 10; ++i) x.push_back(i / 10.0);
  return x;
}

double squares(const LogisticCurve& curve, const std::vector<double>& x,
               const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(y[i] - curve.at(x[i]), 2);
  return sum;
}

}  // namespace

TEST_CASE("the value is the formula", "[fast]") {
  const LogisticCurve curve{0.6, 5, 1, 0.1};
  for (const double x : grid())
    CHECK(curve.at(x) == Approx(0.1 + 0.6 / (1 + std::exp(-5 * x + 1))).epsilon(1e-14));
}

TEST_CASE("points on a curve give it back", "[fast]") {
  const std::vector<double> x = grid();
  for (const double b : {2.0, 5.0, 12.0, 30.0})
    for (const double middle : {-0.5, 0.0, 0.3}) {
      const LogisticCurve truth{0.4, b, b * middle, 0.05};
      std::vector<double> y;
      for (const double at : x) y.push_back(truth.at(at));
      const LogisticCurve found = fit_logistic(x, y);
      CHECK(found.rms < 1e-6);
      for (const double at : {-1.0, -0.33, 0.0, 0.07, 0.9})
        CHECK(std::fabs(found.at(at) - truth.at(at)) < 1e-5);
    }
}

TEST_CASE("no neighbour of the fit is better", "[fast]") {
  const std::vector<double> x = grid();
  const RandomSource random{4, Stream::vectors, 5, 0};
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(LogisticCurve{0.5, 6, 0.5, 0}.at(x[i]) + 0.02 * random.uniform(i));
  const LogisticCurve fit = fit_logistic(x, y);
  const double least = squares(fit, x, y);
  CHECK(fit.rms == Approx(std::sqrt(least / 21)));
  CHECK(fit.rms < 0.02);
  for (const double step : {1e-3, -1e-3})
    for (int p = 0; p < 4; ++p) {
      LogisticCurve near = fit;
      (p == 0 ? near.a : p == 1 ? near.b : p == 2 ? near.c : near.d) += step;
      CHECK(squares(near, x, y) > least);
    }
}

TEST_CASE("flat points and a single step have fits", "[fast]") {
  const std::vector<double> x = grid();
  const LogisticCurve flat = fit_logistic(x, std::vector<double>(x.size(), 0.25));
  CHECK(flat.at(-1) == 0.25);
  CHECK(flat.at(1) == 0.25);
  CHECK(flat.rms == 0);
  std::vector<double> y(x.size(), 0);
  for (std::size_t i = 12; i < y.size(); ++i) y[i] = 1;
  const LogisticCurve step = fit_logistic(x, y);
  CHECK(step.rms < 0.01);
  CHECK(step.b > 0);
}

TEST_CASE("points that no curve can be fitted to are refused", "[fast]") {
  const std::vector<double> three{0, 1, 2}, four{0, 1, 2, NAN}, good{0, 1, 2, 3};
  CHECK_THAT(message_of([&] { fit_logistic(three, three); }), Catch::Contains("at least 4 points"));
  CHECK_THAT(message_of([&] { fit_logistic(good, three); }), Catch::Contains("one value each"));
  CHECK_THAT(message_of([&] { fit_logistic(good, four); }), Catch::Contains("finite"));
}

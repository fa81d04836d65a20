// Thresholds and what they do under two laws: the table of the specification, quadrature, samples,
// laws that do not hold; zeros shared between layers.
#include "experiments/stochastic_pruning/pruning_effect.hpp"

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "policies/mask/rules/stochastic.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/mask/gradient_samples.hpp"

namespace pruning_effect_test {

using namespace numemu;
using namespace numemu::experiments::stochastic_pruning;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// The table is printed with six digits.
constexpr double kPrinted = 1e-6;
/// Rounding of moments made of a dozen operations on numbers up to the largest of them.
constexpr double kClosed = 1e-12;

MagnitudeLaw normal_law(double nonzero = 1) { return {ThresholdLaw::normal, 1, 0, nonzero}; }
MagnitudeLaw lognormal_law(double s, double nonzero = 1) {
  return {ThresholdLaw::lognormal, 1, s, nonzero};
}

double integral(const std::function<double(double)>& f, double low, double high) {
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(f, low, high, 12, 1e-13);
}

/// What stochastic pruning did to a sample.
struct Measured {
  double below = 0, zeros = 0, error = 0, cosine = 0;
};

Measured measure(Pruning pruning, const std::vector<float>& x, double threshold) {
  std::vector<float> y(x.size());
  const MaskRun run{x.data(), y.data(), nullptr, std::ssize(x), 0, threshold};
  if (pruning == Pruning::hard)
    prune_hard(run);
  else
    prune_stochastic({1, Stream::mask, 0, 0}, run);
  Measured m;
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double g = x[i], p = y[i];
    m.below += std::fabs(g) < threshold;
    m.zeros += p == 0;
    m.error += (p - g) * (p - g);
    xx += g * g;
    yy += p * p;
    xy += g * p;
  }
  const auto n = static_cast<double>(x.size());
  return {m.below / n, m.zeros / n, m.error / xx, xy / std::sqrt(xx * yy)};
}

}  // namespace

TEST_CASE("the table of the specification under the normal law", "[fast]") {
  const struct {
    double p, tau, zeros, density, error, cosine, cosine_tolerance;
  } kRows[] = {{0.5, 0.674490, 0.259327, 0.740673, 0.038165, 0.98145, 1e-5},
               {0.7, 1.036433, 0.380088, 0.619912, 0.126954, 0.94199, 1e-5},
               {0.8, 1.281552, 0.451292, 0.548708, 0.222530, 0.90442, 1e-5},
               {0.9, 1.644854, 0.540325, 0.459675, 0.412403, 0.84144, 1e-5},
               {0.95, 1.959964, 0.602547, 0.397453, 0.613825, 0.78718, 1e-5},
               {0.99, 2.575829, 0.691469, 0.308531, 1.065214, 0.69585, 1e-5}};
  for (const auto& row : kRows) {
    CAPTURE(row.p);
    const double tau = threshold_below(normal_law(), row.p);
    CHECK(std::fabs(tau - row.tau) < kPrinted);
    const PruningEffect stochastic = effect(Pruning::stochastic, normal_law(), tau);
    CHECK(stochastic.below == Approx(row.p).epsilon(kClosed));
    CHECK(std::fabs(stochastic.zeros - row.zeros) < kPrinted);
    CHECK(std::fabs(stochastic.density - row.density) < kPrinted);
    CHECK(std::fabs(stochastic.error - row.error) < kPrinted);
    CHECK(std::fabs(stochastic.cosine - row.cosine) < row.cosine_tolerance);
    CHECK(effect(Pruning::hard, normal_law(), tau).zeros == Approx(row.p).epsilon(kClosed));
  }
}

TEST_CASE("zeros under the lognormal law as in the specification", "[fast]") {
  const struct {
    double s, a, zeros;
  } kRows[] = {{1, 1, .238421708134877},
               {1, 2, .443064925417882},
               {2, 2, .454061342145915},
               {3, 10, .663467232646045}};
  for (const auto& row : kRows) {
    const PruningEffect at = effect(Pruning::stochastic, lognormal_law(row.s), row.a);
    CHECK(at.zeros == Approx(row.zeros).epsilon(kClosed));
  }
}

namespace {

/// The threshold that leaves this share of all elements zero.
double threshold_of_zeros(Pruning pruning, const MagnitudeLaw& law, double zeros) {
  double low = 1e-12 * law.scale, high = 1e12 * law.scale;
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(low * high);
    (effect(pruning, law, middle).zeros > zeros ? high : low) = middle;
  }
  return low;
}

}  // namespace

TEST_CASE("thresholds and cosines under the lognormal law as in the specification", "[fast]") {
  const struct {
    double s, zeros, a, digits;
  } kThresholds[] = {{1, .5, 2.400791, 6e-7}, {1, .8, 7.822265, 6e-7},  {1, .9, 16.31156, 6e-6},
                     {2, .5, 2.574706, 6e-7}, {2, .8, 16.988872, 6e-7}, {2, .9, 47.657116, 6e-7},
                     {3, .5, 2.639856, 6e-7}, {3, .8, 38.060466, 6e-7}, {3, .9, 157.104692, 6e-7}};
  for (const auto& row : kThresholds) {
    CAPTURE(row.s, row.zeros);
    const double a = threshold_of_zeros(Pruning::stochastic, lognormal_law(row.s), row.zeros);
    CHECK(std::fabs(a - row.a) <= row.digits);
  }
  const auto cosine = [](double s, double a) {
    return effect(Pruning::stochastic, lognormal_law(s), a).cosine;
  };
  CHECK(cosine(1, 1) == Approx(.993734068616805).epsilon(kClosed));
  CHECK(cosine(1, 2) == Approx(.965062839570247).epsilon(kClosed));
  const struct {
    double s, zeros, cosine;
  } kCosines[] = {
      {1, .8, .712628}, {2, .8, .996572}, {3, .8, .999999}, {1, .9, .518427}, {2, .9, .982215}};
  for (const auto& row : kCosines) {
    CAPTURE(row.s, row.zeros);
    const double a = threshold_of_zeros(Pruning::stochastic, lognormal_law(row.s), row.zeros);
    CHECK(std::fabs(cosine(row.s, a) - row.cosine) <= 6e-7);
  }
}

TEST_CASE("closed forms are the integrals they stand for", "[fast]") {
  const auto compare =
      [](const MagnitudeLaw& law, double tau, const std::function<double(double)>& magnitude,
         const std::function<double(double)>& density, double low, double middle, double high) {
        CAPTURE(tau, law.spread);
        const auto moment = [&](int power, double from, double to) {
          return integral([&](double z) { return std::pow(magnitude(z), power) * density(z); },
                          from, to);
        };
        const double below = moment(0, low, middle), first = moment(1, low, middle),
                     second = moment(2, low, middle), squares = second + moment(2, middle, high);
        const PruningEffect stochastic = effect(Pruning::stochastic, law, tau),
                            hard = effect(Pruning::hard, law, tau);
        constexpr double kQuadrature = 1e-9;
        CHECK(stochastic.below == Approx(below).epsilon(kQuadrature));
        CHECK(stochastic.zeros == Approx(below - first / tau).epsilon(kQuadrature));
        CHECK(stochastic.error == Approx((tau * first - second) / squares).epsilon(kQuadrature));
        CHECK(stochastic.cosine ==
              Approx(std::sqrt(squares / (tau * first + squares - second))).epsilon(kQuadrature));
        CHECK(hard.zeros == Approx(below).epsilon(kQuadrature));
        CHECK(hard.error == Approx(second / squares).epsilon(kQuadrature));
        CHECK(hard.cosine == Approx(std::sqrt(1 - second / squares)).epsilon(kQuadrature));
        CHECK(second_moment(law) == Approx(squares).epsilon(kQuadrature));
      };
  for (const double tau : {0.01, 0.3, 1.0, 2.4, 2.6, 5.0}) {
    compare(
        normal_law(), tau, [](double z) { return z; }, [](double z) { return 2 * normal::pdf(z); },
        0, tau, std::max(tau, 12.0));
    for (const double s : {0.5, 1.0, 2.0}) {
      const double middle = std::log(tau) / s;
      compare(
          lognormal_law(s), tau, [s](double z) { return std::exp(s * z); },
          [](double z) { return normal::pdf(z); }, std::min(-12.0, middle - 3), middle, 12 + 2 * s);
    }
  }
}

TEST_CASE("small thresholds lose no digits", "[fast]") {
  // To second order in t: zeros t / sqrt(2 pi), error t^3 / (3 sqrt(2 pi)).
  for (const double t : {1e-3, 1e-5, 1e-8}) {
    const PruningEffect at = effect(Pruning::stochastic, normal_law(), t);
    const double zeros = t * 0.3989422804014327, error = zeros * t * t / 3;
    CHECK(at.zeros == Approx(zeros).epsilon(t * t + 1e-13));
    CHECK(at.error == Approx(error).epsilon(t * t + 1e-13));
  }
}

TEST_CASE("samples behave as their law says", "[fast]") {
  constexpr std::int64_t kN = 400'000;
  const auto check = [&](const std::vector<float>& x, const MagnitudeLaw& law, double p,
                         double fourth_of_squares) {
    const double tau = threshold_below(law, p);
    CAPTURE(p, tau, law.spread);
    const PruningEffect expected = effect(Pruning::stochastic, law, tau);
    const Measured m = measure(Pruning::stochastic, x, tau);
    CHECK(std::fabs(m.below - p) < four_errors(p, kN));
    CHECK(std::fabs(m.zeros - expected.zeros) < four_errors(expected.zeros, kN));
    // Squared errors lie in [0, tau^2] with the mean e = error * E[g^2]: their variance is at most
    // tau^2 e. Sum of squares: `fourth_of_squares` = E[g^4] / E[g^2]^2 - 1.
    const double squares = second_moment(law), e = expected.error * squares;
    const double relative = 4 * (std::sqrt(tau * tau / e / kN) + std::sqrt(fourth_of_squares / kN));
    CHECK(std::fabs(m.error / expected.error - 1) < relative);
    // cosine = (1 + error)^(-1/2).
    CHECK(std::fabs(m.cosine - expected.cosine) < relative * expected.error);
    const Measured hard = measure(Pruning::hard, x, tau);
    const PruningEffect expected_hard = effect(Pruning::hard, law, tau);
    CHECK(std::fabs(hard.zeros - p) < four_errors(p, kN));
    CHECK(std::fabs(hard.error - expected_hard.error) < relative * expected_hard.error);
    CHECK(std::fabs(hard.cosine - expected_hard.cosine) < relative);
  };
  const std::vector<float> normal = sample(kN, normal_sample);
  for (const double p : {0.5, 0.7, 0.9, 0.99}) check(normal, normal_law(), p, 2);
  for (const double s : {0.5, 1.0}) {
    const std::vector<float> x =
        sample(kN, [s](std::uint64_t i) { return lognormal_sample(i, s); });
    for (const double p : {0.5, 0.7, 0.9, 0.99})
      check(x, lognormal_law(s), p, std::exp(4 * s * s) - 1);
  }
}

TEST_CASE("effects of a fitted law, structural zeros aside", "[fast]") {
  constexpr std::int64_t kN = 200'000;
  for (const bool zeros : {false, true}) {
    const double nonzero = zeros ? 0.75 : 1;
    const std::vector<float> normal = sample(
        kN, [&](std::uint64_t i) { return zeros && i % 4 == 1 ? 0 : 3e-7 * normal_sample(i); });
    const MagnitudeLaw fitted = fit_law(ThresholdLaw::normal, normal.data(), kN);
    // The share of all elements: the structural zeros and p' of the rest.
    const double p = zeros ? (0.8 - 0.25) / 0.75 : 0.8;
    const Measured m = measure(Pruning::hard, normal, threshold_below(fitted, p));
    CHECK(std::fabs(m.zeros - 0.8) < four_errors(0.8, kN));
    const PruningEffect expected =
        effect(Pruning::stochastic, fitted, threshold_below(fitted, 0.9));
    const Measured by_chance = measure(Pruning::stochastic, normal, threshold_below(fitted, 0.9));
    CHECK(expected.zeros == Approx(1 - nonzero +
                                   nonzero * effect(Pruning::stochastic, normal_law(),
                                                    threshold_below(normal_law(), 0.9))
                                                 .zeros));
    CHECK(std::fabs(by_chance.zeros - expected.zeros) < four_errors(expected.zeros, kN));
  }
  // A law that is not usable changes nothing.
  CHECK(effect(Pruning::stochastic, {ThresholdLaw::normal, 0, 0, 1}, 1).cosine == 1);
}

TEST_CASE("what a normal threshold does to other laws", "[fast]") {
  // With the mean magnitude over everything, as the specification's vectors have it.
  constexpr std::int64_t kN = 1'000'000;
  const struct {
    double p;
    double laplace_below, laplace_zeros, lognormal_below, lognormal_zeros, half_below, half_zeros;
  } kRows[] = {{0.7, 0.7271, 0.4402, 0.8703, 0.722, 0.6979, 0.6012},
               {0.9, 0.8727, 0.577, 0.9134, 0.7862, 0.7945, 0.6553}};
  const std::vector<float> laplace = sample(kN, laplace_sample),
                           lognormal =
                               sample(kN, [](std::uint64_t i) { return lognormal_sample(i, 2); }),
                           half = sample(kN, [](std::uint64_t i) {
                             return i % 2 == 0 ? normal_sample(i) : 0;
                           });
  // They come from samples, at most 4e6: four standard errors of a share.
  constexpr double kSampled = 1e-3;
  for (const auto& row : kRows) {
    const double t = threshold_below(normal_law(), row.p) * std::sqrt(M_PI / 2);  // of mean 1
    // Laplace of mean magnitude 1: F = 1 - e^-t, E[|g|; < t] = 1 - (1 + t) e^-t.
    CHECK(std::fabs(-std::expm1(-t) - row.laplace_below) < kSampled);
    const double laplace_zeros = -std::expm1(-t) - (1 - (1 + t) * std::exp(-t)) / t;
    CHECK(std::fabs(laplace_zeros - row.laplace_zeros) < kSampled);
    const double mean = std::exp(2.0);  // of the lognormal law with s = 2
    const PruningEffect of_lognormal = effect(Pruning::stochastic, lognormal_law(2), t * mean);
    CHECK(std::fabs(of_lognormal.below - row.lognormal_below) < kSampled);
    CHECK(std::fabs(of_lognormal.zeros - row.lognormal_zeros) < kSampled);
    // Half zeros halve the mean.
    const double half_tau = threshold_below(normal_law(), row.p) / 2;
    const PruningEffect of_half = effect(Pruning::stochastic, normal_law(0.5), half_tau);
    CHECK(std::fabs(0.5 + 0.5 * of_half.below - row.half_below) < kSampled);
    CHECK(std::fabs(of_half.zeros - row.half_zeros) < kSampled);

    const auto measured = [&](const std::vector<float>& x, double tau, double below, double zeros) {
      const Measured m = measure(Pruning::stochastic, x, tau);
      CHECK(std::fabs(m.below - below) < four_errors(below, kN));
      CHECK(std::fabs(m.zeros - zeros) < four_errors(zeros, kN));
    };
    measured(laplace, t, -std::expm1(-t), laplace_zeros);
    measured(lognormal, t * mean, of_lognormal.below, of_lognormal.zeros);
    measured(half, half_tau, 0.5 + 0.5 * of_half.below, of_half.zeros);
    // The fit leaves structural zeros out, so that p means what it says.
    const MagnitudeLaw fitted = fit_law(ThresholdLaw::normal, half.data(), kN);
    const Measured right = measure(Pruning::hard, half, threshold_below(fitted, row.p));
    CHECK(std::fabs(right.zeros - (0.5 + 0.5 * row.p)) < four_errors(0.5 * row.p, kN));
  }
}

TEST_CASE("thresholds for a cosine", "[fast]") {
  for (const MagnitudeLaw& law : {MagnitudeLaw{ThresholdLaw::normal, 3e-6, 0, 1},
                                  MagnitudeLaw{ThresholdLaw::normal, 2, 0, 0.6},
                                  MagnitudeLaw{ThresholdLaw::lognormal, 1e-9, 1, 1},
                                  MagnitudeLaw{ThresholdLaw::lognormal, 1, 5, 0.6}}) {
    for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
      for (const double target : {0.5, 0.9, 0.99}) {
        const double by_cosine = threshold_for_cosine(pruning, law, target);
        CHECK(effect(pruning, law, by_cosine).cosine == Approx(target).epsilon(1e-9));
        CHECK(effect(pruning, law, by_cosine).cosine >= target - kClosed);
      }
    }
  }
}

TEST_CASE("second moments without the largest elements", "[fast]") {
  constexpr std::int64_t kN = 100'000;
  const std::vector<float> x = sample(kN, [](std::uint64_t i) { return lognormal_sample(i, 2); });
  const MagnitudeLaw fitted = fit_law(ThresholdLaw::lognormal, x.data(), kN),
                     cut = with_cut(fitted, x.data(), kN);
  CHECK(std::isinf(fitted.cut));
  // The normal law leaves 1/300 above 2.713; a quantile's standard error is sqrt(p q / n) / pdf.
  const double p = 1.0 / 300, z = -normal::quantile(p);
  CHECK(std::fabs(cut.cut - z) < 4 * std::sqrt(p * (1 - p) / kN) / normal::pdf(z) + 4 * 2e-3);
  CHECK(cut.scale == fitted.scale);
  for (const double tau : {0.5, 3.0, 20.0}) {
    const MagnitudeLaw law{ThresholdLaw::lognormal, 1, 2, 1, 2.5};
    const double end = 2 * 2.5;
    const auto moment = [](int power, double to) {
      return integral([=](double z_) { return std::exp(power * 2 * z_) * normal::pdf(z_); }, -12,
                      to / 2);
    };
    const double first = moment(1, std::log(tau)), second = moment(2, std::log(tau)),
                 squares = moment(2, end);
    constexpr double kQuadrature = 1e-9;
    const PruningEffect stochastic = effect(Pruning::stochastic, law, tau);
    CHECK(second_moment(law) == Approx(squares).epsilon(kQuadrature));
    CHECK(stochastic.error == Approx((tau * first - second) / squares).epsilon(kQuadrature));
    CHECK(effect(Pruning::hard, law, tau).error == Approx(second / squares).epsilon(kQuadrature));
    CHECK(stochastic.zeros == effect(Pruning::stochastic, lognormal_law(2), tau).zeros);
  }
  CHECK(std::isinf(with_cut(normal_law(), x.data(), kN).cut));
  CHECK(std::isinf(with_cut({}, x.data(), 0).cut));
}

// Zeros shared between layers: equal cosines, and the optimum.

namespace {

const std::vector<LayerMagnitudes> kLayers = {{{ThresholdLaw::normal, 1, 0, 1}, 1000},
                                              {{ThresholdLaw::lognormal, 0.1, 2, 0.8}, 4000},
                                              {{ThresholdLaw::lognormal, 3, 1, 0.5}, 500}};

/// Bisection ends at the last bit of its parameter.
constexpr double kExact = 1e-9;

std::vector<LayerMagnitudes> relative(std::vector<LayerMagnitudes> layers) {
  for (LayerMagnitudes& layer : layers) layer.weight = 1 / second_moment(layer.law);
  return layers;
}

}  // namespace

TEST_CASE("totals are sums over layers", "[fast]") {
  const std::vector<double> thresholds = {1, 0.2, 0};
  const TotalEffect total = total_effect(Pruning::stochastic, kLayers, thresholds);
  double zeros = 0, error = 0, squares = 0;
  for (std::size_t l = 0; l < 3; ++l) {
    const PruningEffect e = effect(Pruning::stochastic, kLayers[l].law, thresholds[l]);
    zeros += kLayers[l].elements * e.zeros;
    const double power = kLayers[l].elements * second_moment(kLayers[l].law);
    error += e.error * power;
    squares += power;
  }
  CHECK(total.zeros == Approx(zeros / 5500));
  CHECK(total.error == Approx(error / squares));
  CHECK(effect(Pruning::stochastic, kLayers[2].law, 0).zeros == 0.5);
  CHECK_THAT(numemu::test::message_of(
                 [] { total_effect(Pruning::hard, kLayers, std::vector<double>{1}); }),
             Catch::Contains("one threshold per layer"));
}

TEST_CASE("the same cosine everywhere", "[fast]") {
  for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
    for (const double zeros : {0.4, 0.7, 0.9}) {
      const std::vector<double> thresholds = thresholds_of_equal_cosine(pruning, kLayers, zeros);
      CHECK(total_effect(pruning, kLayers, thresholds).zeros == Approx(zeros).epsilon(kExact));
      const double cosine = effect(pruning, kLayers[0].law, thresholds[0]).cosine;
      for (std::size_t l = 1; l < 3; ++l)
        CHECK(effect(pruning, kLayers[l].law, thresholds[l]).cosine == Approx(cosine));
      CHECK(thresholds_at_cosine(pruning, kLayers, cosine)[1] == Approx(thresholds[1]));
    }
  }
}

TEST_CASE("nothing beats the optimum at equal zeros", "[fast]") {
  for (const bool of_each : {false, true}) {
    const std::vector<LayerMagnitudes> layers = of_each ? relative(kLayers) : kLayers;
    for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
      for (const double zeros : {0.4, 0.7, 0.9}) {
        const std::vector<double> best = thresholds_of_least_error(pruning, layers, zeros);
        const TotalEffect least = total_effect(pruning, layers, best);
        CHECK(least.zeros == Approx(zeros).epsilon(kExact));
        if (!of_each) CHECK(best[0] == best[2]);
        const auto costs_more = [&](const std::vector<double>& other) {
          CHECK(total_effect(pruning, layers, other).error >= least.error * (1 - kExact));
        };
        costs_more(thresholds_of_equal_cosine(pruning, layers, zeros));
        std::vector<double> equal_zeros;
        for (const LayerMagnitudes& layer : layers)
          equal_zeros.push_back(threshold_of_zeros(pruning, layer.law, zeros));
        costs_more(equal_zeros);
        // One layer moved, another one makes up for it.
        for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
          for (std::size_t moved = 0; moved < 3; ++moved) {
            const std::size_t other = (moved + 1) % 3;
            std::vector<double> thresholds = best;
            thresholds[moved] *= factor;
            double low = 1e-12, high = 1e12;
            for (int i = 0; i < 200; ++i) {
              thresholds[other] = std::sqrt(low * high);
              const bool over = total_effect(pruning, layers, thresholds).zeros > zeros;
              (over ? high : low) = thresholds[other];
            }
            if (std::fabs(total_effect(pruning, layers, thresholds).zeros - zeros) > 1e-9) continue;
            CHECK(total_effect(pruning, layers, thresholds).error > least.error);
          }
        }
      }
    }
  }
  std::vector<LayerMagnitudes> unweighted = kLayers;
  unweighted[1].weight = 0;
  CHECK_THAT(
      numemu::test::message_of([&] { thresholds_of_least_error(Pruning::hard, unweighted, 0.5); }),
      Catch::Contains("weights above 0"));
}

}  // namespace pruning_effect_test

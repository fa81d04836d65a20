// Error figures under densities against quadrature over the codec's own step function.
#include "formats/analysis/error_figures.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/math/distributions/laplace.hpp>
#include <boost/math/distributions/lognormal.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/codec.hpp"
#include "formats/conversion.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace error_figures_test {

using namespace numemu;

namespace {

using Pdf = std::function<double(double)>;

// Both sides claim 1e-13; a few hundred terms and the quadrature's own ends cost two digits.
constexpr double kTolerance = 1e-11;
// What knots() may leave out of a mass.
constexpr double kLeftOut = 1e-17;
// Fourth moments only size standard errors: knots() reach as far as second moments require, which
// leaves 2e-8 of the fourth of a lognormal with sigma 2.
constexpr double kVarianceTolerance = 1e-7;

/// The value of a positive or negative x under deterministic rounding, by the codec.
Encoded encoded(const Format& f, const Rounding& r, Overflow o, double x) {
  return encode_element({.format = &f, .rounding = r, .overflow = o}, value_of(x), 0);
}

/// Where the codec's code or flags change between a and b, by bisection; both of one sign.
void breakpoints(const std::function<std::uint64_t(double)>& key, double a, double b,
                 std::vector<double>* out) {
  if (key(a) == key(b)) return;
  while (true) {
    const double middle = std::midpoint(a, b);
    if (middle <= a || middle >= b) break;
    if (key(middle) == key(a)) {
      a = middle;
    } else if (key(middle) == key(b)) {
      b = middle;
    } else {
      breakpoints(key, a, middle, out);
      a = middle;
    }
  }
  out->push_back(b);
}

using Parts = std::array<double, 11>;

/// Integrals of the parts of f from a to b: a Gauss-Kronrod rule of 31 points, halved while one of
/// them differs by more than 1e-14 of the integral of its magnitude from Gauss's rule inside it.
Parts integrals(const std::function<Parts(double)>& f, double a, double b, int levels = 6) {
  using Kronrod = boost::math::quadrature::gauss_kronrod<double, 31>;
  using Gauss = boost::math::quadrature::gauss<double, 15>;
  const double middle = std::midpoint(a, b), half = (b - a) / 2;
  Parts fine{}, coarse{}, magnitude{};
  for (std::size_t i = 0; i < Kronrod::abscissa().size(); ++i) {
    const double weight = half * Kronrod::weights()[i];
    const double inner = i % 2 == 0 ? half * Gauss::weights()[i / 2] : 0;  // 0 between its points
    for (const double sign : {1.0, -1.0}) {
      if (i == 0 && sign < 0) continue;  // the middle
      const Parts at = f(middle + sign * half * Kronrod::abscissa()[i]);
      for (std::size_t k = 0; k < at.size(); ++k) {
        fine[k] += weight * at[k];
        coarse[k] += inner * at[k];
        magnitude[k] += weight * std::abs(at[k]);
      }
    }
  }
  bool done = levels == 0;
  if (!done) {
    done = true;
    for (std::size_t k = 0; k < fine.size(); ++k)
      done = done && std::abs(fine[k] - coarse[k]) <= 1e-14 * magnitude[k];
  }
  if (done) return fine;
  Parts sum = integrals(f, a, middle, levels - 1);
  const Parts right = integrals(f, middle, b, levels - 1);
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += right[k];
  return sum;
}

/// Sums of the codec's results over the positive axis or its mirror image, by quadrature on every
/// interval of one code and at most one octave.
FigureSums by_quadrature(const Format& f, const Rounding& rounding, Overflow overflow, double scale,
                         const Pdf& pdf, double least, double most) {
  FigureSums sums;
  for (const double sign : {1.0, -1.0}) {
    const auto key = [&](double x) {
      const Encoded e = encoded(f, rounding, overflow, sign * x / scale);
      return e.code << 8 | (e.flags & (kOverflow | kUnderflow));
    };
    std::vector<double> points{least};
    for (double x = least; x < most; x *= 2) {
      breakpoints(key, x, std::min(2 * x, most), &points);
      points.push_back(std::min(2 * x, most));
    }
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const double a = points[i], b = points[i + 1];
      if (!(a < b)) continue;
      // Not the middle of a cell, which is often exact and raises no flag.
      const Encoded e = encoded(f, rounding, overflow, sign * (a + (b - a) * 0.3) / scale);
      const double value = to_double(decode(f, e.code)) * scale;
      const bool finite = std::isfinite(value);
      const Parts part = integrals(
          [&](double magnitude) {
            const double x = sign * magnitude, p = pdf(x);
            if (!finite) return Parts{p};
            const double error = value - x, square = error * error, power = x * x,
                         relative = (value / x - 1) * (value / x - 1);
            return Parts{p,
                         error * p,
                         square * p,
                         square * square * p,
                         power * p,
                         power * power * p,
                         power * square * p,
                         relative * p,
                         relative * relative * p,
                         x * error * p,
                         power * x * error * p};
          },
          a, b);
      const double mass = part[0];
      sums.weight += mass;
      sums.overflow += (e.flags & kOverflow) != 0 ? mass : 0;
      sums.underflow += (e.flags & kUnderflow) != 0 ? mass : 0;
      sums.infinite += std::isinf(value) ? mass : 0;
      sums.nan += std::isnan(value) ? mass : 0;
      if (!finite) continue;
      sums.finite += mass;
      sums.nonzero += mass;
      sums.to_zero += value == 0 ? mass : 0;
      sums.error += part[1];
      sums.square += part[2];
      sums.fourth += part[3];
      sums.signal += part[4];
      sums.signal_square += part[5];
      sums.cross += part[6];
      sums.relative += part[7];
      sums.relative_fourth += part[8];
      sums.projection += part[9];
      sums.projection_signal += part[10];
      sums.outward += sign * part[1];
      sums.outward_square += part[2];
    }
  }
  return sums;
}

void check_near(const char* what, const Figure& got, const Figure& expected, double size = 0) {
  INFO(what << ": " << got.mean << " against " << expected.mean << ", variance " << got.variance
            << " against " << expected.variance);
  CHECK(std::abs(got.mean - expected.mean) <=
        kTolerance * std::max(size, std::abs(expected.mean)) + kLeftOut);
  CHECK(std::abs(got.variance - expected.variance) <=
        kVarianceTolerance * (expected.variance + expected.mean * expected.mean) + kLeftOut);
}

struct Law {
  const char* name;
  Pdf pdf;
  double least, most;  ///< the rest is below the tolerance
};

std::vector<Law> laws() {
  static const boost::math::normal normal;
  static const boost::math::laplace laplace;
  static const boost::math::lognormal wide(0, 2);
  return {{"normal", [](double x) { return boost::math::pdf(normal, x); }, 1e-28, 20},
          {"laplace", [](double x) { return boost::math::pdf(laplace, x); }, 1e-28, 60},
          {"uniform", [](double x) { return std::abs(x) < 1 ? 0.5 : 0; }, 1e-28, 1},
          {"lognormal:2", [](double x) { return boost::math::pdf(wide, std::abs(x)) / 2; },
           std::exp(-22.0), std::exp(38.0)}};
}

}  // namespace

TEST_CASE("figures under four laws equal quadrature over the codec", "[fast]") {
  struct Case {
    const char *format, *rounding, *overflow;
    double scale;
  };
  const Case cases[] = {{"float4_e2m1fn", "rne", "saturate", 0.5},
                        {"float4_e2m1fn", "rtz", "saturate", 0.125},
                        {"float6_e2m3fn", "rna", "saturate", 0.3F},
                        {"float8_e4m3fn", "rne", "ieee", 0.0041F},
                        {"float8_e5m2", "rodd", "propagate", 0x1p-14},
                        {"int4", "rne", "saturate", 0.4F},
                        {"e3m2+ftz", "rtz", "ieee", 0.1F},
                        {"e3m2+nosub", "rne", "ieee", 0.1F}};
  for (const Law& law : laws()) {
    const Distribution distribution = Distribution::parse(law.name, false);
    for (const Case& c : cases) {
      const Format& f = find_format(c.format);
      const Rounding rounding = parse_rounding(c.rounding);
      const Overflow overflow = parse_overflow(c.overflow);
      INFO(law.name << " " << c.format << " " << c.rounding << " " << c.overflow);
      const ErrorFigures got =
          error_figures(outcome_law(f, rounding, overflow), c.scale, distribution.density());
      const ErrorFigures expected =
          by_quadrature(f, rounding, overflow, c.scale, law.pdf, law.least, law.most).figures();
      check_near("mean error", got.error, expected.error, std::sqrt(expected.square.mean));
      check_near("gain", got.gain, expected.gain,
                 std::sqrt(expected.square.mean / expected.signal.mean));
      check_near("outward", got.outward, expected.outward, std::sqrt(expected.square.mean));
      check_near("square", got.square, expected.square);
      check_near("signal", got.signal, expected.signal);
      check_near("overflow", got.overflow, expected.overflow);
      check_near("underflow", got.underflow, expected.underflow);
      check_near("to zero", got.to_zero, expected.to_zero);
      check_near("infinite", got.infinite, expected.infinite);
      check_near("nan", got.nan, expected.nan);
      check_near("sqnr", got.sqnr, expected.sqnr);
      const bool diverges =
          std::string_view(c.rounding) == "rodd" && std::string_view(law.name) != "lognormal:2";
      if (diverges) {
        CHECK(std::isinf(got.relative.mean));
      } else {
        check_near("relative", got.relative, expected.relative);
      }
      CHECK(mean_square_error(outcome_law(f, rounding, overflow), c.scale,
                              distribution.density()) == Approx(got.square.mean).epsilon(1e-12));
    }
  }
}

TEST_CASE("MSE and mean error equal the closed-form partial moments", "[fast]") {
  // Those lose 4^M * 1e-13 to cancellation (error_moments.hpp); times ten for the sum over cells.
  for (const char* name : {"float8_e4m3fn", "float8_e5m2", "int8", "float6_e3m2fn", "float16",
                           "bfloat16", "hfp8_e4m3_nosub"}) {
    for (const char* dist : {"normal", "laplace", "uniform", "lognormal:1.5"}) {
      for (const char* mode : {"rne", "rtz", "rup"}) {
        const Format& f = find_format(name);
        const Rounding rounding = parse_rounding(mode);
        const Distribution d = Distribution::parse(dist, false);
        const ErrorFigures got =
            error_figures(outcome_law(f, rounding, Overflow::saturate), 0.25, d.density());
        const ErrorMoments closed = error_moments(cells(f, rounding, true), 0.25, d.density());
        const double lost = std::pow(4, f.kind == Kind::integer ? 7 : f.mantissa_bits) * 1e-12;
        INFO(name << " " << dist << " " << mode);
        CHECK(got.square.mean == Approx(closed.mse).epsilon(lost));
        CHECK(got.signal.mean == Approx(closed.signal).epsilon(1e-12));
        CHECK(std::abs(got.error.mean - closed.mean) <= lost * std::sqrt(closed.mse));
      }
    }
  }
}

TEST_CASE("relative error: the published constants within their validity", "[fast]") {
  // Log-uniform mantissas, M >= 2: 0.045084 * 4^-M, with a term of 0.25 * 4^-M beside it; a
  // lognormal of sigma 3 is log-uniform within a binade up to 1e-30, and the range holds it.
  const Distribution wide = Distribution::parse("lognormal:3", false);
  for (int m = 2; m <= 6; ++m) {
    const Format& f = find_format(fmt::format("e9m{}", m));
    const ErrorFigures got =
        error_figures(outcome_law(f, {}, Overflow::saturate), 1, wide.density());
    INFO("M " << m);
    CHECK(got.relative.mean * std::pow(4, m) ==
          Approx(0.045084).epsilon(0.25 * std::pow(4, -m) + 1e-5));
  }
  // N(0, 1), M = 0..4, E[e^2] / E[x^2], printed to four digits of which the last may be one off.
  const double published[] = {0.0378, 0.0430, 0.0447, 0.0450, 0.0452};
  const Distribution normal = Distribution::parse("normal", false);
  for (int m = 0; m <= 4; ++m) {
    const Format& f = find_format(fmt::format("e8m{}", m));
    const ErrorFigures got =
        error_figures(outcome_law(f, {}, Overflow::saturate), 1, normal.density());
    CHECK(std::abs(got.square.mean * std::pow(4, m) - published[m]) <= 1.01e-4);
  }
}

TEST_CASE("uniform on whole steps: step^2 / 12, and its divergence of the relative error",
          "[fast]") {
  // int8 with scale 1/127.5: every cell, the outermost included, is a whole step.
  const Distribution d = Distribution::parse("uniform", false);
  const Format& f = find_format("int8");
  const double scale = 1.0F / 127.5F;
  const ErrorFigures got =
      error_figures(outcome_law(f, {}, Overflow::saturate), scale, d.density());
  CHECK(got.square.mean == Approx(scale * scale / 12).epsilon(1e-6));
  const ErrorFigures up =
      error_figures(outcome_law(f, parse_rounding("rup"), Overflow::saturate), scale, d.density());
  CHECK(std::isinf(up.relative.mean));
  CHECK(up.error.mean == Approx(scale / 2).epsilon(0.02));
}

TEST_CASE("rounding toward zero shows in amplitude where a symmetric law hides the mean",
          "[fast]") {
  const Distribution d = Distribution::parse("normal", false);
  const auto figures = [&](const char* rounding) {
    const OutcomeLaw law =
        outcome_law(find_format("float8_e4m3fn"), parse_rounding(rounding), Overflow::saturate);
    return error_figures(law, 0.01F, d.density());
  };
  const ErrorFigures toward_zero = figures("rtz"), nearest = figures("rne");
  const double rms = std::sqrt(toward_zero.square.mean);
  CHECK(std::abs(toward_zero.error.mean) < 1e-12 * rms);
  // Most of the error is bias: an error uniform on [-step, 0] has 0.87 of its rms as its mean,
  // steps of different binades less.
  CHECK(toward_zero.outward.mean < -0.6 * rms);
  CHECK(toward_zero.gain.mean < -0.03);
  CHECK(std::abs(nearest.gain.mean) < 0.001);
}

TEST_CASE("stochastic rounding: every step of few bits, the line of many", "[fast]") {
  const Distribution d = Distribution::parse("normal", false);
  const Format& f = find_format("float4_e2m1fn");
  const boost::math::normal normal;
  boost::math::quadrature::tanh_sinh<double> rule(8);
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double scale = 0.5;
  for (const char* text : {"sr(1,a)", "sr(2)", "sr(3,b)"}) {
    const Rounding rounding = parse_rounding(text);
    const double steps = std::ldexp(1.0, rounding.random_bits);
    double square = 0, relative = 0, to_zero = 0;
    for (int i = 0; i < 7; ++i) {
      const double low = values[i] * scale, high = values[i + 1] * scale;
      for (int k = 0; k < 2 * steps; ++k) {  // halves of steps: P is constant in each
        const double a = low + (high - low) * k / (2 * steps),
                     b = low + (high - low) * (k + 1) / (2 * steps);
        const double p = up_probability(rounding, (std::midpoint(a, b) - low) / (high - low));
        const auto both = [&](double x) {
          return (1 - p) * std::pow(low - x, 2) + p * std::pow(high - x, 2);
        };
        square += 2 * rule.integrate([&](double x) { return both(x) * pdf(normal, x); }, a, b);
        relative +=
            2 * (i == 0 && p == 0
                     ? cdf(normal, b) - cdf(normal, a)
                     : rule.integrate([&](double x) { return both(x) / (x * x) * pdf(normal, x); },
                                      a, b));
        if (i == 0) to_zero += 2 * (1 - p) * (cdf(normal, b) - cdf(normal, a));
      }
    }
    const double top = 6 * scale;
    const auto above = [&](int power) {
      return 2 * rule.integrate(
                     [&](double x) {
                       return std::pow(top - x, 2) / std::pow(x, power) * pdf(normal, x);
                     },
                     top, 40.0);
    };
    const ErrorFigures got =
        error_figures(outcome_law(f, rounding, Overflow::saturate), scale, d.density());
    INFO(text);
    CHECK(got.square.mean == Approx(square + above(0)).epsilon(1e-10));
    CHECK(got.relative.mean == Approx(relative + above(2)).epsilon(1e-10));
    CHECK(got.to_zero.mean == Approx(to_zero).epsilon(1e-10));
  }
}

TEST_CASE("stochastic rounding: the line continues the steps", "[fast]") {
  // Of 12-bit formats the steps of 5 bits are listed, those of 7 are not. Under a uniform law their
  // second-order term is -4^-n / 2 of the limit, and 4^-n for variant a.
  const Distribution d = Distribution::parse("uniform", false);
  const Format& f = find_format("e5m6");
  const auto figures = [&](const std::string& rounding) {
    const OutcomeLaw law = outcome_law(f, parse_rounding(rounding), Overflow::saturate);
    return error_figures(law, 1, d.density());
  };
  // d P(d) exceeds its line by -1/4 of what the square does, so E[x e] = -1/2 of that excess; the
  // lag of variant a shrinks x by half of its lowest bit beside it.
  const double limit = figures("sr(30)").square.mean;
  for (const int bits : {5, 7}) {
    for (const char variant : {'a', 'b', 'c'}) {
      const double expected = (variant == 'a' ? 1 : -0.5) * std::pow(4, -bits);
      INFO(bits << " " << variant);
      const ErrorFigures got = figures(fmt::format("sr({},{})", bits, variant));
      CHECK(got.square.mean / limit - 1 == Approx(expected).epsilon(0.01));
      if (variant != 'a') {
        CHECK(got.gain.mean * got.signal.mean ==
              Approx(-0.5 * (got.square.mean - limit)).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("stochastic rounding: masses of many bits agree with those of fewer", "[fast]") {
  const Distribution d = Distribution::parse("laplace", false);
  const Format& f = find_format("float8_e4m3fn");
  for (const char variant : {'a', 'b', 'c'}) {
    const auto figures = [&](int bits) {
      const Rounding rounding = parse_rounding(fmt::format("sr({},{})", bits, variant));
      return error_figures(outcome_law(f, rounding, Overflow::ieee), 0.01F, d.density());
    };
    const ErrorFigures steps = figures(10), line = figures(13);
    INFO(variant);
    // Variant a loses 2^-(n+1) of a gap's mass, the others 4^-n.
    const double differs = variant == 'a' ? 1e-3 : 1e-6;
    CHECK(line.overflow.mean == Approx(steps.overflow.mean).epsilon(differs));
    CHECK(line.underflow.mean == Approx(steps.underflow.mean).epsilon(differs));
    CHECK(line.to_zero.mean == Approx(steps.to_zero.mean).epsilon(differs));
    CHECK(line.square.mean == Approx(steps.square.mean).epsilon(differs));
  }
}

TEST_CASE("figures refuse what is no scale", "[fast]") {
  const OutcomeLaw law = outcome_law(find_format("int4"), {}, Overflow::saturate);
  const Distribution d = Distribution::parse("normal", false);
  CHECK_THROWS_AS(error_figures(law, 0, d.density()), Error);
  CHECK_THROWS_AS(error_figures(law, INFINITY, d.density()), Error);
  CHECK_THROWS_AS(mean_square_error(law, -1, d.density()), Error);
}

}  // namespace error_figures_test

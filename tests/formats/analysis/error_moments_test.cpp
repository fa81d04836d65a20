// Error moments under densities: published closed forms, quadrature and the KURE vectors.
#include "formats/analysis/error_moments.hpp"

#include <boost/math/distributions/laplace.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace error_moments_test {

using namespace numemu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kLn2 = std::log(2.0);

/// Nearest-value cells of an ascending list of values.
std::vector<Cell> nearest_cells(const std::vector<double>& values, bool normal) {
  std::vector<Cell> list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double low = i == 0 ? -kInfinity : (values[i - 1] + values[i]) / 2;
    const double high = i + 1 == values.size() ? kInfinity : (values[i] + values[i + 1]) / 2;
    list.push_back({low, high, values[i], normal});
  }
  return list;
}

/// Levels k * step, |k| <= half: the uniform quantizer of the KURE analysis (2^M + 1 levels, half =
/// 2^(M-1)).
std::vector<Cell> uniform_grid(int half, double step) {
  std::vector<double> values;
  for (int k = -half; k <= half; ++k) values.push_back(k * step);
  return nearest_cells(values, false);
}

/// Positive floats with `mantissa` bits over binades [first, last], and their mirror image where
/// `both`.
std::vector<Cell> float_grid(int mantissa, int first, int last, bool both) {
  std::vector<double> values;
  for (int e = first; e <= last; ++e) {
    for (int m = 0; m < 1 << mantissa; ++m)
      values.push_back(std::ldexp(1 + std::ldexp(m, -mantissa), e));
  }
  if (both) {
    const std::size_t n = values.size();
    for (std::size_t i = 0; i < n; ++i) values.insert(values.begin(), -values[2 * i]);
  }
  return nearest_cells(values, true);
}

/// x^-power on [low, high], normalised: power 1 is log-uniform, and E[(e/x)^2] of a log-uniform x
/// is E[e^2] of an x with power 3, up to the norms.
class PowerLaw final : public Density {
 public:
  PowerLaw(int power, double low, double high) : power_(power), low_(low), high_(high) {}
  std::string name() const override { return "power law"; }
  double cdf(double x) const override { return moments(low_, x).p0; }
  double norm() const { return integral(0, low_, high_); }
  Moments moments(double low, double high) const override {
    const double a = std::max(low, low_), b = std::min(high, high_);
    if (!(a < b)) return {0, 0, 0};
    return {integral(0, a, b) / norm(), integral(1, a, b) / norm(), integral(2, a, b) / norm()};
  }
  double pdf(double x) const override {
    return x < low_ || x > high_ ? 0 : std::pow(x, -power_) / norm();
  }
  std::vector<double> knots() const override {
    std::vector<double> points;
    for (double x = low_; x < high_; x *= 2) points.push_back(x);
    points.push_back(high_);
    return points;
  }

 private:
  double integral(int k, double a, double b) const {
    const int exponent = k - power_ + 1;
    return exponent == 0 ? std::log(b / a)
                         : (std::pow(b, exponent) - std::pow(a, exponent)) / exponent;
  }
  int power_;
  double low_, high_;
};

/// E[(Q(x) - x)^2] by quadrature inside each cell; the density is smooth except at zero.
double mse_by_quadrature(const std::vector<Cell>& list, double scale,
                         const std::function<double(double)>& pdf) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, 31>;
  constexpr unsigned kDepth = 5;  // enough: a cell holds a polynomial times a smooth factor
  double sum = 0;
  for (const Cell& c : list) {
    const auto term = [&](double x) { return std::pow(c.value * scale - x, 2) * pdf(x); };
    const double low = c.low * scale, high = c.high * scale;
    if (low * high > 0 && pdf(std::min(std::abs(low), std::abs(high))) == 0)
      continue;  // beyond 38 sigma
    if (low < 0 && high > 0) {
      sum += Rule::integrate(term, low, 0.0, kDepth, 1e-11) +
             Rule::integrate(term, 0.0, high, kDepth, 1e-11);
    } else {
      sum += Rule::integrate(term, low, high, kDepth, 1e-11);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("log-uniform mantissas: relative error 0.045084 * 4^-M", "[fast]") {
  // 0.045084 is 1 / (32 ln 2), the mean of step^2 / 12 over x^2; the slope of 1 / x^3 inside a cell
  // adds a relative term of order 4^-M, measured 0.21 * 4^-M at every M.
  for (int mantissa = 2; mantissa <= 6; ++mantissa) {
    const auto grid = float_grid(mantissa, 0, 8, false);
    const PowerLaw log_uniform(1, 1, 256), cube(3, 1, 256);
    const double relative = error_moments(grid, 1, cube).mse * cube.norm() / log_uniform.norm();
    INFO("M " << mantissa << " constant " << relative * std::pow(4, mantissa));
    CHECK(relative ==
          Approx(std::pow(4, -mantissa) / (32 * kLn2)).epsilon(0.25 * std::pow(4, -mantissa)));
  }
}

TEST_CASE("log-uniform over whole binades: E[e^2] / E[x^2] = (ln 2 / 18) 4^-M", "[fast]") {
  for (int mantissa = 2; mantissa <= 6; ++mantissa) {
    const ErrorMoments m = error_moments(float_grid(mantissa, 0, 8, false), 1, PowerLaw(1, 1, 256));
    INFO("M " << mantissa << " constant " << m.mse / m.signal * std::pow(4, mantissa));
    CHECK(m.mse / m.signal ==
          Approx(kLn2 / 18 * std::pow(4, -mantissa)).epsilon(0.04 * std::pow(4, -mantissa)));
  }
}

TEST_CASE("floats under N(0, 1): the published constants", "[fast]") {
  const double published[] = {0.0378, 0.0430, 0.0447, 0.0450, 0.0452};
  constexpr double kPrinted = 0.0001;  // one unit of their last digit: 0.0450 is 0.04509
  // Simpson's rule with 200 steps in every half cell of binades -40 to 4.
  const double integrated[] = {0.0377740502, 0.0429920671, 0.0446495314, 0.0450884575,
                               0.0452006126};
  for (int mantissa = 0; mantissa <= 4; ++mantissa) {
    const ErrorMoments m =
        error_moments(float_grid(mantissa, -30, 4, true), 1, *normal_density(0, 1));
    const double constant = m.mse / m.signal * std::pow(4, mantissa);
    INFO("M " << mantissa << " constant " << constant);
    CHECK(std::abs(constant - published[mantissa]) <= kPrinted);
    CHECK(constant == Approx(integrated[mantissa]).epsilon(1e-8));
  }
}

TEST_CASE("KURE: the uniform law under 2^M + 1 levels is the published closed form", "[fast]") {
  for (const int bits : {2, 3, 4, 6, 8}) {
    const double half = std::ldexp(1, bits - 1), best = 1 / (half + 0.5);
    for (const double step : {0.7 * best, best, 0.9 / half}) {
      const double tau = half * step;
      const double closed = std::pow(1 - tau, 3) / 3 + std::ldexp(1, bits) * std::pow(step, 3) / 24;
      const ErrorMoments m =
          error_moments(uniform_grid(static_cast<int>(half), step), 1, *uniform_density(-1, 1));
      INFO("M " << bits << " step " << step);
      CHECK(m.mse == Approx(closed).epsilon(1e-12));
    }
  }
  CHECK(error_moments(uniform_grid(8, 2.0 / 17), 1, *uniform_density(-1, 1)).mse ==
        Approx(1.0 / 867).epsilon(1e-12));
  CHECK(error_moments(uniform_grid(2, 0.4), 1, *uniform_density(-1, 1)).mse ==
        Approx(0.4 * 0.4 / 12).epsilon(1e-12));
  const double root3 = std::sqrt(3.0),
               step[] = {0.692820, 0.384900, 0.203771, 0.104973, 0.053294, 0.013479};
  const double mse[] = {0.04, 0.0123457, 0.00346021, 0.000918274, 0.000236686, 1.51403e-5};
  const int bits[] = {2, 3, 4, 5, 6, 8};
  for (int i = 0; i < 6; ++i) {
    const auto grid = uniform_grid(1 << (bits[i] - 1), step[i]);
    // At the optimal step the error of its printed digits enters squared only.
    CHECK(error_moments(grid, 1, *uniform_density(-root3, root3)).mse ==
          Approx(mse[i]).epsilon(1e-5));
  }
}

TEST_CASE("KURE: the normal law at the published optimal steps", "[fast]") {
  const int bits[] = {2, 3, 4, 5, 6, 8};
  const double step[] = {0.844040, 0.533841, 0.318897, 0.183309, 0.102679, 0.030655};
  const double mse[] = {0.081778, 0.030662, 0.010403, 0.003313, 0.0010120, 8.707e-5};
  for (int i = 0; i < 6; ++i) {
    const int half = 1 << (bits[i] - 1);
    const double d = step[i], tau = half * d, root2 = std::sqrt(2.0);
    const double phi = std::exp(-tau * tau / 2) / std::sqrt(2 * M_PI);
    const double closed = (tau * tau + 1) * std::erfc(tau / root2) +
                          d * d / 12 * std::erf(tau / root2) - 2 * tau * phi;
    CHECK(closed == Approx(mse[i]).epsilon(6e-4));  // four printed digits
    // The closed form takes the in-range error as uniform. The squared sawtooth less its mean is
    // the Fourier series sum (-1)^k d^2 / (pi k)^2 cos(2 pi k x / d); integrated by parts against
    // phi over [-tau, tau] it leaves 2 tau phi * 7 d^4 / 2880, then the third derivative's 2 * 31
    // d^6 / 483840 and smaller terms.
    const double corrected = closed + 2 * tau * phi * 7 * std::pow(d, 4) / 2880;
    const double next = 2 * (std::pow(tau, 3) + 3 * tau) * phi * 31 * std::pow(d, 6) / 483840;
    const ErrorMoments m = error_moments(uniform_grid(half, d), 1, *normal_density(0, 1));
    INFO("M " << bits[i] << " exact " << m.mse << " closed " << closed << " corrected "
              << corrected);
    CHECK(std::abs(m.mse - corrected) <= 1.5 * next);
  }
}

TEST_CASE("named formats under smooth densities equal quadrature", "[fast]") {
  const boost::math::normal normal(0.1, 0.8);
  const boost::math::laplace laplace(0, 0.5);
  for (const char* name : {"float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "float6_e2m3fn",
                           "hfp8_e4m3_nosub"}) {
    for (const char* mode : {"rne", "rtz", "rup", "rodd"}) {
      const auto list = cells(find_format(name), parse_rounding(mode), true);
      for (const double scale : {0.25, 0.013}) {
        INFO(name << " " << mode << " scale " << scale);
        const ErrorMoments m = error_moments(list, scale, *normal_density(0.1, 0.8));
        CHECK(m.mse == Approx(mse_by_quadrature(list, scale, [&](double x) {
                         return boost::math::pdf(normal, x);
                       })).epsilon(1e-9));
        CHECK(m.signal == Approx(0.65).epsilon(1e-13));
        const ErrorMoments l = error_moments(list, scale, *laplace_density(0, 0.5));
        CHECK(l.mse == Approx(mse_by_quadrature(list, scale, [&](double x) {
                         return boost::math::pdf(laplace, x);
                       })).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("saturated, flushed and normal parts", "[fast]") {
  const auto list = cells(find_format("int2"), parse_rounding("rne"), true);  // -1, 0, 1
  const ErrorMoments m =
      error_moments(list, 2, *uniform_density(-4, 4));  // levels -2, 0, 2, cut at -1, 1
  CHECK(m.saturated == Approx(0.5));
  CHECK(m.flushed == Approx(0.25));
  CHECK(m.mse == Approx((2 * 8.0 / 3 + 4 * 1.0 / 3) / 8));
  CHECK(m.mse_normal == 0);
  CHECK(m.mean == Approx(0).margin(1e-15));
  CHECK(m.sqnr_db() == Approx(10 * std::log10(m.signal / m.mse)));

  const auto fp4 = cells(find_format("float4_e2m1fn"), parse_rounding("rne"), true);
  const ErrorMoments f = error_moments(fp4, 1, *uniform_density(0, 7));
  // Cells of 1, 1.5 .. 6: three half-steps of 1/4 (0.75..1.75), three of 1/2 (1.75 is a mixed cell)
  // up to 6.
  const auto cube = [](double a, double b) {
    return (std::pow(std::abs(a), 3) + std::pow(std::abs(b), 3)) / 3;
  };
  const double normal = cube(0.25, 0.25) + cube(0.25, 0.25) + cube(0.25, 0.5) + cube(0.5, 0.5) +
                        cube(0.5, 1) + cube(1, 0);
  CHECK(f.mse_normal == Approx(normal / 7));
  CHECK(f.mse == Approx((normal + 1.0 / 3 + cube(0.25, 0) + cube(0.25, 0.25)) / 7));
  CHECK(f.saturated == Approx(1.0 / 7));
}

TEST_CASE("the point mass at zero is rounded once, whichever cell owns zero", "[fast]") {
  for (const char* mode : {"rne", "rtz", "rup", "rdn", "rodd"}) {
    const auto list = cells(find_format("int4"), parse_rounding(mode), true);
    const ErrorMoments bare = error_moments(list, 0.5, *normal_density(0, 1));
    const ErrorMoments half = error_moments(list, 0.5, *with_zero_mass(normal_density(0, 1), 0.5));
    INFO(mode);
    CHECK(half.mse == Approx(bare.mse / 2).epsilon(1e-14));
    CHECK(half.flushed == Approx(bare.flushed / 2).margin(1e-15));
  }
  // A grid without zero: exactly zero becomes +1 (ties up by hand) and costs 1.
  const std::vector<Cell> sign = {{-kInfinity, 0, -1, false}, {0, kInfinity, 1, false}};
  CHECK(error_moments(sign, 1, *with_zero_mass(uniform_density(1, 1.5), 0.5)).mse ==
        Approx(0.5 + 0.5 / 12));
}

TEST_CASE("stochastic rounding of a uniform law over whole gaps errs by step^2 / 6", "[fast]") {
  const auto gaps = brackets(find_format("int4"), true);
  const ErrorMoments m = stochastic_error_moments(gaps, 0.25, *uniform_density(-1.75, 1.75));
  CHECK(m.mse == Approx(0.25 * 0.25 / 6).epsilon(1e-13));
  CHECK(m.mean == 0);
  CHECK(m.flushed ==
        Approx(1.0 / 14));  // 2 of 14 gaps touch zero, each half of its mass goes there
  CHECK(m.saturated == 0);
  const ErrorMoments beyond = stochastic_error_moments(gaps, 0.25, *uniform_density(1.75, 2.75));
  CHECK(beyond.mse == Approx(1.0 / 3));
  CHECK(beyond.mean == Approx(-0.5));
  CHECK(beyond.saturated == Approx(1));
}

TEST_CASE("no cells and scales that are not scales are refused", "[fast]") {
  const auto list = uniform_grid(2, 1);
  CHECK_THROWS_AS(error_moments({}, 1, *normal_density(0, 1)), Error);
  CHECK_THROWS_AS(error_moments(list, 0, *normal_density(0, 1)), Error);
  CHECK_THROWS_AS(error_moments(list, kInfinity, *normal_density(0, 1)), Error);
}

}  // namespace error_moments_test

// Figures of a sample by the law against the codec on the same numbers, ties and random bits too.
#include <cmath>
#include <limits>
#include <vector>

#include "formats/analysis/comparison.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace sample_error_figures_test {

using namespace numemu;

namespace {

/// Random numbers, and every bound and value of the law with its neighbours.
std::vector<double> sample_of(const OutcomeLaw& law, double scale, bool folded) {
  const Distribution d = Distribution::parse("lognormal:2:log2", folded);
  std::vector<double> x{0, 1e-40, 1e4};
  for (int i = 0; i < 3000; ++i) x.push_back(d.draw({.seed = 1, .stream = Stream::data}, i));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const OutcomePiece& piece : law.pieces) {
    for (const double at : {piece.low * scale, piece.near.value * scale}) {
      if (!std::isfinite(at)) continue;
      x.insert(x.end(), {at, std::nextafter(at, kInfinity), std::nextafter(at, -kInfinity)});
    }
  }
  return x;
}

const char* const kFormats[] = {"float8_e4m3fn", "float8_e5m2",   "float4_e2m1fn",
                                "int4",          "uint4",         "e3m2+ftz",
                                "e3m2+nosub",    "e3m2+unsigned", "float8_e8m0fnu"};

}  // namespace

TEST_CASE("deterministic roundings: law and codec agree on every number of a sample", "[fast]") {
  for (const char* name : kFormats) {
    for (const char* mode : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      for (const char* overflow : {"saturate", "ieee"}) {
        const Format& f = find_format(name);
        const Conversion c{
            .format = &f, .rounding = parse_rounding(mode), .overflow = parse_overflow(overflow)};
        const OutcomeLaw law = outcome_law(f, c.rounding, c.overflow);
        const double scale = 0.3F;
        const std::vector<double> x = sample_of(law, scale, !f.is_signed);
        const auto n = static_cast<std::int64_t>(x.size());
        const ErrorFigures p = error_figures(law, scale, x.data(), n);
        const ErrorFigures m = measure(c, scale, x.data(), n);
        INFO(name << " " << mode << " " << overflow);
        for (const auto figure :
             {&ErrorFigures::square, &ErrorFigures::relative, &ErrorFigures::signal,
              &ErrorFigures::sqnr, &ErrorFigures::overflow, &ErrorFigures::underflow,
              &ErrorFigures::to_zero, &ErrorFigures::infinite, &ErrorFigures::nan}) {
          INFO((p.*figure).mean << " against " << (m.*figure).mean);
          CHECK(((p.*figure).mean == (m.*figure).mean ||
                 (p.*figure).mean == Approx((m.*figure).mean).epsilon(1e-10).margin(1e-12)));
          CHECK((p.*figure).variance <= 1e-9 * ((p.*figure).mean * (p.*figure).mean));
        }
        const double size = std::sqrt(p.square.mean);
        CHECK(compare_sample(p.error, m.error, n, size).verdict == Verdict::holds);
        CHECK(compare_sample(p.outward, m.outward, n, size).verdict == Verdict::holds);
        CHECK(compare_sample(p.gain, m.gain, n, size / std::sqrt(p.signal.mean)).verdict ==
              Verdict::holds);
      }
    }
  }
}

TEST_CASE("stochastic rounding: expectation and variance over the random bits", "[fast]") {
  for (const char* name : kFormats) {
    for (const char* mode : {"sr(1)", "sr(3,a)", "sr(8)"}) {
      const Format& f = find_format(name);
      const Conversion c{.format = &f,
                         .rounding = parse_rounding(mode),
                         .overflow = Overflow::ieee,
                         .random = {.seed = 9}};
      const OutcomeLaw law = outcome_law(f, c.rounding, c.overflow);
      const double scale = 0.3F;
      const Distribution d = Distribution::parse("lognormal:2:log2", !f.is_signed);
      std::vector<double> x;
      for (int i = 0; i < 20000; ++i) x.push_back(d.draw({.seed = 1, .stream = Stream::data}, i));
      const auto n = static_cast<std::int64_t>(x.size());
      const ErrorFigures p = error_figures(law, scale, x.data(), n);
      const ErrorFigures m = measure(c, scale, x.data(), n);
      INFO(name << " " << mode);
      for (const auto figure :
           {&ErrorFigures::square, &ErrorFigures::overflow, &ErrorFigures::underflow,
            &ErrorFigures::to_zero, &ErrorFigures::infinite, &ErrorFigures::nan}) {
        INFO((p.*figure).mean << " against " << (m.*figure).mean << ", variance "
                              << (p.*figure).variance);
        CHECK(compare_sample(p.*figure, m.*figure, n).verdict == Verdict::holds);
      }
      const double size = std::sqrt(p.square.mean);
      CHECK(compare_sample(p.outward, m.outward, n, size).verdict == Verdict::holds);
      CHECK(compare_sample(p.gain, m.gain, n, size / std::sqrt(p.signal.mean)).verdict ==
            Verdict::holds);
      CHECK(p.gain.variance > 0);
      CHECK(p.square.variance > 0);
      // The numbers themselves do not vary; e8m0 has too few large ones to show it.
      if (f.is_signed) CHECK(p.square.variance < m.square.variance);
    }
  }
}

TEST_CASE("figures of no sample are refused", "[fast]") {
  const OutcomeLaw law = outcome_law(find_format("int4"), {}, Overflow::saturate);
  const double x = 1;
  CHECK_THROWS_AS(error_figures(law, 1, &x, 0), Error);
  CHECK_THROWS_AS(error_figures(law, 0, &x, 1), Error);
}

}  // namespace sample_error_figures_test

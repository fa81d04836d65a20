// Verdicts and intervals at the edges where they turn; figures measured on random samples.
#include "formats/analysis/comparison.hpp"

#include <omp.h>

#include <cmath>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace comparison_test {

using namespace numemu;

TEST_CASE("means: holds within 4 standard errors, the larger of the two", "[fast]") {
  const Figure predicted{1, 0.01};  // standard error 0.001 at n = 10000
  CHECK(compare_mean(predicted, {1.0039, 0.01}, 10000).verdict == Verdict::holds);
  CHECK(compare_mean(predicted, {1.0041, 0.01}, 10000).verdict == Verdict::fails);
  CHECK(compare_mean(predicted, {1.0079, 0.04}, 10000).verdict == Verdict::holds);
  const FigureComparison c = compare_mean(predicted, {1.002, 0.01}, 10000);
  CHECK(c.low == Approx(1.002 - 1.96e-3).epsilon(1e-6));
  CHECK(c.high == Approx(1.002 + 1.96e-3).epsilon(1e-6));
}

TEST_CASE("means: undecided where the law shows too little of itself", "[fast]") {
  CHECK(compare_mean({INFINITY, 0}, {41, 100}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({1, 1e6}, {0.5, 1}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({1, INFINITY}, {0.5, 1}, 1000).verdict == Verdict::undecided);
  CHECK(compare_mean({0, 1}, {0.1, 1}, 10000, 1).verdict == Verdict::fails);
  CHECK(compare_mean({0, 1}, {0.03, 1}, 10000, 1).verdict == Verdict::holds);
  CHECK(compare_mean({INFINITY, 0}, {INFINITY, 0}, 1000).verdict == Verdict::holds);
}

TEST_CASE("masses: exact binomial tails and Clopper-Pearson intervals", "[fast]") {
  const auto mass = [](double p, double count) {
    return compare_mass({p, p * (1 - p)}, {count / 1e6, 0}, 1000000);
  };
  CHECK(mass(0, 0).verdict == Verdict::holds);
  CHECK(mass(0, 1).verdict == Verdict::fails);
  CHECK(mass(1e-9, 0).verdict == Verdict::holds);
  CHECK(mass(1e-9, 1).verdict == Verdict::holds);   // probability 1e-3
  CHECK(mass(1e-11, 1).verdict == Verdict::fails);  // probability 1e-5
  CHECK(mass(1, 1e6).verdict == Verdict::holds);
  CHECK(mass(1, 999999).verdict == Verdict::fails);
  CHECK(mass(0.01, 10000 + 390).verdict == Verdict::holds);
  CHECK(mass(0.01, 10000 + 410).verdict == Verdict::fails);
  CHECK(mass(0.01, 10000 - 410).verdict == Verdict::fails);
  // Rule of three and a bit: 1 - 0.025^(1/n).
  CHECK(mass(0, 0).high == Approx(3.68887e-6).epsilon(1e-5));
  CHECK(mass(0, 0).low == 0);
  CHECK(mass(1, 1e6).high == 1);
}

TEST_CASE("an SQNR of draws: its interval, and laws of heavy tails", "[fast]") {
  // Equal signals: the relative standard error is that of the mean error, sqrt(20 / 3 / 4) / 12.
  const auto half = [](const std::vector<SqnrSums>& parts) {
    // Two numbers in each part.
    const std::int64_t n = std::ssize(parts);
    return sqnr_half_interval(2 * n, n, [&](std::int64_t first, std::int64_t count) {
      CHECK(count == 2);
      return parts[static_cast<std::size_t>(first / 2)];
    });
  };
  CHECK(half({{5, 9}, {5, 11}, {5, 13}, {5, 15}}) ==
        Approx(1.959964 * 10 / std::log(10) * std::sqrt(20.0 / 3 / 4) / 12).epsilon(1e-6));
  CHECK(half({{1, 0.5}, {2, 1}, {3, 1.5}}) == Approx(0).margin(1e-12));
  CHECK(half({{1, 0}, {2, 0}}) == 0);
  CHECK(std::isnan(half({{1, 1}})));
  // Parts of like size: 7 numbers in 3.
  std::vector<std::int64_t> cuts;
  sqnr_half_interval(7, 3, [&](std::int64_t first, std::int64_t count) {
    cuts.insert(cuts.end(), {first, count});
    return SqnrSums{1, 1};
  });
  CHECK(cuts == std::vector<std::int64_t>{0, 2, 2, 2, 4, 3});
  // var(x^2) / E[x^2]^2 is exp(4 S^2) - 1 of a lognormal and 2 of a normal law.
  const auto heavy = [](const char* law, std::int64_t n) {
    return heavy_tails(Distribution::parse(law, false).density(), n);
  };
  CHECK(heavy("normal", 31));
  CHECK_FALSE(heavy("normal", 33));
  CHECK(heavy("lognormal:1", 850));
  CHECK_FALSE(heavy("lognormal:1", 865));
  CHECK(heavy("student-t:2.5", 1 << 17));
  CHECK(heavy("lognormal:3", 1 << 17));
  CHECK_FALSE(heavy("laplace", 1000));
}

TEST_CASE("samples: rounding errors pass, anything more fails unless the bits explain it",
          "[fast]") {
  CHECK(compare_sample({1, 0}, {1 + 1e-12, 0}, 1000).verdict == Verdict::holds);
  CHECK(compare_sample({1, 0}, {1 + 1e-6, 0}, 1000).verdict == Verdict::fails);
  CHECK(compare_sample({1, 1e-9}, {1 + 1e-6, 0}, 1000).verdict == Verdict::holds);
  CHECK(compare_sample({0, 0}, {1e-14, 0}, 1000, 1e-3).verdict == Verdict::holds);
  CHECK(compare_sample({INFINITY, 0}, {INFINITY, 0}, 10).verdict == Verdict::holds);
  CHECK(compare_sample({1, 0}, {INFINITY, 0}, 10).verdict == Verdict::fails);
}

namespace {

Conversion conversion(const char* format, const char* rounding, const char* overflow) {
  return {.format = &find_format(format),
          .rounding = parse_rounding(rounding),
          .overflow = parse_overflow(overflow),
          .random = {.seed = 3}};
}

struct Threads {
  int before = omp_get_max_threads();
  explicit Threads(int n) { omp_set_num_threads(n); }
  ~Threads() { omp_set_num_threads(before); }
};

}  // namespace

TEST_CASE("prediction and measurement agree across formats, roundings and overflows", "[fast]") {
  constexpr std::int64_t kDraws = 6000;
  int decided = 0;
  for (const char* format :
       {"float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4", "e3m2+ftz",
        "e3m2+unsigned+ftz", "float8_e8m0fnu", "binary6p3ue", "float16", "sign1"}) {
    for (const char* rounding : {"rne", "rtz", "rup", "rodd", "sr(1)", "sr(2,a)", "sr(12,odd)"}) {
      for (const char* overflow : {"saturate", "ieee"}) {
        for (const char* dist : {"normal", "lognormal:2:log2"}) {
          const Conversion c = conversion(format, rounding, overflow);
          const Distribution d = Distribution::parse(dist, !c.format->is_signed);
          const double scale = 0.05F;
          const ErrorFigures p =
              error_figures(outcome_law(*c.format, c.rounding, c.overflow), scale, d.density());
          const ErrorFigures m = monte_carlo(c, scale, d, 11, kDraws);
          INFO(format << " " << rounding << " " << overflow << " " << dist);
          const auto mean = [&](Figure ErrorFigures::*figure, double size = 0) {
            const FigureComparison k = compare_mean(p.*figure, m.*figure, kDraws, size);
            INFO((p.*figure).mean << " against " << (m.*figure).mean);
            CHECK(k.verdict != Verdict::fails);
            decided += k.verdict == Verdict::holds;
          };
          mean(&ErrorFigures::error, std::sqrt(p.square.mean));
          mean(&ErrorFigures::gain, std::sqrt(p.square.mean / p.signal.mean));
          mean(&ErrorFigures::outward, std::sqrt(p.square.mean));
          mean(&ErrorFigures::square);
          mean(&ErrorFigures::relative);
          mean(&ErrorFigures::signal);
          for (const auto figure :
               {&ErrorFigures::overflow, &ErrorFigures::underflow, &ErrorFigures::to_zero,
                &ErrorFigures::infinite, &ErrorFigures::nan}) {
            INFO((p.*figure).mean << " against " << (m.*figure).mean);
            CHECK(compare_mass(p.*figure, m.*figure, kDraws).verdict == Verdict::holds);
          }
        }
      }
    }
  }
  CHECK(decided > 900);  // of 1848
}

TEST_CASE("predicted variances are those of many measurements", "[fast]") {
  // 300 squared deviations in units of the predicted variance: mean 1, standard error 0.082; the
  // second moments' tails widen it.
  constexpr int kRuns = 300;
  constexpr std::int64_t kDraws = 2000;
  struct Case {
    const char *format, *rounding, *overflow, *dist;
    double scale;
  };
  for (const Case& k : {Case{"e3m2+unsigned+ftz", "rne", "ieee", "lognormal:2:log2", 0.05F},
                        Case{"float8_e4m3fn", "sr(1)", "saturate", "normal", 1}}) {
    Conversion c = conversion(k.format, k.rounding, k.overflow);
    const Distribution d = Distribution::parse(k.dist, !c.format->is_signed);
    const ErrorFigures p =
        error_figures(outcome_law(*c.format, c.rounding, c.overflow), k.scale, d.density());
    double error = 0, gain = 0, outward = 0, square = 0, sqnr = 0, to_zero = 0;
    for (int run = 0; run < kRuns; ++run) {
      c.random.seed = static_cast<std::uint64_t>(run);
      const ErrorFigures m = monte_carlo(c, k.scale, d, c.random.seed, kDraws);
      const auto squared = [&](Figure ErrorFigures::*figure) {
        const double away = (m.*figure).mean - (p.*figure).mean;
        return away * away * kDraws / (p.*figure).variance / kRuns;
      };
      error += squared(&ErrorFigures::error);
      gain += squared(&ErrorFigures::gain);
      outward += squared(&ErrorFigures::outward);
      square += squared(&ErrorFigures::square);
      sqnr += squared(&ErrorFigures::sqnr);
      to_zero += squared(&ErrorFigures::to_zero);
    }
    INFO(k.format);
    for (const double ratio : {error, gain, outward, square, sqnr, to_zero})
      CHECK(std::abs(ratio - 1) < 0.4);
  }
}

TEST_CASE("measured figures are the same bits on any number of threads", "[fast]") {
  const Conversion c = conversion("float8_e4m3fn", "sr(8)", "ieee");
  const Distribution d = Distribution::parse("laplace", false);
  const auto run = [&](int threads) {
    const Threads set(threads);
    return monte_carlo(c, 0.25, d, 5, 100001);
  };
  const ErrorFigures one = run(1), three = run(3);
  CHECK(one.error.mean == three.error.mean);
  CHECK(one.square.variance == three.square.variance);
  CHECK(one.relative.mean == three.relative.mean);
}

TEST_CASE("a few numbers by hand", "[fast]") {
  // float4_e2m1fn, scale 0.5: 3 saturates from 3.5 on; 0.25 is a tie of 0 and 0.5, to even 0.
  const Conversion c = conversion("float4_e2m1fn", "rne", "saturate");
  const std::vector<double> x = {0, 0.25, 0.125, 4, -3.2};
  const ErrorFigures m = measure(c, 0.5, x.data(), 5);
  // 0 -> 0, 0.25 -> 0.25, 0.125 -> 0, 4 -> 3, -3.2 -> -3.
  CHECK(m.error.mean == Approx((-0.125 - 1 + 0.2) / 5));
  CHECK(m.outward.mean == Approx((-0.125 - 1 - 0.2) / 5));
  CHECK(m.gain.mean ==
        Approx((-0.125 * 0.125 - 4 - 0.2 * 3.2) / (0.0625 + 0.015625 + 16 + 3.2 * 3.2)));
  CHECK(m.square.mean == Approx((0.015625 + 1 + 0.04) / 5));
  CHECK(m.relative.mean == Approx((1 + 1.0 / 16 + 0.04 / 10.24) / 4));
  CHECK(m.overflow.mean == Approx(0.2));   // 4; -3.2 / 0.5 = -6.4 rounds to -6
  CHECK(m.underflow.mean == Approx(0.2));  // 0.125 / 0.5 = 0.25 is inexact and below 1
  CHECK(m.to_zero.mean == Approx(0.2));
  CHECK(m.signal.mean == Approx((0.0625 + 0.015625 + 16 + 10.24) / 5));
}

TEST_CASE("measurements refuse empty samples, wide formats and bad scales", "[fast]") {
  const double x = 1;
  CHECK_THROWS_AS(measure(conversion("int4", "rne", "ieee"), 1, &x, 0), Error);
  CHECK_THROWS_AS(measure(conversion("int4", "rne", "ieee"), 0, &x, 1), Error);
  CHECK_THROWS_AS(measure(conversion("float32", "rne", "ieee"), 1, &x, 1), Error);
}

}  // namespace comparison_test

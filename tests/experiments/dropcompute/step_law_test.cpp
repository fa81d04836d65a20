// Closed forms of DropCompute's steps: published figures, laws whose answer is known, limits.
#include "experiments/dropcompute/step_law.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "formats/analysis/normal_law.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace step_law_test {

using namespace numemu;
using namespace numemu::experiments::dropcompute;
using numemu::stats::latency_law;

namespace {

/// E of the largest of N standard normal numbers, by quadrature of its distribution.
double largest_normal(double workers) {
  // E = int_0^inf P(max > x) - P(max < -x) dx by Simpson's rule; beyond 9 less than 1e-18 n is
  // left.
  constexpr int kSteps = 4608;
  constexpr double kEnd = 9, kStep = kEnd / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = i * kStep, tail = normal::cdf(-x);
    const double below = std::exp(workers * std::log(tail));
    const double weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * (-std::expm1(workers * std::log1p(-tail)) - below);
  }
  return sum * kStep / 3;
}

}  // namespace

TEST_CASE("dropcompute: the largest of N normal numbers, approximated and exact", "[fast]") {
  // Specification distributed.md, DropCompute (f), verified there.
  const struct {
    double workers, approximate, exact;
  } published[] = {{2, .519755, .564190},      {8, 1.459014, 1.423600},   {16, 1.800454, 1.765991},
                   {64, 2.369388, 2.343733},   {200, 2.765524, 2.746042}, {256, 2.845255, 2.826863},
                   {1024, 3.261860, 3.248240}, {4096, 3.636582, 3.626082}};
  for (const auto& row : published) {
    INFO(row.workers);
    CHECK(published_largest_normal(row.workers) == Approx(row.approximate).margin(5e-7));
    CHECK(largest_normal(row.workers) == Approx(row.exact).margin(5e-7));
  }
  CHECK(largest_normal(1) == Approx(0).margin(1e-12));
  CHECK(largest_normal(2) == Approx(1 / std::sqrt(M_PI)).epsilon(1e-9));
  CHECK(largest_normal(3) == Approx(1.5 / std::sqrt(M_PI)).epsilon(1e-9));
}

TEST_CASE("dropcompute: the published formulas give the published figures", "[fast]") {
  // M = 12, mu = 1, sigma = .4, T_c = .5 (c): E[T], speed-up and share at threshold 10.5, and the
  // scale-out efficiency (M mu + T_c) / (E[T] + T_c).
  const struct {
    std::int64_t workers;
    double time, gain, efficiency;
  } published[] = {
      {64, 15.283, 1.1989, .792}, {200, 15.832, 1.2406, .765}, {1024, 16.520, 1.2928, .734}};
  for (const auto& row : published) {
    const PublishedStep step(1, .16, {row.workers, 12, .5});
    INFO(row.workers);
    CHECK(step.time() == Approx(row.time).margin(5e-4));
    CHECK(step.kept(10.5) == Approx(.8356).margin(5e-5));
    CHECK(step.speed_up(10.5) == Approx(row.gain).margin(1.5e-4));
    CHECK(12.5 / (step.time() + .5) == Approx(row.efficiency).margin(5e-4));
    CHECK(step.best_threshold() == Approx(10.5).margin(.1));
  }
  // Delays injected by the published law with 200 workers: E[T] of the normal formula is 23.57.
  CHECK(PublishedStep(latency_law("injected(1,1)"), {200, 12, .5}).time() ==
        Approx(23.57).margin(5e-3));
}

TEST_CASE("dropcompute: the best threshold may lie below half the mean time", "[fast]") {
  // One micro-batch whose density falls: (1 - exp(-t)) / t is largest at 0.
  const SumLaws sums(latency_law("exponential(1)"), 1);
  const ExactStep step(sums, {64, 1, 0});
  const double best = step.best_threshold();
  CHECK(best > 0);
  CHECK(best < .02);
  CHECK(step.speed_up(best) > 1.2 * step.speed_up(.5));
}

TEST_CASE("dropcompute: exact steps of normal latencies are the order statistics' closed form",
          "[fast]") {
  // So narrow that no latency is below 0.
  const SumLaws sums(latency_law("normal(10,0.4)"), 12);
  for (const std::int64_t workers : {1, 2, 200, 100'000}) {
    INFO(workers);
    const ExactStep step(sums, {workers, 12, .5});
    const double spread = .4 * std::sqrt(12.0);
    // Rounding to the lattice adds at most a share of (spacing / sigma)^2 / 12 to the deviation;
    // draws of 32 bits have no tail beyond 2^-33.
    CHECK(step.time() ==
          Approx(120 + spread * largest_normal(static_cast<double>(workers))).margin(2e-4));
    const PublishedStep normal(10, .16, {workers, 12, .5});
    for (const double threshold : {50.0, 99.5, 105.2, 120.0}) {
      CHECK(step.kept(threshold) == Approx(normal.kept(threshold)).margin(2e-5));
      CHECK(step.time_until(threshold) <= threshold * (1 + 1e-12));
    }
    CHECK(step.time_until(200) == step.time());
    CHECK(step.time_until(100) == Approx(100).epsilon(1e-9));
  }
}

TEST_CASE("dropcompute: exact steps of other laws", "[fast]") {
  // The largest of N exponential latencies is the harmonic number; their sums are gamma laws.
  const SumLaws exponential(latency_law("exponential(1)"), 2);
  double harmonic = 0;
  for (int n = 1; n <= 1000; ++n) harmonic += 1.0 / n;
  CHECK(ExactStep(exponential, {1000, 1, 0}).time() == Approx(harmonic).epsilon(1e-4));
  CHECK(ExactStep(exponential, {1, 2, 0}).kept(1.5) ==
        Approx((1 - std::exp(-1.5) + 1 - std::exp(-1.5) * 2.5) / 2).epsilon(1e-4));
  // Without memory a micro-batch that passes the threshold goes on for the largest of N more:
  // E = threshold + H_N, where all workers surely pass it.
  const SumLaws many(latency_law("exponential(1)"), 16);
  CHECK(ExactStep(many, {1000, 16, 0}).time_checked(3) == Approx(3 + harmonic).epsilon(1e-4));
  // Constant latencies: T = M x, and nothing is lost or gained but at the threshold.
  const SumLaws constant(latency_law("constant(2)"), 4);
  const ExactStep step(constant, {1'000'000, 4, 1});
  CHECK(step.time() == 8);
  CHECK(step.kept(4) == .25);  // the second ends at 4, which is not before it
  CHECK(step.kept(4.5) == .5);
  CHECK(step.time_until(5) == 5);
  CHECK(step.time_checked(5) == 6);
  CHECK(step.time_checked(9) == 8);
  CHECK(step.speed_up(4.5) == Approx(.5 * 9 / 5.5));
}

TEST_CASE("dropcompute: the normal formula is 7 % low under injected delays", "[fast]") {
  const stats::LatencyLaw law = latency_law("injected(1,1)");
  const SumLaws sums(law, 12);
  const Accumulation at{200, 12, .5};
  const double low = PublishedStep(law, at).time() / ExactStep(sums, at).time() - 1;
  CHECK(low == Approx(-.07).margin(.01));  // the published figure is of a simulation
}

TEST_CASE("dropcompute: laws that the lattice cannot hold are refused", "[fast]") {
  CHECK_THAT(
      test::message_of([] { SumLaws(latency_law("lognormal(1,30)"), 12); }),
      Catch::Contains("latency lognormal(1,30): draws from") &&
          Catch::Contains("too wide for closed forms, expected a range of at most 127 standard"));
}

}  // namespace step_law_test

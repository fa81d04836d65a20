// Simulated steps of DropCompute: the worked example, closed forms, threads, a million workers.
#include "experiments/dropcompute/dropcompute.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "experiments/dropcompute/step_law.hpp"
#include "tests/catch.hpp"

namespace simulation_test {

using namespace numemu;
using namespace numemu::experiments::dropcompute;
using numemu::stats::latency_law;

TEST_CASE("dropcompute: the worked example of two workers", "[fast]") {
  // t = ((1,1,1), (1,2,3)), threshold 3.5 and overhead 1: T = 6, 2.5 of 3 micro-batches, speed-up
  // (2.5 / 3) (7 / 4.5) (specification distributed.md, DropCompute (f)).
  Simulation two{latency_law("constant(1)"), 2, 3};
  const double latencies[2][3] = {{1, 1, 1}, {1, 2, 3}};
  int at = 0;  // draws are asked for in order: one block, one thread
  two.law.quantile = [&](double) {
    const double latency = latencies[at / 3][at % 3];
    at = (at + 1) % 6;
    return latency;
  };
  const double thresholds[] = {1, 3, 3.5, 7};
  const DrawnStep step = draw_step(two, 0, thresholds);
  CHECK(step.time == 6);
  CHECK(step.finished == std::vector<std::int64_t>{0, 3, 5, 6});
  CHECK(step.checked == std::vector<double>{1, 3, 6, 6});
  CHECK(effective_speed_up(5 / 6.0, step.time, thresholds[2], 1) == Approx(1.2963).margin(5e-5));
  CHECK(accumulation_times(two, 1) == std::pair(3.0, 6.0));  // the last, where M is below 6
}

TEST_CASE("dropcompute: thresholds of the published code", "[fast]") {
  const Simulation steps{latency_law("normal(1,0.4)"), 3, 12, 5};
  double least = HUGE_VAL, most = 0;
  for (std::int64_t s = 0; s < 4; ++s) {
    const RandomSource source = stats::latency_source(5, "dropcompute", s, "compute");
    for (std::int64_t n = 0; n < 3; ++n) {
      double time = 0;
      for (std::int64_t m = 0; m < 12; ++m) {
        time += steps.law.draw(source, stats::latency_element(n, m));
        if (m == 5) least = std::min(least, time);
      }
      most = std::max(most, time);
    }
  }
  const std::vector<double> thresholds = published_thresholds(steps, 4);
  REQUIRE(thresholds.size() == 200);
  CHECK(thresholds.front() == least);
  CHECK(thresholds.back() == Approx(most).epsilon(1e-15));
  CHECK(std::is_sorted(thresholds.begin(), thresholds.end()));
}

TEST_CASE("dropcompute: simulated steps follow the closed forms of every law", "[fast]") {
  constexpr std::int64_t kSteps = 300;
  for (const char* const text :
       {"normal(1,0.4)", "lognormal(1,0.4)", "exponential(1)", "injected(1,1)"}) {
    const stats::LatencyLaw law = latency_law(text);
    const SumLaws sums(law, 12);
    for (const std::int64_t workers : {1, 2, 50}) {
      INFO(text << ", " << workers << " workers");
      const ExactStep exact(sums, {workers, 12, .5});
      const double thresholds[] = {8 * law.mean, 10 * law.mean};
      const Simulation simulation{law, workers, 12, 11};
      double sums_of[5] = {}, squares[5] = {};
      for (std::int64_t s = 0; s < kSteps; ++s) {
        const DrawnStep step = draw_step(simulation, s, thresholds);
        const double seen[5] = {
            step.time, std::min(step.time, thresholds[1]),
            static_cast<double>(step.finished[0]) / static_cast<double>(workers * 12),
            static_cast<double>(step.finished[1]) / static_cast<double>(workers * 12),
            step.checked[1]};
        for (int i = 0; i < 5; ++i) {
          sums_of[i] += seen[i] / kSteps;
          squares[i] += seen[i] * seen[i] / kSteps;
        }
      }
      const double expected[5] = {exact.time(), exact.time_until(thresholds[1]),
                                  exact.kept(thresholds[0]), exact.kept(thresholds[1]),
                                  exact.time_checked(thresholds[1])};
      for (int i = 0; i < 5; ++i) {
        INFO("figure " << i);
        // 60 comparisons: 4.5 standard errors have a probability of 4e-4, skewness aside.
        const double error =
            std::sqrt(std::max(0.0, squares[i] - sums_of[i] * sums_of[i]) / kSteps);
        CHECK(std::abs(sums_of[i] - expected[i]) <= 4.5 * error + 2e-4 * expected[i]);
      }
    }
  }
}

TEST_CASE("dropcompute: the same bits for any number of threads", "[fast]") {
  const Simulation simulation{latency_law("injected(1,1)"), 10'000, 12, 3};
  const double thresholds[] = {9, 14, 16, 30};
  const int before = omp_get_max_threads();
  DrawnStep steps[3];
  std::pair<double, double> times[3];
  for (int threads = 1; threads <= 3; ++threads) {
    omp_set_num_threads(threads);
    steps[threads - 1] = draw_step(simulation, 2, thresholds);
    times[threads - 1] = accumulation_times(simulation, 2);
  }
  omp_set_num_threads(before);
  for (int i = 1; i < 3; ++i) {
    CHECK(steps[i].time == steps[0].time);
    CHECK(steps[i].finished == steps[0].finished);
    CHECK(steps[i].checked == steps[0].checked);
    CHECK(times[i] == times[0]);
  }
}

TEST_CASE("dropcompute: a million workers", "[slow]") {
  // 12 million latencies at 200 thresholds; memory does not grow with the number of workers.
  const stats::LatencyLaw law = latency_law("normal(1,0.4)");
  const Simulation simulation{law, 1'000'000, 12};
  const std::vector<double> thresholds = published_thresholds(simulation, 1);
  const DrawnStep step = draw_step(simulation, 0, thresholds);
  const SumLaws sums(law, 12);
  const ExactStep exact(sums, {1'000'000, 12, .5});
  CHECK(step.time == Approx(exact.time()).epsilon(.05));  // one draw: its deviation is .3
  for (std::size_t k = 0; k < thresholds.size(); k += 20) {
    CHECK(static_cast<double>(step.finished[k]) / 12e6 ==
          Approx(exact.kept(thresholds[k])).margin(5e-4));
  }
}

}  // namespace simulation_test

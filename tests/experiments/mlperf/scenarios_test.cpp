#include "experiments/mlperf/scenarios.hpp"

#include <omp.h>

#include <cmath>
#include <string>

#include "emu/stats/queue.hpp"
#include "formats/error.hpp"
#include "formats/storage/fields.hpp"
#include "tests/catch.hpp"

namespace numemu::scenarios_test {
namespace {

using namespace numemu::experiments::mlperf;

MeasuredScenarios run_of(const char* law, const Rules& rules, std::int64_t run = 0) {
  return simulate({stats::latency_law(law), 1}, rules, 5, run);
}

}  // namespace

TEST_CASE("Queries of a confidence are those of the rules", "[fast]") {
  // inference_rules.adoc, section 3: tails of 90, 95, 97 and 99 %.
  CHECK(std::round(queries_of(0.90)) == 23886);
  CHECK(std::round(queries_of(0.95)) == 50425);
  CHECK(std::round(queries_of(0.97)) == 85811);
  CHECK(std::round(queries_of(0.99)) == 262742);
  CHECK(rounded_queries(0.90) == 24576);
  CHECK(rounded_queries(0.95) == 57344);
  CHECK(rounded_queries(0.97) == 90112);
  CHECK(rounded_queries(0.99) == 270336);
  CHECK(margin_of(0.99) == Approx(0.0005));
}

TEST_CASE("Confidence of a number of queries", "[fast]") {
  // The sum of the binomial law and the normal law of the same variance differ by the steps of a
  // count: less than one probability at either end.
  CHECK(confidence_of(0.9, 23886) == Approx(0.99).margin(0.001));
  CHECK(confidence_of(0.9, 23886, 1) == Approx(0.99).margin(1e-5));
  CHECK(confidence_of(0.9, 1024) == Approx(confidence_of(0.9, 1024, 1)).margin(0.05));
  // By hand: of 20 queries 2 are beyond, within .1 of one: exactly 2. 190 .1^2 .9^18.
  CHECK(confidence_of(0.9, 20) == Approx(190 * 0.01 * std::pow(0.9, 18)));
  CHECK(confidence_of(0.99, 270'336, 29.04) == Approx(0.372).margin(0.001));
}

TEST_CASE("A run has the least number of queries, or as many as its duration holds", "[fast]") {
  CHECK(run_queries(1024, 10, {.seconds = 600}) == 6000);
  CHECK(run_queries(1024, 1, {.seconds = 600}) == 1024);
  CHECK(run_queries(1024, 0.001, {.seconds = 0}) == 1024);
  CHECK_THROWS_AS(run_queries(1024, 1e9, {.seconds = 600}), Error);
}

TEST_CASE("A machine of constant speed", "[fast]") {
  const MeasuredScenarios m = run_of("constant(0.001)", {.seconds = 0, .server_rate = 500});
  CHECK(m.single == 0.001);
  CHECK(m.multi == Approx(0.008));
  CHECK(m.offline == Approx(1000));
  CHECK(m.late == Approx(stats::md1_tail(500, 0.001, 0.015)).margin(1e-4));
  CHECK(m.mean == Approx(stats::mg1_mean(500, 0.001, 0)).epsilon(0.02));
  const double rate = stats::largest_rate(
      [](double lambda) { return stats::md1_tail(lambda, 0.001, 0.015); }, 0.01, 1000);
  CHECK(m.rate == Approx(rate).epsilon(0.01));
  CHECK(m.halved_rate > 2 * m.rate);
}

TEST_CASE("Runs are functions of seed and number, whatever the threads", "[fast]") {
  const Rules rules{.seconds = 0, .server_rate = 600};
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::string one = json_of(run_of("exponential(1000)", rules)).dump();
  omp_set_num_threads(3);
  const std::string three = json_of(run_of("exponential(1000)", rules)).dump();
  omp_set_num_threads(threads);
  CHECK(one == three);
  CHECK(one != json_of(run_of("exponential(1000)", rules, 1)).dump());
}

}  // namespace numemu::scenarios_test

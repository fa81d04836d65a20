#include "emu/stats/queue.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "emu/stats/latency.hpp"
#include "emu/stats/mean.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::queue_test {
namespace {

using namespace numemu::stats;

std::vector<double> drawn(const char* law, std::int64_t n, std::int64_t run, const char* use) {
  const LatencyLaw of = latency_law(law);
  const RandomSource source = latency_source(7, "queue_test", run, use);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < n; ++i)
    numbers.push_back(of.draw(source, static_cast<std::uint64_t>(i)));
  return numbers;
}

/// Every event in turn: the next arrival, or the next end of a service.
std::vector<double> event_by_event(const std::vector<double>& gaps,
                                   const std::vector<double>& services, std::size_t servers) {
  std::vector<double> arrivals, latencies(gaps.size());
  double now = 0;
  for (const double gap : gaps) arrivals.push_back(now += gap);
  std::vector<std::size_t> line;
  std::vector<double> ends;
  std::size_t next = 0;
  now = 0;
  while (next < gaps.size() || !line.empty()) {
    const auto first = std::min_element(ends.begin(), ends.end());
    if (next < gaps.size() && (ends.empty() || arrivals[next] < *first)) {
      now = arrivals[next];
      line.push_back(next++);
    } else {
      now = *first;
      ends.erase(first);
    }
    while (!line.empty() && ends.size() < servers) {
      const std::size_t query = line.front();
      line.erase(line.begin());
      ends.push_back(now + services[query]);
      latencies[query] = ends.back() - arrivals[query];
    }
  }
  return latencies;
}

/// The mean over runs of a figure, and its standard error.
template <class Figure>
Mean over_runs(std::int64_t runs, const Figure& figure) {
  std::vector<double> all;
  for (std::int64_t run = 0; run < runs; ++run) all.push_back(figure(run));
  return mean_of(all);
}

constexpr double kErrors = 4;  // standard errors

}  // namespace

TEST_CASE("Latencies by hand", "[fast]") {
  // Arrivals at 1, 2, 3, 10; the second waits 1, the third 3.
  CHECK(queue_latencies(std::vector<double>{1, 1, 1, 7}, std::vector<double>{2, 3, 1, 1}) ==
        std::vector<double>{2, 4, 4, 1});
  // Two servers: the third takes the first that is free, at 3.
  CHECK(queue_latencies(std::vector<double>{1, 1, 1, 7}, std::vector<double>{2, 3, 1, 1}, 2) ==
        std::vector<double>{2, 3, 1, 1});
  CHECK(queue_latencies(std::vector<double>{1, 1}, std::vector<double>{2, 2}, 1, 0.5) ==
        std::vector<double>{2, 3.5});
  CHECK(queue_latencies({}, {}).empty());
}

TEST_CASE("D/D/1: nobody waits up to the capacity, and beyond it the queue grows evenly",
          "[fast]") {
  const std::vector<double> gaps(100, 1.0), services(100, 1.0);
  for (const double stretch : {1.5, 1.0})
    CHECK(queue_latencies(gaps, services, 1, stretch) == services);
  const std::vector<double> late = queue_latencies(gaps, services, 1, 0.75);
  for (std::size_t i = 0; i < late.size(); ++i)  // sums of quarters are exact
    CHECK(late[i] == 1 + 0.25 * static_cast<double>(i));
}

TEST_CASE("Latencies are those of the events in turn", "[fast]") {
  for (const std::size_t servers : {1, 2, 3, 7}) {
    const std::vector<double> gaps = drawn("exponential(3)", 2000, 0, "gap"),
                              services = drawn("lognormal(1,2)", 2000, 0, "service");
    const std::vector<double> measured =
        queue_latencies(gaps, services, static_cast<std::int64_t>(servers));
    const std::vector<double> expected = event_by_event(gaps, services, servers);
    for (std::size_t i = 0; i < gaps.size(); ++i)
      REQUIRE(measured[i] == Approx(expected[i]).epsilon(1e-9));
  }
}

TEST_CASE("Latencies do not fall as gaps shrink", "[fast]") {
  const std::vector<double> gaps = drawn("exponential(1)", 3000, 1, "gap"),
                            services = drawn("exponential(1)", 3000, 1, "service");
  for (const std::int64_t servers : {1, 3}) {
    std::vector<double> before(gaps.size(), 0.0);
    for (const double stretch : {3.0, 1.5, 1.0, 0.9, 0.2}) {
      const std::vector<double> now = queue_latencies(gaps, services, servers, stretch);
      for (std::size_t i = 0; i < now.size(); ++i) REQUIRE(now[i] >= before[i] - 1e-9);
      before = now;
    }
  }
}

TEST_CASE("Percentiles and shares", "[fast]") {
  const std::vector<double> numbers = {5, 1, 4, 2, 3, 10, 9, 8, 7, 6};
  CHECK(percentile(numbers, 0.9) == 9);
  CHECK(percentile(numbers, 0.91) == 10);
  CHECK(percentile(numbers, 1) == 10);
  CHECK(percentile(numbers, 1e-9) == 1);
  CHECK(share_above(numbers, 9) == 0.1);
  CHECK(share_above(numbers, percentile(numbers, 0.9)) <= 0.1 + 1e-15);
}

TEST_CASE("M/M/1: latencies are exponential, and the largest rate", "[fast]") {
  CHECK(mmc_tail(693, 1000, 1, 0.015) == Approx(std::exp(-307 * 0.015)));
  // mu - ln(1 / (1 - .99)) / t, by hand: 1000 - 4.605170186 / .015.
  constexpr double rate = 692.9886543;
  CHECK(mmc_tail(rate, 1000, 1, 0.015) == Approx(0.01));
  CHECK(largest_rate([](double lambda) { return mmc_tail(lambda, 1000, 1, 0.015); }, 0.01, 1000) ==
        Approx(rate));
}

TEST_CASE("M/M/c: waiting by Erlang C", "[fast]") {
  // Two servers at load 1: C = 1/3, and at t = 0 all is still to come.
  CHECK(mmc_tail(1, 1, 2, 0) == Approx(1));
  // theta = mu there: (2/3) e^-t + (1/3) (1 + t) e^-t.
  CHECK(mmc_tail(1, 1, 2, 1.5) == Approx((2.0 / 3 + 2.5 / 3) * std::exp(-1.5)));
  // Many servers: nobody waits.
  CHECK(mmc_tail(1, 1, 100, 2) == Approx(std::exp(-2)));
  for (const std::int64_t servers : {2, 4}) {
    const auto c = static_cast<double>(servers);
    const Mean share = over_runs(20, [&](std::int64_t run) {
      return share_above(
          queue_latencies(drawn("exponential(1)", 20'000, run, "gap"),
                          drawn("exponential(1)", 20'000, run, "service"), servers, 1 / (0.8 * c)),
          4);
    });
    CHECK(std::abs(share.value - mmc_tail(0.8 * c, 1, servers, 4)) <= kErrors * share.error);
  }
}

TEST_CASE("M/D/1: Crommelin's law", "[fast]") {
  // No wait with probability 1 - load; within the first service time e^(lambda x) as likely.
  CHECK(md1_tail(0.5, 1, 1) == Approx(0.5));
  CHECK(md1_tail(0.5, 1, 1.5) == Approx(1 - 0.5 * std::exp(0.25)));
  // Crommelin's alternating sum, with few terms.
  const auto crommelin = [](double lambda, double x) {
    double sum = 0, factorial = 1;
    for (int k = 0; k <= static_cast<int>(x); ++k) {
      if (k > 0) factorial *= k;
      sum += std::pow(-lambda * (x - k), k) / factorial * std::exp(lambda * (x - k));
    }
    return 1 - (1 - lambda) * sum;
  };
  for (const double lambda : {0.2, 0.7, 0.95})
    for (const double wait : {0.5, 1.0, 2.3, 5.75, 9.0})
      CHECK(md1_tail(lambda, 1, 1 + wait) == Approx(crommelin(lambda, wait)).margin(1e-9));
  CHECK(md1_tail(0.4, 2, 1.9) == 1);
  // The tail falls by a constant factor in the end: no cancellation.
  const double ratio = md1_tail(0.9, 1, 101) / md1_tail(0.9, 1, 100);
  CHECK(md1_tail(0.9, 1, 51) / md1_tail(0.9, 1, 50) == Approx(ratio).epsilon(1e-4));
}

TEST_CASE("Means by Pollaczek and Khinchine", "[fast]") {
  CHECK(mg1_mean(0.5, 1, 1) == Approx(2));    // M/M/1: 1 / (mu - lambda)
  CHECK(mg1_mean(0.5, 1, 0) == Approx(1.5));  // M/D/1
  const LatencyLaw law = latency_law("lognormal(1,1.5)");
  const Mean mean = over_runs(20, [&](std::int64_t run) {
    return mean_of(queue_latencies(drawn("exponential(0.6)", 20'000, run, "gap"),
                                   drawn("lognormal(1,1.5)", 20'000, run, "service")))
        .value;
  });
  CHECK(std::abs(mean.value - mg1_mean(0.6, 1, law.variance)) <= kErrors * mean.error);
}

TEST_CASE("Queries of a queue tell less than independent ones, by a closed form", "[fast]") {
  CHECK(mm1_variance_factor(0, 1, 3) == 1);  // no queue
  CHECK(mm1_variance_factor(692.9886543, 1000, 0.015) == Approx(29.0).epsilon(0.01));
  // The variance over runs, whose relative standard error is sqrt(2 / (runs - 1)); a run is some
  // thousand times as long as what the latencies remember.
  const double lambda = 0.6, t = 5, p = mmc_tail(lambda, 1, 1, t);
  const std::int64_t runs = 400, n = 20'000;
  const Mean share = over_runs(runs, [&](std::int64_t run) {
    return share_above(queue_latencies(drawn("exponential(0.6)", n, run, "gap"),
                                       drawn("exponential(1)", n, run, "service")),
                       t);
  });
  const double factor = share.deviation * share.deviation * static_cast<double>(n) / (p * (1 - p));
  const double error = std::sqrt(2.0 / (runs - 1)) * mm1_variance_factor(lambda, 1, t);
  CHECK(std::abs(factor - mm1_variance_factor(lambda, 1, t)) <= kErrors * error);
}

TEST_CASE("Sums of exponential times", "[fast]") {
  CHECK(erlang_tail(1, 2) == Approx(std::exp(-2)));
  CHECK(erlang_tail(3, 2) == Approx(std::exp(-2) * (1 + 2 + 2)));
  CHECK(erlang_tail(3, 0) == 1);
  CHECK(erlang_tail(1000, 1000) == Approx(0.5).epsilon(0.02));
  CHECK(erlang_tail(8, 1e6) == 0);
  CHECK(erlang_tail(8, erlang_quantile(8, 0.01)) == Approx(0.01));
  CHECK(2 * erlang_quantile(8, 0.01) == Approx(31.99993).epsilon(1e-5));  // chi-squared, 16 degrees
}

TEST_CASE("Queues that do not keep up are refused", "[fast]") {
  using numemu::test::message_of;
  CHECK(message_of([] { mmc_tail(2, 1, 2, 1); }) ==
        "queue: expected a rate of arrivals from 0 to below 2, which the servers keep up with, "
        "not 2");
  CHECK(message_of([] { mmc_tail(1, 1, 0, 1); }) ==
        "queue: servers: expected from 1 to 1000000, not 0");
  CHECK(message_of([] { queue_latencies(std::vector<double>{1}, {}); }) ==
        "queue: expected as many service times as gaps, not 0 and 1");
  CHECK_FALSE(message_of([] { md1_tail(0.5, 1, 1e9); }).empty());
  CHECK_FALSE(message_of([] { erlang_tail(0, 1); }).empty());
  CHECK_FALSE(message_of([] { percentile({}, 0.5); }).empty());
}

}  // namespace numemu::queue_test

#include "emu/stats/queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::stats {
namespace {

constexpr std::int64_t kMostServers = 1'000'000, kMostStages = 1'000'000;

void require_queue(bool fine, const std::string& what) {
  if (!fine) throw Error("queue: " + what);
}

void require_rates(double lambda, double most, double t) {
  require_queue(lambda >= 0 && lambda < most,
                fmt::format("expected a rate of arrivals from 0 to below {}, which the servers "
                            "keep up with, not {}",
                            most, lambda));
  require_queue(t >= 0, fmt::format("expected a latency from 0, not {}", t));
}

std::vector<double> by_one_server(std::span<const double> gaps, std::span<const double> services,
                                  double stretch) {
  std::vector<double> latencies(gaps.size());
  double latency = 0;  // of the query before
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const double wait = i == 0 ? 0 : std::max(0.0, latency - gaps[i] * stretch);
    latencies[i] = latency = wait + services[i];
  }
  return latencies;
}

}  // namespace

std::vector<double> queue_latencies(std::span<const double> gaps, std::span<const double> services,
                                    std::int64_t servers, double stretch) {
  require_queue(gaps.size() == services.size(),
                fmt::format("expected as many service times as gaps, not {} and {}",
                            services.size(), gaps.size()));
  require_queue(servers >= 1 && servers <= kMostServers,
                fmt::format("servers: expected from 1 to {}, not {}", kMostServers, servers));
  if (servers == 1) return by_one_server(gaps, services, stretch);
  std::vector<double> free(std::min(static_cast<std::size_t>(servers), gaps.size()), 0.0);
  std::vector<double> latencies(gaps.size());
  double now = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    now += gaps[i] * stretch;
    std::pop_heap(free.begin(), free.end(), std::greater<>());  // the earliest to the back
    const double end = std::max(now, free.back()) + services[i];
    latencies[i] = end - now;
    free.back() = end;
    std::push_heap(free.begin(), free.end(), std::greater<>());
  }
  return latencies;
}

double percentile(std::vector<double> numbers, double share) {
  require_queue(!numbers.empty(), "expected at least one number for a percentile");
  const auto n = static_cast<double>(numbers.size());
  const double place = std::clamp(std::ceil(share * n), 1.0, n) - 1;
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

double share_above(std::span<const double> numbers, double bound) {
  const auto above =
      std::count_if(numbers.begin(), numbers.end(), [&](double x) { return x > bound; });
  return static_cast<double>(above) / static_cast<double>(numbers.size());
}

double mmc_tail(double lambda, double mu, std::int64_t servers, double t) {
  require_queue(servers >= 1 && servers <= kMostServers,
                fmt::format("servers: expected from 1 to {}, not {}", kMostServers, servers));
  const auto c = static_cast<double>(servers);
  require_rates(lambda, c * mu, t);
  const double theta = c * mu - lambda;
  if (servers == 1) return portable::exp(-theta * t);
  // Erlang B by its recursion, C from it: the probability of waiting.
  const double load = lambda / mu;
  double blocked = 1;
  for (std::int64_t i = 1; i <= servers; ++i)
    blocked = load * blocked / (static_cast<double>(i) + load * blocked);
  const double waits = c * blocked / (c - load * (1 - blocked));
  const double served = portable::exp(-mu * t);
  // Service after a wait of rate theta; (theta e^-mt - m e^-theta t) / (theta - m), and its limit
  // for equal rates.
  const double apart = theta - mu, x = apart * t;
  constexpr double kClose = 1e-9;  // of x: (1 - e^-x) / x is 1 - x / 2 + ...
  const double quotient = std::abs(x) < kClose ? t : -portable::expm1(-x) / apart;
  const double after = served * (1 + mu * quotient);
  return (1 - waits) * served + waits * after;
}

double md1_tail(double lambda, double service, double t) {
  require_queue(service > 0, fmt::format("expected a service time above 0, not {}", service));
  require_rates(lambda, 1 / service, t);
  if (t < service) return 1;
  const double arrivals = lambda * service;  // during a service, in the mean
  const double periods = std::floor((t - service) / service) + 1;
  constexpr double kMostPeriods = 100'000;
  require_queue(
      periods <= kMostPeriods,
      fmt::format("expected a latency of at most {} services, not {}", kMostPeriods, t / service));
  const auto k = static_cast<std::int64_t>(periods);
  // Arrivals of one service: their probabilities, and those of more.
  std::vector<double> more;
  double term = portable::exp(-arrivals), sum = term;
  const double none = term;
  for (std::int64_t i = 0; i <= k; ++i) {
    more.push_back(std::max(0.0, 1 - sum));
    term *= arrivals / static_cast<double>(i + 1);
    sum += term;
  }
  // p_(j+1) P(none) = p_0 P(more than j) + sum over i = 1..j of p_i P(more than j - i + 1): as many
  // services end above j as below it.
  std::vector<double> p = {1 - arrivals};
  for (std::int64_t j = 0; j < k; ++j) {
    double flow = p[0] * more[static_cast<std::size_t>(j)];
    for (std::int64_t i = 1; i <= j; ++i)
      flow += p[static_cast<std::size_t>(i)] * more[static_cast<std::size_t>(j - i + 1)];
    p.push_back(flow / none);
  }
  // P(wait <= k D - u) = sum over j of P(j arrivals in u) P(at most k - j in the system).
  std::vector<double> at_most;
  double below = 0;
  for (const double one : p) at_most.push_back(below += one);
  const double u = periods * service - (t - service);
  double weight = portable::exp(-lambda * u), waits_less = 0;
  for (std::int64_t j = 0; j < k; ++j) {
    waits_less += weight * at_most[static_cast<std::size_t>(k - j)];
    weight *= lambda * u / static_cast<double>(j + 1);
  }
  return std::clamp(1 - waits_less, 0.0, 1.0);
}

double mg1_mean(double lambda, double mean, double variance) {
  require_rates(lambda, 1 / mean, 0);
  return mean + lambda * (variance + mean * mean) / (2 * (1 - lambda * mean));
}

double largest_rate(const std::function<double(double lambda)>& tail, double p, double most,
                    int steps) {
  double low = 0, high = most;
  for (int step = 0; step < steps; ++step) {
    const double middle = low + (high - low) / 2;
    (tail(middle) <= p ? low : high) = middle;
  }
  return low;
}

double mm1_variance_factor(double lambda, double mu, double t) {
  require_rates(lambda, mu, t);
  const double theta = mu - lambda, p = portable::exp(-theta * t);
  if (!(p < 1)) return 1;
  return 1 + 4 * lambda * mu / (theta * theta) * (1 - p - p * theta * t) / (1 - p);
}

double erlang_tail(std::int64_t n, double x) {
  require_queue(n >= 1 && n <= kMostStages,
                fmt::format("expected from 1 to {} times, not {}", kMostStages, n));
  if (!(x > 0)) return 1;
  // Terms x^i / i!, scaled so that the largest is 1: none overflows.
  const std::int64_t largest = std::min(n - 1, static_cast<std::int64_t>(std::min(x, 1e7)));
  double sum = 1, logarithm = -x, term = 1;
  for (std::int64_t i = 1; i <= largest; ++i)
    logarithm += portable::log(x / static_cast<double>(i));
  for (std::int64_t i = largest; i > 0; --i) sum += term *= static_cast<double>(i) / x;
  term = 1;
  for (std::int64_t i = largest + 1; i < n; ++i) sum += term *= x / static_cast<double>(i);
  return std::min(1.0, sum * portable::exp(logarithm));
}

double erlang_quantile(std::int64_t n, double p) {
  double low = 0, high = static_cast<double>(n) + 1;
  while (erlang_tail(n, high) > p) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = low + (high - low) / 2;
    (erlang_tail(n, middle) > p ? low : high) = middle;
  }
  return high;
}

}  // namespace numemu::stats

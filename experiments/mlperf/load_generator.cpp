#include "experiments/mlperf/load_generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/queue.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::mlperf {
namespace {

constexpr int kRateSteps = 20;  // to a millionth of the capacity
constexpr std::int64_t kRounded = 8192;

/// Draws of one use in a run.
std::vector<double> draws(const stats::LatencyLaw& law, std::int64_t n, std::uint64_t seed,
                          std::int64_t run, const char* use) {
  const RandomSource source = stats::latency_source(seed, "mlperf", run, use);
  std::vector<double> numbers(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = law.draw(source, i);
  return numbers;
}

double sum_of(std::span<const double> numbers) {
  return pairwise_sum(static_cast<std::int64_t>(numbers.size()),
                      [&](std::int64_t i) { return numbers[static_cast<std::size_t>(i)]; });
}

/// The share of batches of n latencies whose share beyond the law's percentile is within the
/// margin.
double within_margin(std::span<const double> latencies, std::size_t n, double percentile,
                     std::int64_t& batches) {
  batches = static_cast<std::int64_t>(latencies.size() / n);
  std::int64_t within = 0;
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto batch = latencies.subspan(static_cast<std::size_t>(b) * n, n);
    const double beyond = stats::share_above(batch, percentile);
    within += std::abs(beyond - (1 - kSingleTail)) <= margin_of(kSingleTail) ? 1 : 0;
  }
  return batches == 0 ? 0 : static_cast<double>(within) / static_cast<double>(batches);
}

}  // namespace

double margin_of(double tail) { return (1 - tail) / 20; }

double queries_of(double tail) {
  return stats::images_needed(tail * (1 - tail), margin_of(tail), stats::kNormal99);
}

std::int64_t rounded_queries(double tail) {
  const auto queries = static_cast<std::int64_t>(std::ceil(queries_of(tail)));
  return (queries + kRounded - 1) / kRounded * kRounded;
}

double confidence_of(double tail, std::int64_t n) {
  const double p = 1 - tail, mean = p * static_cast<double>(n),
               reach = margin_of(tail) * static_cast<double>(n);
  // Numbers at an end of the margin count, whatever their rounding.
  constexpr double kEnd = 1e-9;
  double sum = 0;
  for (double i = std::max(0.0, std::ceil(mean - reach - kEnd)); i <= mean + reach + kEnd; ++i)
    sum += stats::binomial_probability(static_cast<int>(n), static_cast<int>(i), p);
  return sum;
}

double confidence_of(double tail, std::int64_t n, double factor) {
  const double error = std::sqrt(factor * tail * (1 - tail) / static_cast<double>(n));
  return 1 - 2 * normal::cdf(-margin_of(tail) / error);
}

std::int64_t run_queries(std::int64_t least, double rate, const Rules& rules) {
  const double queries = std::max(static_cast<double>(least), std::ceil(rules.seconds * rate));
  if (!(queries <= static_cast<double>(rules.most)))
    throw usage_error(
        fmt::format("mlperf: a run of {} seconds at {:.4g} queries per second: expected at "
                    "most {} queries, longer service times or fewer seconds",
                    rules.seconds, rate, rules.most));
  return static_cast<std::int64_t>(queries);
}

Measured simulate(const Machine& machine, const Rules& rules, std::uint64_t seed,
                  std::int64_t run) {
  const stats::LatencyLaw& law = machine.service;
  Measured measured;
  {
    // One after the other: latencies are service times.
    const std::vector<double> single =
        draws(law, run_queries(kSingleQueries, 1 / law.mean, rules), seed, run, "single");
    measured.single = stats::percentile(single, kSingleTail);
    const double percentile = law.quantile(kSingleTail);
    measured.few = within_margin(single, kSingleQueries, percentile, measured.few_of);
    measured.many = within_margin(single, kOfflineSamples, percentile, measured.many_of);
  }
  {
    const std::int64_t queries =
        run_queries(kServerQueries, 1 / (law.mean * static_cast<double>(kMultiSamples)), rules);
    const std::vector<double> samples = draws(law, queries * kMultiSamples, seed, run, "multi");
    std::vector<double> latencies;
    for (std::size_t i = 0; i < samples.size(); i += kMultiSamples)
      latencies.push_back(sum_of(std::span(samples).subspan(i, kMultiSamples)));
    measured.multi = stats::percentile(std::move(latencies), kTail);
  }
  // Gaps in means, so that a rate only stretches them: the share of late queries rises with it.
  const std::int64_t queries = run_queries(kServerQueries, machine.capacity(), rules);
  const std::vector<double> services = draws(law, queries, seed, run, "server"),
                            gaps = draws(stats::latency_law("exponential(1)"), queries, seed, run,
                                         "arrival");
  const auto latencies = [&](double rate) {
    return stats::queue_latencies(gaps, services, machine.servers, 1 / rate);
  };
  const std::vector<double> at = latencies(rules.server_rate);
  measured.late = stats::share_above(at, rules.bound);
  measured.first_late = stats::share_above(
      std::span(at).first(static_cast<std::size_t>(kServerQueries)), rules.bound);
  measured.mean = sum_of(at) / static_cast<double>(queries);
  const auto largest = [&](double bound) {
    return stats::largest_rate(
        [&](double rate) { return stats::share_above(latencies(rate), bound); }, 1 - kTail,
        machine.capacity(), kRateSteps);
  };
  measured.rate = largest(rules.bound);
  // Halved service times and gaps halve latencies.
  measured.halved_rate = 2 * largest(2 * rules.bound);
  // All samples at once.
  const std::vector<double> none(services.size(), 0.0);
  const std::vector<double> ends = stats::queue_latencies(none, services, machine.servers);
  measured.offline = static_cast<double>(queries) / *std::max_element(ends.begin(), ends.end());
  return measured;
}

}  // namespace numemu::experiments::mlperf

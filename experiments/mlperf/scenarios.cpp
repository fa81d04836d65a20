#include "experiments/mlperf/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/queue.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/call_text.hpp"
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

MeasuredScenarios simulate(const Machine& machine, const Rules& rules, std::uint64_t seed,
                           std::int64_t run) {
  const stats::LatencyLaw& law = machine.service;
  MeasuredScenarios measured;
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

namespace {

/// A machine, and the law that decides which closed forms it has.
struct Case {
  std::string name;
  Machine machine;
  bool exponential = false, constant = false;
  Rules rules;

  /// P(latency > t) in Server, where a closed form is known.
  std::optional<double> tail(double rate, double t) const {
    const double mean = machine.service.mean;
    if (exponential) return stats::mmc_tail(rate, 1 / mean, machine.servers, t);
    if (constant && machine.servers == 1) return stats::md1_tail(rate, mean, t);
    return {};
  }
  std::optional<double> largest_rate(double bound) const {
    if (!tail(0, bound)) return {};
    return stats::largest_rate([&](double rate) { return *tail(rate, bound); }, 1 - kTail,
                               machine.capacity());
  }
};

/// Of the capacity, where no largest rate is known.
constexpr double kLoad = 0.7;
constexpr double kClaimed = 99;  // per cent of runs within the margin, by the rules

std::vector<Case> cases_of(const Settings& settings) {
  std::vector<Case> cases;
  Rules rules{.seconds = settings.number("seconds"), .bound = settings.number("bound")};
  for (const std::string& text : settings.list("services")) {
    for (const std::int64_t servers : settings.whole_numbers("servers")) {
      Case one{text, {stats::latency_law(text), servers}, false, false, rules};
      const std::string law = parse_call(text).name;
      one.exponential = law == "exponential";
      one.constant = law == "constant";
      if (servers > 1 && !one.exponential) continue;  // no closed form
      if (servers > 1) one.name += fmt::format(" on {} servers", servers);
      one.rules.server_rate =
          one.largest_rate(rules.bound).value_or(kLoad * one.machine.capacity());
      if (!(one.rules.server_rate > 0))
        throw usage_error(
            fmt::format("--set: bound: expected more than the {:g} seconds that {} takes "
                        "for nearly all samples",
                        rules.bound, text));
      cases.push_back(std::move(one));
    }
  }
  if (cases.empty())
    throw usage_error("--set: servers: expected 1 among them, or exponential(RATE) among services");
  return cases;
}

/// The runs of a case.
struct Runs {
  std::vector<MeasuredScenarios> all;

  template <class Get>
  stats::Mean mean(const Get& get) const {
    return stats::mean_of(std::ssize(all), [&](std::int64_t i) {
      return static_cast<double>(std::invoke(get, all[static_cast<std::size_t>(i)]));
    });
  }
};

std::vector<Runs> simulate_all(const ExperimentRun& run, const std::vector<Case>& cases) {
  const std::int64_t runs = run.settings.integer("runs");
  std::vector<TypedTrial<MeasuredScenarios>> trials;
  for (const Case& one : cases) {
    for (std::int64_t r = 0; r < runs; ++r) {
      trials.push_back(
          {{{"scenarios", one.machine.service.identity},
            {"servers", one.machine.servers},
            {"seconds", one.rules.seconds},
            {"bound", one.rules.bound},
            {"rate", one.rules.server_rate},
            {"seed", run.seed},
            {"run", r}},
           fmt::format("{}, run {}", one.name, r),
           [&one, seed = run.seed, r] { return simulate(one.machine, one.rules, seed, r); }});
    }
  }
  const std::vector<MeasuredScenarios> measured =
      run_typed(run, std::move(trials), /*at_once=*/true);
  std::vector<Runs> all(cases.size());
  for (std::size_t i = 0; i < measured.size(); ++i)
    all[i / static_cast<std::size_t>(runs)].all.push_back(measured[i]);
  return all;
}

/// The 99th percentile of the sum of a query's samples, where it is known.
std::optional<double> multi_latency(const Case& c) {
  if (c.constant) return c.machine.service.mean * kMultiSamples;
  if (c.exponential)
    return c.machine.service.mean * stats::erlang_quantile(kMultiSamples, 1 - kTail);
  return {};
}

void judge_scenarios(const Case& c, const Runs& runs, Conclusion& conclusion) {
  const auto add = [&](const char* what, std::optional<double> predicted, auto member,
                       const char* claim) {
    if (!predicted) return;
    const stats::Mean mean = runs.mean(member);
    conclusion.add(closed_form(fmt::format("{}: {}", c.name, what), *predicted, mean.value,
                               c.constant && mean.deviation == 0 ? 0 : mean.error),
                   claim);
  };
  const double mean = c.machine.service.mean;
  if (c.machine.servers == 1) {
    add(
        "90th percentile in SingleStream, ms", 1e3 * c.machine.service.quantile(kSingleTail),
        [](const MeasuredScenarios& m) { return 1e3 * m.single; }, "scenarios");
    std::optional<double> multi = multi_latency(c);
    if (multi) *multi *= 1e3;
    add(
        "99th percentile in MultiStream, ms", multi,
        [](const MeasuredScenarios& m) { return 1e3 * m.multi; }, "scenarios");
    add(
        "mean latency in Server, ms",
        1e3 * stats::mg1_mean(c.rules.server_rate, mean, c.machine.service.variance),
        [](const MeasuredScenarios& m) { return 1e3 * m.mean; }, "server");
  }
  add("samples per second in Offline", c.machine.capacity(), &MeasuredScenarios::offline,
      "scenarios");
  std::optional<double> late = c.tail(c.rules.server_rate, c.rules.bound);
  if (late) *late *= 100;
  add(
      "share of late queries in Server, %", late,
      [](const MeasuredScenarios& m) { return 100 * m.late; }, "server");
  const std::optional<double> rate = c.largest_rate(c.rules.bound),
                              twice = c.largest_rate(2 * c.rules.bound);
  add("largest rate in Server", rate, &MeasuredScenarios::rate, "server");
  if (rate && twice)
    add(
        "gain of the largest rate by a machine twice as fast", 2 * *twice / *rate,
        [](const MeasuredScenarios& m) { return m.halved_rate / m.rate; }, "speed");
}

/// How often runs of so many independent queries come within the margin. Every law with a density
/// is drawn from the same uniform numbers, of which the margin alone decides: one law speaks for
/// all.
void judge_independent(const Runs& runs, Conclusion& conclusion) {
  const auto share = [&](const char* what, std::int64_t queries, double MeasuredScenarios::*within,
                         std::int64_t MeasuredScenarios::*batches, const char* claim) {
    std::int64_t hits = 0, n = 0;
    for (const MeasuredScenarios& m : runs.all) {
      n += m.*batches;
      hits += std::llround(m.*within * static_cast<double>(m.*batches));
    }
    if (n == 0) return;
    const double measured = static_cast<double>(hits) / static_cast<double>(n),
                 predicted = confidence_of(kSingleTail, queries);
    conclusion.add(
        closed_form(fmt::format("{}, %", what), 100 * predicted, 100 * measured,
                    100 * std::sqrt(predicted * (1 - predicted) / static_cast<double>(n))),
        claim);
  };
  share("runs of 24,576 single queries within the margin", kOfflineSamples,
        &MeasuredScenarios::many, &MeasuredScenarios::many_of, "independent");
  share("runs of 1,024 single queries within the margin", kSingleQueries, &MeasuredScenarios::few,
        &MeasuredScenarios::few_of, "few");
}

/// What the queue of an exponential law on one server does to the share of late queries.
void judge_queue(const Case& c, const Runs& runs, Conclusion& conclusion) {
  // The variance of R runs has a relative standard error of sqrt(2 / (R - 1)).
  const double p = 1 - kTail, rate = c.rules.server_rate;
  const double factor = stats::mm1_variance_factor(rate, 1 / c.machine.service.mean, c.rules.bound);
  const stats::Mean first = runs.mean(&MeasuredScenarios::first_late);
  const double measured = first.deviation * first.deviation * kServerQueries / (p * (1 - p));
  conclusion.add(closed_form(fmt::format("{}: variance of the share of late queries, over that of "
                                         "independent ones",
                                         c.name),
                             factor, measured,
                             factor * std::sqrt(2 / static_cast<double>(runs.all.size() - 1))),
                 "queue");
  std::int64_t within = 0;
  for (const MeasuredScenarios& m : runs.all)
    within += std::abs(m.first_late - p) <= margin_of(kTail) ? 1 : 0;
  const std::int64_t n = std::ssize(runs.all);
  const stats::Interval share = stats::wilson(within, n);
  const stats::Interval interval{100 * share.low, 100 * share.high};
  const double percent = 100 * static_cast<double>(within) / static_cast<double>(n),
               expected = 100 * confidence_of(kTail, kServerQueries, factor);
  const std::string what =
      fmt::format("{}: runs of 270,336 queries of Server within the margin, %", c.name);
  conclusion.add(
      interval_finding(what + ", at least", kClaimed, percent, interval, at_least(kClaimed)),
      "dependent");
  conclusion.add(
      interval_finding(what, expected, percent, interval, near(expected, kClosedForm * expected)),
      "dependent, predicted");
  conclusion.sentences.push_back(fmt::format(
      "{}: at {:.1f} queries per second the share of late queries varies as that of {:.1f} times "
      "fewer independent ones; 99 % confidence takes {:.2g} queries instead of {}.",
      c.name, rate, factor, factor * queries_of(kTail), kServerQueries));
}

ResultTable query_table() {
  ResultTable table{"Independent queries whose tail is known within the margin at 99 %",
                    {"tail, %", "margin, %", "queries", "rounded up to multiples of 8192",
                     "confidence of 1,024 queries, %"},
                    {}};
  for (const double tail : {0.9, 0.95, 0.97, 0.99})
    table.rows.push_back(
        {fmt::format("{:.0f}", 100 * tail), fmt::format("{:.2f}", 100 * margin_of(tail)),
         fmt::format("{:.0f}", queries_of(tail)), fmt::format("{}", rounded_queries(tail)),
         fmt::format("{:.1f}", 100 * confidence_of(tail, kSingleQueries))});
  return table;
}

ResultTable scenario_table(const std::vector<Case>& cases, const std::vector<Runs>& runs) {
  ResultTable table{
      fmt::format("Scenarios of simulated machines, means of {} runs", runs.front().all.size()),
      {"seconds of a sample", "SingleStream p90, ms", "MultiStream p99, ms", "Offline, samples/s",
       "Server, queries/s", "share of the capacity, %", "gain by a machine twice as fast"},
      {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto text = [&](auto member, int digits) {
      return decimal_text(runs[i].mean(member).value, digits);
    };
    const bool one = cases[i].machine.servers == 1;
    table.rows.push_back(
        {cases[i].name,
         one ? text([](const MeasuredScenarios& m) { return 1e3 * m.single; }, 4) : "-",
         one ? text([](const MeasuredScenarios& m) { return 1e3 * m.multi; }, 4) : "-",
         text(&MeasuredScenarios::offline, 1), text(&MeasuredScenarios::rate, 1),
         text(
             [&](const MeasuredScenarios& m) { return 100 * m.rate / cases[i].machine.capacity(); },
             1),
         text([](const MeasuredScenarios& m) { return m.halved_rate / m.rate; }, 3)});
  }
  return table;
}

/// The largest rate against the bound of the latency, with the points that were simulated.
Chart rate_chart(const std::vector<Case>& cases, const std::vector<Runs>& runs) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "Largest rate in Server against the bound of its 99th percentile",
              .caption =
                  "Lines: closed forms of M/M/c and M/D/1. Points: bisection over simulated runs, "
                  "at the bound and at twice the bound, with 95 % intervals over runs.",
              .x = "bound, ms",
              .y = "share of the capacity, %",
              .log_x = true};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const double bound = c.rules.bound, capacity = c.machine.capacity();
    for (double factor = 0.25; factor <= 8; factor *= std::sqrt(2.0)) {
      const std::optional<double> rate = c.largest_rate(factor * bound);
      if (rate)
        chart.of(c.name + " predicted", true)
            .points.push_back({.x = 1e3 * factor * bound, .y = 100 * *rate / capacity});
    }
    const auto point = [&](double factor, auto member) {
      const stats::Mean mean = runs[i].mean(member);
      chart.of(c.name + " measured")
          .points.push_back(with_error({.x = 1e3 * factor * bound, .y = mean.value}, mean.error));
    };
    point(1, [&](const MeasuredScenarios& m) { return 100 * m.rate / capacity; });
    point(2, [&](const MeasuredScenarios& m) { return 50 * m.halved_rate / capacity; });
  }
  return chart;
}

}  // namespace

void check_service(const std::string& text) { stats::latency_law(text); }

void check_scenarios(const Settings& settings) {
  for (const Case& one : cases_of(settings))
    run_queries(1, std::max(one.machine.capacity(), 1 / one.machine.service.mean), one.rules);
}

void add_scenarios(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<Case> cases = cases_of(run.settings);
  const std::vector<Runs> runs = simulate_all(run, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    judge_scenarios(cases[i], runs[i], conclusion);
    if (cases[i].exponential && cases[i].machine.servers == 1)
      judge_queue(cases[i], runs[i], conclusion);
  }
  const auto spread = std::ranges::find_if(
      cases, [](const Case& one) { return !one.constant && one.machine.servers == 1; });
  if (spread != cases.end())
    judge_independent(runs[static_cast<std::size_t>(spread - cases.begin())], conclusion);
  conclusion.tables.push_back(query_table());
  conclusion.tables.push_back(scenario_table(cases, runs));
  conclusion.charts.push_back(rate_chart(cases, runs));
}

}  // namespace numemu::experiments::mlperf

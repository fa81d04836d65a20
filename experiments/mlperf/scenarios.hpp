// The questions of mlperf: the load generator's scenarios, their queries and latencies on simulated
// machines beside the closed forms of queues, and quality targets of shipped recipes.
#pragma once
#include <cstdint>

#include "emu/stats/latency.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::mlperf {

// Shares of queries that a tail latency covers, and the rules' least numbers of queries.
inline constexpr double kSingleTail = 0.9, kTail = 0.99;
inline constexpr std::int64_t kSingleQueries = 1024, kServerQueries = 270'336,
                              kOfflineSamples = 24'576;
inline constexpr std::int64_t kMultiSamples = 8;  ///< of a query of MultiStream
inline constexpr double kBound = 0.015;           ///< seconds, of ResNet-50 in Server

/// The error of a share that the rules allow: a twentieth of what is beyond the tail.
double margin_of(double tail);
/// Independent queries whose share beyond the tail is within that margin at 99 %: z^2 p (1 - p) /
/// margin^2, and rounded up to a multiple of 8192.
double queries_of(double tail);
std::int64_t rounded_queries(double tail);
/// The probability that the share of n independent queries beyond the tail is within the margin, by
/// the binomial law. 1 <= n <= 10^7.
double confidence_of(double tail, std::int64_t n);
/// That probability by the normal law of a share whose variance is `factor` times that of
/// independent ones.
double confidence_of(double tail, std::int64_t n, double factor);

/// A machine that serves samples one at a time on each of its servers.
struct Machine {
  stats::LatencyLaw service;  ///< seconds of a sample
  std::int64_t servers = 1;

  double capacity() const { return static_cast<double>(servers) / service.mean; }
};

/// How a run is made.
struct Rules {
  double seconds = 600;             ///< the least duration
  double bound = kBound;            ///< of the tail latency in Server
  double server_rate = 0;           ///< queries per second at which `late` is measured
  std::int64_t most = 100'000'000;  ///< queries of a run
};
/// The queries of a run at this rate: the least number, or as many as its duration holds. Throws
/// Error where they are more than `most`.
std::int64_t run_queries(std::int64_t least, double rate, const Rules&);

/// What one run of each scenario measures, in seconds and queries per second.
struct MeasuredScenarios {
  double single = 0;         ///< 90th percentile of the latency, one query after the other
  double few = 0, many = 0;  ///< shares of batches of 1,024 and of 24,576 single queries of which
                             ///< the share beyond the law's own percentile is within the margin
  std::int64_t few_of = 0, many_of = 0;  ///< such batches
  double multi = 0;                      ///< 99th percentile of queries of 8 samples
  double late = 0;                       ///< share above the bound at `server_rate`
  double first_late = 0;                 ///< of the least number of queries
  double mean = 0;                       ///< latency there
  double rate = 0;                       ///< the largest at which at most a hundredth is late
  double halved_rate = 0;                ///< the same on a machine that is twice as fast
  double offline = 0;                    ///< samples per second

  static void fields(auto& self, const auto& visit) {
    visit("single", self.single);
    visit("few", self.few);
    visit("few_of", self.few_of);
    visit("many", self.many);
    visit("many_of", self.many_of);
    visit("multi", self.multi);
    visit("late", self.late);
    visit("first_late", self.first_late);
    visit("mean", self.mean);
    visit("rate", self.rate);
    visit("halved_rate", self.halved_rate);
    visit("offline", self.offline);
  }
};

/// Run number `run` of a seed: a function of these alone.
MeasuredScenarios simulate(const Machine&, const Rules&, std::uint64_t seed, std::int64_t run);

/// Throws Error for a law that is none.
void check_service(const std::string&);
/// Throws Error for a machine without closed forms, for a bound that nothing meets and for runs of
/// too many queries.
void check_scenarios(const Settings&);

/// Latencies, largest rates and how sure a run's numbers of queries make them (settings services,
/// servers, bound, seconds, runs).
void add_scenarios(const ExperimentRun&, Conclusion&);

/// Throws Error for a gate that is no share of float32's top-1.
void check_gate(const std::string&);
/// Throws Error for a recipe that is none, before any work.
void check_recipes(const ExperimentRun&);

/// Verdicts of every network, recipe and gate, the images that each needs beside a planning figure,
/// and the images that three ways of comparing need (settings nets, trained, data, recipes, gates,
/// epochs, batch, train_samples, eval_samples).
void add_gates(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::mlperf

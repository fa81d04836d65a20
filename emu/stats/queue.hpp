// Queries that wait for servers: a simulation query by query, and the closed forms beside it.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace numemu::stats {

/// What every query takes from its arrival to its end. Queries arrive in the order given, the first
/// `gaps[0]` after 0, each `gaps[i] * stretch` after the one before it, and each goes to the server
/// that is free first; a server serves one at a time and takes `services[i]` for it. One server:
/// Lindley's recursion. Throws Error for lengths that differ, and unless 1 <= servers <= 10^6.
/// With gaps and services given, no latency falls when `stretch` does.
std::vector<double> queue_latencies(std::span<const double> gaps, std::span<const double> services,
                                    std::int64_t servers = 1, double stretch = 1);

/// The number at or below which `share` of them lie: the ceil(share n)-th smallest, 0 < share <= 1.
/// Throws Error for none.
double percentile(std::vector<double> numbers, double share);

/// The share above the bound.
double share_above(std::span<const double>, double bound);

// Latencies of queries that arrive by a Poisson process of rate `lambda`, first come first served,
// in the long run: the probability that one exceeds t. Throws Error unless the servers keep up.

/// `servers` servers, exponential service times of rate mu each: Erlang's formula C. One server:
/// exp(-(mu - lambda) t).
double mmc_tail(double lambda, double mu, std::int64_t servers, double t);
/// One server, every service takes `service`: Crommelin's law, by sums of positive terms (Franx,
/// Oper. Res. Letters 29, 2001).
double md1_tail(double lambda, double service, double t);
/// The mean latency at one server whose service times have that mean and variance: Pollaczek and
/// Khinchine.
double mg1_mean(double lambda, double mean, double variance);

/// The largest rate in [0, most) at which a tail that rises with the rate is at most p, by
/// bisection to most / 2^steps; 0 where it is above p at all that are tried.
double largest_rate(const std::function<double(double lambda)>& tail, double p, double most,
                    int steps = 50);

/// Of M/M/1: the factor by which the variance of the share of n queries above t exceeds that of n
/// independent ones, for large n. With theta = mu - lambda and p = exp(-theta t) it is
/// 1 + 4 lambda mu / theta^2 (1 - p - p theta t) / (1 - p): Poisson's equation of the latencies,
/// whose solution is linear above t and linear less an exponential below it.
double mm1_variance_factor(double lambda, double mu, double t);

/// P(the sum of `n` exponential times of rate 1 exceeds x), n from 1 to 10^6: Erlang's law.
double erlang_tail(std::int64_t n, double x);
/// Where that is p, 0 < p < 1.
double erlang_quantile(std::int64_t n, double p);

}  // namespace numemu::stats

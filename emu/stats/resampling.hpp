// The bootstrap percentile interval of any statistic of a sample.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "emu/stats/interval.hpp"

namespace numemu::stats {

/// The interval at 95 % between the 2.5 % and the 97.5 % point of the statistic over resamples
/// (Efron 1979): each draws n of the n members with replacement and is passed as their indices.
/// Resamples whose statistic is NaN are left out; {NaN, NaN} where all are.
///
/// Member i of resample r is floor(u n) with u element r n + i of stream probe, tensor "boot" in
/// ASCII (0x746f6f62), draw 0: a function of the seed alone. The p point of B statistics is the
/// p (B + 1)-th smallest, rounded outwards. Throws Error unless 1 <= n < 2^31 and resamples > 0.
Interval bootstrap_interval(
    std::int64_t n, std::int64_t resamples, std::uint64_t seed,
    const std::function<double(const std::vector<std::int64_t>& drawn)>& statistic);

// The standard error of any smooth statistic of a sample, from leaving groups of it out.

/// sqrt((g - 1) / g times the sum over the g groups of (s_i - mean of s)^2), where s_i is the
/// statistic without group i (delete-a-group jackknife, Efron and Tibshirani 1993, chapter 11). Of
/// groups of consecutive members it is right for members that depend on their neighbours alone.
/// NaN for fewer than two groups.
double jackknife_error(std::int64_t groups,
                       const std::function<double(std::int64_t left_out)>& statistic);

}  // namespace numemu::stats

// The standard error of any smooth statistic of a sample, from leaving groups of it out.
#pragma once

#include <cstdint>
#include <functional>

namespace numemu::stats {

/// sqrt((g - 1) / g times the sum over the g groups of (s_i - mean of s)^2), where s_i is the
/// statistic without group i (delete-a-group jackknife, Efron and Tibshirani 1993, chapter 11). Of
/// groups of consecutive members it is right for members that depend on their neighbours alone.
/// NaN for fewer than two groups.
double jackknife_error(std::int64_t groups,
                       const std::function<double(std::int64_t left_out)>& statistic);

}  // namespace numemu::stats

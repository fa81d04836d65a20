// What vectors of several workers share: formulas of their correlation, and measurements.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::experiments::learned_compression {

/// One vector per worker, all of one length.
using Vectors = std::vector<std::vector<float>>;

/// Mutual information of two normal numbers with that correlation: -1/2 log2(1 - rho^2) bits.
double information(double rho);
/// (1 - rho)(1 - 1/count), of the power: what the mean of `count` numbers of equal power and
/// correlation loses in place of each. The same is what the first principal component leaves.
double mean_error(double rho, std::int64_t count);

/// The mean over pairs of workers of sum x y, over the mean of sum x^2.
double correlation(const Vectors&);
/// sum |x_w - mean|^2 / sum |x_w|^2.
double mean_error(const Vectors&);
/// Bits that two vectors share as `bins` equally likely bins see them, corrected for the sample
/// (Miller and Madow 1955).
double binned_information(const std::vector<float>& x, const std::vector<float>& y,
                          std::int64_t bins);
/// sum (x - decoded)^2 / sum x^2.
double relative_error(const std::vector<float>& x, const std::vector<float>& decoded);
/// What the first principal component of whole windows leaves of their power.
double component_error(const std::vector<float>& x, std::int64_t window);

}  // namespace numemu::experiments::learned_compression

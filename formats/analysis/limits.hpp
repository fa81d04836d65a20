// What no format does better: limits of the mean square error under a law.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/analysis/density.hpp"
#include "formats/format.hpp"

namespace numemu {

/// The MSE of levels under a law, every number going to the nearest one. `levels` ascend.
double nearest_level_mse(const std::vector<double>& levels, const Density&);

/// Differential entropy in bits, by Gauss rules between the knots.
double differential_entropy(const Density&);
/// Shannon's lower bound of the MSE at a rate of `bits` a number: 2^(2 (h - bits)) / (2 pi e), at
/// most the variance. The rate-distortion function of a normal law; no quantizer of any law, with
/// entropy coding and in any number of dimensions, is below it.
double shannon_bound(const Density&, double bits);

/// Scales of the block limit.
enum class LimitScale : std::uint8_t { e8m0, e4m3 };

/// The relative MSE (over the mean square of x) that Lloyd's algorithm reaches for `levels` common
/// levels under one scale per `block` neighbours of x: in turn every block takes the best of the
/// scales that the format has near its own (e4m3: relative to the largest of x), and the levels
/// become the means of the scaled numbers that they represent, weighted by the squares of the
/// scales. The better of two local optima on these very numbers: from scales by the largest
/// magnitudes, and from one scale for all.
double block_limit(const float* x, std::int64_t n, std::int64_t block, int levels, LimitScale);

}  // namespace numemu

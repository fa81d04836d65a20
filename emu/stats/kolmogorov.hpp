// The Kolmogorov-Smirnov distance between a sample and a density.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/analysis/density.hpp"

namespace numemu::stats {

/// sup over x of |F_n(x) - F(x)|, exact: ties and the density's jump at zero are compared on both
/// sides. `sorted` is ascending and not empty.
double ks_distance(const std::vector<float>& sorted, const Density& density);

/// 0.03 + 1.36 / sqrt(n): the 95 % point of the distance of n values from their own law, plus the
/// model error that still predicts quantization noise within half a decibel.
double ks_threshold(std::int64_t n);

}  // namespace numemu::stats

// Normalisation over groups of channels; with as many groups as channels, over each image.
#pragma once
#include "emu/net/ops/row_norm.hpp"

namespace numemu::net {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias for x [n, channels, ..], with the mean
/// and the variance of each sample and group of neighbouring channels, and a weight and a bias for
/// each channel; in float64, rounded once (Wu and He 2018; Ulyanov et al. 2016).
class GroupNorm final : public RowNorm {
 public:
  /// Throws Error unless all are positive and the groups are equal.
  GroupNorm(std::int64_t channels, std::int64_t groups, double epsilon = 1e-5)
      : RowNorm("group_norm", channels, epsilon, true, groups) {}
};

}  // namespace numemu::net

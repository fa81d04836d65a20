// The numbers that each element of a weight may become, under scales that stay while the weight is
// tuned.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/blocks/block_convert.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

class WeightGrid {
 public:
  /// The scales are those that the role's rule chooses for that weight, [out, ..., in], or those
  /// that ranges fix. Throws Error for stochastic rounding, under which no element has one nearest
  /// number.
  WeightGrid(const RolePolicy&, const net::Tensor& weight);

  /// What element i of the weight becomes, were it x: what the recipe makes of it under those
  /// scales.
  float nearest(std::int64_t i, float x) const { return number(conversion_, i, x); }
  /// The largest number at or below x, and the smallest at or above; the end of the format beyond.
  float below(std::int64_t i, float x) const { return number(down_, i, x); }
  float above(std::int64_t i, float x) const { return number(up_, i, x); }
  /// Every element at its nearest number.
  net::Tensor nearest(const net::Tensor& weight) const;

  /// Elements i of one scale have one number; each scale belongs to neighbours of a row or to whole
  /// rows.
  std::int64_t scale_of(std::int64_t i) const { return layout_.block_of(i); }
  /// One for each equal share of a weight without blocks, else empty.
  const std::vector<float>& plain_scales() const { return plain_scales_; }
  /// A scale that all elements share multiplies every other.
  bool has_tensor_scale() const { return format_->tensor_scale; }

 private:
  float number(const Conversion&, std::int64_t i, float x) const;

  const BlockFormat* format_;
  BlockLayout layout_;
  std::vector<float> plain_scales_;
  std::vector<BlockScale> scales_;
  Conversion conversion_, down_, up_;
};

}  // namespace numemu::policies

// A role's policy with everything looked up once: what every product that reads the role uses.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

/// The conversion a role describes; integers are used symmetrically.
Conversion conversion_of(const RolePolicy&, const RandomSource& = {});

/// Of activations, by layer.
using StaticScales = std::map<std::string, TensorScale, std::less<>>;

/// The random bits of an array that is a piece of a longer one: element i uses those of first + i.
struct RandomPiece {
  RandomSource source;
  std::int64_t first = 0;
};

class RoleQuantizer {
 public:
  /// Throws Error where no scale rule of that name serves the role.
  explicit RoleQuantizer(const RolePolicy&);

  const RolePolicy& policy() const { return policy_; }
  /// The format is a block format.
  bool blocks() const { return policy_.block != nullptr; }
  /// The format of blocks as they are quantized: that of the policy, whose tiles are blocks of
  /// as many elements.
  const BlockFormat& block_format() const { return tile_ ? *tile_ : *policy_.block; }
  bool stochastic() const { return policy_.rounding.stochastic(); }
  /// The scale rule reads nothing but the largest magnitude.
  bool largest_only() const { return largest_only_; }
  /// ScaleRule::reads_elements of the role's rule.
  bool reads_elements() const { return rule_->reads_elements; }
  Conversion conversion(const RandomSource& random = {}) const;

  /// The scale of elements that share one, by the role's rule. Uses threads.
  float scale(const float* x, std::int64_t n) const;
  /// scale() where only the largest magnitude is known.
  float scale_of_magnitude(double magnitude) const;

  /// Of a role with a zero point whose elements lie between low and high: 0 is an element.
  TensorScale scale_of_range(float low, float high) const;
  /// scale_of_range() of the finite ones among these elements.
  TensorScale scale_of_elements(const float* x, std::int64_t n) const;

  /// quantize_blocks() of the role's block format.
  BlockCounts quantize(const BlockLayout&, const float* x, const RandomPiece&, const BlockArrays&,
                       float* y) const;
  /// quantize_columns() of the role's block format.
  BlockCounts quantize_columns(std::int64_t outer, std::int64_t length, std::int64_t across,
                               const float* x, const RandomPiece&, float* y) const;
  /// quantize_blocks() in blocks of a format with another size; `words`: random bits, one word for
  /// each element, where the rounding is stochastic.
  BlockCounts quantize(const BlockFormat&, const BlockLayout&, const float* x,
                       const std::uint32_t* words, const BlockArrays&, float* y) const;

 private:
  /// With the random bits of a piece of so many elements.
  Conversion conversion(const RandomPiece&, std::int64_t elements) const;
  BlockQuantization quantization(const BlockFormat&, const Conversion&) const;

  RolePolicy policy_;
  const ScaleRule* rule_ = nullptr;
  std::shared_ptr<const BlockFormat> tile_;  ///< null unless granularity is tile
  bool largest_only_ = false;
};

/// group(ELEMENT,tensor,float32,zp), whose scale and zero point a role with a zero point has.
const BlockFormat& shifted_format(const Format& element);

/// The largest finite magnitude, 0 for none. Uses threads.
double parallel_magnitude(const float* x, std::int64_t n);

}  // namespace numemu::policies

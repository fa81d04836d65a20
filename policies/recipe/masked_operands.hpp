// The operands of a product under the masks of its layer, before anything is quantized.
#pragma once
#include <memory>

#include "emu/net/numerics.hpp"
#include "policies/recipe/recipe_layer.hpp"
#include "policies/recipe/recipe_product.hpp"

namespace numemu::policies {

/// A product that reads masked copies of the sources that have a mask. A weight has one mask in all
/// its products; so has an activation, whose groups run along the channels; a gradient is masked
/// for the product that reads it: along the channels in dgrad, over batch and space in wgrad or
/// with axis=batch. Draws of weights do not depend on the step: their tensor identity is
/// LAYER/weight/0/mask-AXIS, that of others LAYER/ROLE/STEP/mask-AXIS with the axis channel, batch,
/// reduction or element, or mask-input for what dgrad gives: products that read one tensor along
/// one axis read the same pruned tensor.
class MaskedOperands {
 public:
  MaskedOperands(RecipeLayer&, const net::Product&, const ProductRun&);
  const net::Product& product() const { return product_; }
  /// Prunes what dgrad gave, where the mask is one `at=input`.
  void prune_result();

 private:
  void mask_side(net::ProductSide&, net::Tensor& copy);
  RandomSource random(net::Role, std::string_view axis) const;
  double threshold(const MaskPolicy&, net::Role, const float* x, std::int64_t n);
  void prune(const MaskPolicy&, net::Role, const RandomSource&, const MaskLayout&,
             std::int64_t samples, const float* x, float* y);
  void require_maskable(const MaskPolicy&, const net::ProductSide&, bool along_rows) const;

  RecipeLayer& layer_;
  ProductRun run_;
  net::Product product_;
  net::Tensor a_, b_;
  std::shared_ptr<const net::Tensor> weight_;
};

/// The draws of a layer's activation mask in inference.
RandomSource activation_mask_random(std::uint64_t seed, std::string_view layer, const MaskPolicy&);

}  // namespace numemu::policies

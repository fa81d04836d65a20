// One product under a recipe: its operands quantized, multiplied on the unit, scaled back.
#pragma once
#include <cstdint>
#include <functional>

#include "emu/net/numerics.hpp"
#include "policies/numerics/layer_state.hpp"

namespace numemu::policies {

/// What a product needs of its run.
struct ProductRun {
  std::uint64_t seed = 0;
  net::Phase phase = net::Phase::inference;
  bool frozen = false;
  std::int64_t step = 0;          ///< of training, 0 in inference
  std::int64_t repetition = 0;    ///< of this kind of product of the layer in the step
  std::int64_t first_sample = 0;  ///< inference: of the batch
  /// What tells batches of inference, and steps of training, apart.
  std::int64_t turn() const { return phase == net::Phase::inference ? first_sample : step; }
  /// Called after the unit, before the role output; null or empty: nobody listens.
  const std::function<void(const net::Product&)>* heard = nullptr;
};

/// D, with every scale applied; the layer counts flags. How operands enter the unit:
///   no role                    float32 as it is
///   one scale, per channel, row   codes; the scales are applied to the result as alpha
///   blocks, any operands       the float32 values of the blocks
///   blocks, block-scaled unit  codes and scale codes; a tensor scale is applied as alpha
/// Blocks of axis `channel` are cut along the source's lines before the gather. On block-scaled
/// units each line is padded with zero codes to whole blocks. Where a row of the operand does not
/// read whole lines (wgrad of convolutions with several taps) both operands are cut as with axis
/// `reduction`: along the flattened depth of the gathered operand, tile by tile.
void run_product(LayerState&, const net::Product&, const ProductRun&);

}  // namespace numemu::policies

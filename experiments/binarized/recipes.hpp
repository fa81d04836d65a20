// Recipes of binarized and quantized networks.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu::experiments::binarized {

/// Signs of weights and activations with clipped straight-through gradients, masters clipped to
/// [-1, 1], products of signs by XNOR and popcount. `first`, the layer of the network's input,
/// reads float32 inputs and signs of weights.
Json signs(const std::string& first);
/// The same with the shift-based batch normalisation.
Json with_shifts(Json recipe);
/// The same with the shift-based AdaMax in the place of the trial's optimizer.
Json with_shift_adamax(Json recipe);
/// Activations of `bits` on the grid of LinearQuant, k 2^(1-bits) within 1, weights on the same
/// grid times a power of two; gradients powers of two of 6 bits, scaled by a power of two.
Json few_bits(int bits, const std::string& first);

}  // namespace numemu::experiments::binarized

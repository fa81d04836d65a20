// Sums of vectors on a unit, for exchanges of gradients.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::policies {

/// sum[i] = RNE_f32 of the unit's dot of addends[0][i], addends[1][i], ... with ones, for n
/// elements, which may be those of an addend. The unit takes float32 operands. `random_of` gives
/// the random bits of a tile of 4096 elements, for units with stochastic registers.
void add_on_unit(const unit::Unit&, std::span<const float* const> addends, std::int64_t n,
                 float* sum, const std::function<net::ProductRandom(std::int64_t tile)>& random_of);

}  // namespace numemu::policies

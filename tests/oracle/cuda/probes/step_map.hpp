// Measures which products of an instruction share a step, and the order of the steps: a dot for
// every ordered pair of positions.
#pragma once
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

/// How a dot shows whether the product at position j enters in a later step than that at i.
enum class Variant : std::uint8_t {
  c_first,        ///< +large at i, C = -large, small at j: `small` where j is later
  c_last,         ///< C = 0; +large at i, -large at its neighbour i ^ 1, small at j
  c_last_by_two,  ///< the same with the neighbour i ^ 2, for steps of even and odd k
  halves,  ///< half an ulp of C at i and at j: a whole ulp where they meet, else each is cut;
           ///< tells which share a step, not the order. For types of few exponents
  in_saturation,  ///< .satfinite: C = INT32_MAX, 1 at i, -1 at j: one less where i was clamped
                  ///< before
};
constexpr Variant kVariants[] = {Variant::c_first, Variant::c_last, Variant::c_last_by_two,
                                 Variant::halves, Variant::in_saturation};
const char* name(Variant);

/// Eight dots a tile, on the diagonal of its first eight rows; no tiles where the types cannot
/// express the variant.
Batch step_map_tiles(const Instruction&, Variant);

/// Row i of the answer, one character for each kept position j: '1' where j's step comes after i's,
/// '0' where it does not, '?' where D is neither answer. halves: steps count by their first
/// position. The batch is that of step_map_tiles, with D filled.
std::vector<std::string> read_step_map(const Instruction&, const Batch&, Variant);

/// The step of each position, from 0; empty where the map is not an order of steps.
std::vector<int> steps_of(const std::vector<std::string>& map);

}  // namespace numemu::oracle::recording

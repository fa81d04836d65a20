// Which products of a dot share a step, and the order of the steps: a dot for every ordered pair of
// positions.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/oracle/dots/dots.hpp"

namespace numemu::oracle {

/// How a dot shows whether the product at position j enters in a later step than that at i.
enum class StepVariant : std::uint8_t {
  c_first,        ///< +large at i, C = -large, small at j: `small` where j is later
  c_last,         ///< C = 0; +large at i, -large at its neighbour i ^ 1, small at j
  c_last_by_two,  ///< the same with the neighbour i ^ 2, for steps of even and odd k
  halves,  ///< half an ulp of C at i and at j: a whole ulp where they meet, else each is cut;
           ///< tells which share a step, not the order. For types of few exponents
  in_saturation,  ///< two's complement: C = the largest number, 1 at i, -1 at j: one less where i
                  ///< was clamped before
};
inline constexpr std::array kStepVariants = {StepVariant::c_first, StepVariant::c_last,
                                             StepVariant::c_last_by_two, StepVariant::halves,
                                             StepVariant::in_saturation};
const char* name(StepVariant);

/// Dot i * kept + j is that of the positions i and j; empty where the formats cannot express the
/// variant.
std::vector<Dot> step_map_dots(const Ports&, StepVariant);

/// Row i of the map, one character for each kept position j: '1' where j's step comes after i's,
/// '0' where it does not, '?' where D is neither result. halves: steps count by their first
/// position. `codes`: D of every dot of step_map_dots().
std::vector<std::string> read_step_map(const Ports&, StepVariant,
                                       std::span<const std::uint64_t> codes);

/// The step of each position, from 0; empty where the map is not an order of steps.
std::vector<int> steps_of(const std::vector<std::string>& map);

/// "0-7, 8-15": the positions of each step, one step after the other.
std::string step_words(const std::vector<int>& steps);

}  // namespace numemu::oracle

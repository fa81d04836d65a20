// Chooses the kept elements of a group, given those that must be kept.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit {

/// The kept positions of a group.
struct Choice {
  std::uint8_t count = 0;               ///< elements that must be kept; pairs count as two
  std::uint16_t filled = 0;             ///< bit i: position i is kept without need, to make them N
  std::uint8_t index[kMostGroup] = {};  ///< what is kept, ascending: N, or `count` if above N
};

/// The elements whose bits are set, whole pairs where pairwise, and the lowest free positions until
/// there are N.
Choice choose(const Pattern&, std::uint32_t bits);

/// Element b is choose(b): for every group where M <= 8, else empty.
std::vector<Choice> choice_table(const Pattern&);

}  // namespace numemu::unit

// Styles of vectors: which inputs a file has, and what the class of a record claims.
#pragma once
#include <cstdint>
#include <string_view>

namespace numemu::oracle {

enum class Style : std::uint8_t {
  mixed,       ///< all classes that the subject has, in turns
  random,      ///< random codes, or random numbers of similar size
  edges,       ///< zeros, the ends of the normal and subnormal numbers, one, infinities, NaN
  exhaustive,  ///< every input there is, in ascending order
  cancel,      ///< the exact result is below half of the largest term
  subnormal,   ///< an input, or the exact result, is below the smallest normal number
  overflow,   ///< the exact result is at least one unit in the last place beyond the largest number
  ties,       ///< the exact result lies halfway between two neighbours of the result's format
  alignment,  ///< a fused unit with one bit fewer, or more, gives another result
  near_ties,  ///< no tie, but the exact result rounded to an intermediate format is one
  carry,  ///< rounding up carries to the next power of two, or the sum to log2(K) bits above its
          ///< products
};

std::string_view to_string(Style);
/// Throws Error with the nearest known name.
Style parse_style(std::string_view);

}  // namespace numemu::oracle

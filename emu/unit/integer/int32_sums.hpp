// Units whose results are int32 sums, and the integers that become of them.
#pragma once
#include <cstdint>

#include "emu/unit/unit.hpp"
#include "formats/format.hpp"

namespace numemu::unit {

/// Whether results are sums in two's complement of 32 bits.
bool gives_int32(const Unit&);

/// The least and the largest number of an integer format of at most 16 bits.
struct IntegerEnds {
  std::int32_t low = 0, high = 0;
};
IntegerEnds ends_of_integers(const Format&);

}  // namespace numemu::unit

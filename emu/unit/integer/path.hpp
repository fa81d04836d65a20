// The instruction paths of the integer kernels, so that tests can select each.
#pragma once
#include <cstdint>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

enum class IntegerPath : std::uint8_t {
  best,      ///< the fastest of the others that takes the product
  amx,       ///< bytes in tiles: TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD
  vnni,      ///< AVX-512: VPDPBUSD for bytes, VPDPWSSD for 16-bit words
  portable,  ///< any instruction set: pairs of 16-bit products, counted bits, gathered table
             ///< entries
  wide,      ///< any instruction set: single products in 64-bit sums, saturating step by step
};

/// Whether this CPU, and the system, let the path run.
bool has_path(IntegerPath);

/// multiply_integer() by one path only; false also where the path does not take the product.
bool multiply_integer(const UnitDescription&, const Gemm&, IntegerPath);

}  // namespace numemu::unit

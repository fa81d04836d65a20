// Joins sums of products with C in a two's complement register and stores its codes.
#pragma once
#include <cstdint>

#include "emu/unit/description.hpp"
#include "emu/unit/integer/block.hpp"

namespace numemu::unit {

/// C and D of a product, m x n: int32 for registers of more than 16 bits, else uint16 or uint8.
struct RegisterArrays {
  int bits = 32;
  bool saturates = false;  ///< sums are then exact, else modulo 2^32
  std::int64_t n = 0;
  const void* c = nullptr;
  void* d = nullptr;
};

/// Of one element of C or D.
int bytes_of(const RegisterArrays&);

/// Outputs from (row, lane) on.
struct OutputBlock {
  std::int64_t row = 0, lane = 0, rows = 0, lanes = 0;
};

/// C of a block as numbers, sums[32 i + j]; zeros where there is none or beyond the block.
void load_c(const RegisterArrays&, const OutputBlock&, std::int32_t* sums);
/// D of a block = what the register holds of sums + C.
void store_sums(const RegisterArrays&, const OutputBlock&, const std::int32_t* sums);
/// The largest magnitude in C.
std::int64_t largest_c(const RegisterArrays&, std::int64_t m);

}  // namespace numemu::unit

// The fast kernels of integer cores.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/integer/block.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp); no integer is NaN.
inline constexpr std::string_view kIntegerFields[] = {
    "core",     "k",       "group", "accumulator.bits", "accumulator.integer_overflow",
    "nan_code", "products"};

/// A product on a unit whose core is `integer`, `xnor` or `table`, bit for bit what the reference
/// gives. False, with nothing written, where the unit or the operands are beyond these kernels.
/// Throws Error when a gather does not fit its operand.
bool multiply_integer(const UnitDescription&, const Gemm&);

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

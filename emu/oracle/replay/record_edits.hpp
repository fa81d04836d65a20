// Rivals that no field of a description has: they read the recorded operands, or write the result,
// in another way.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle {

/// Single dots of an instruction of their own.
struct EditedDots {
  std::unique_ptr<recording::Instruction> instruction;
  recording::Batch batch;
};
/// Of a batch of single dots (m = n = 1).
using OperandEdit = std::function<EditedDots(const recording::Batch&)>;

/// One dot of a batch of tiles.
struct DotCodes {
  const recording::Instruction& instruction;
  const std::uint8_t *a, *b, *c, *metadata;
};
/// The code of D in place of the unit's.
using ResultEdit = std::uint64_t (*)(const DotCodes&, std::uint64_t code);
/// Dots are numbered tile by tile, row by row.
DotCodes dot_codes(const recording::Batch&, int dot);

// Order. A unit of an order is one product, or one group of a sparse A.

/// Units of a dot: group `order[i]` of each comes to place i.
OperandEdit in_order(std::vector<int> order);
/// A sparse A as a dense one whose other elements are zeros, beside B, or beside zeros.
EditedDots expanded(const recording::Batch&);
EditedDots expanded_beside_zeros(const recording::Batch&);
/// A kept zero of A meets a zero, even where B is infinite.
EditedDots without_kept_zeros(const recording::Batch&);

// Numbers.

/// Every product in float64 times one in bfloat16: its exponent is that of its leading bit.
EditedDots normalised_products(const recording::Batch&);
EditedDots infinite_c_as_nan(const recording::Batch&);

// Block scales.

/// A block whose products add up to zero has the smallest scales.
EditedDots least_scales_of_zeros(const recording::Batch&);
/// A block whose products are all zero has scale one where it had NaN.
EditedDots nan_scales_of_nonzeros(const recording::Batch&);
/// The exponents of two ue8m0 add up to -127 at least, 127 at most.
EditedDots clamped_scales(const recording::Batch&);
/// The sign bit of ue4m3 negates the block.
EditedDots signed_scales(const recording::Batch&);
EditedDots flushed_scales(const recording::Batch&);

// Results.

/// The payload of the first NaN operand, quieted: k ascending, A before B, then C; or C first.
std::uint64_t first_nan(const DotCodes&, std::uint64_t code);
std::uint64_t first_nan_from_c(const DotCodes&, std::uint64_t code);
/// +0 for -0; -0 where every addend is -0; -0 where every addend is negative or -0.
std::uint64_t positive_zero(const DotCodes&, std::uint64_t code);
std::uint64_t zero_of_zeros(const DotCodes&, std::uint64_t code);
std::uint64_t zero_of_addends(const DotCodes&, std::uint64_t code);

}  // namespace numemu::oracle

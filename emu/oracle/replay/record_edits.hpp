// Rivals that no field of a description has: they read the recorded operands, or write the result,
// in another way.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/rule.hpp"

namespace numemu::oracle {

/// What a rival reads in place of the records of an instruction.
struct OperandEdit {
  Rule::Change change;
  Layout layout = {};  ///< of Rule
};

// Order. A unit of an order is one product, or one group of a sparse A.

/// Units of a dot: group `order[i]` of each comes to place i.
OperandEdit in_order(const recording::Instruction&, std::vector<int> order);
/// A sparse A as a dense one whose other elements are zeros, beside B, or beside zeros.
OperandEdit expanded(const recording::Instruction&);
OperandEdit expanded_beside_zeros(const recording::Instruction&);
/// A kept zero of A meets a zero, even where B is infinite.
OperandEdit without_kept_zeros(const recording::Instruction&);

// Numbers.

/// Every product in float64 times one in bfloat16: its exponent is that of its leading bit.
OperandEdit normalised_products(const recording::Instruction&);
OperandEdit infinite_c_as_nan(const recording::Instruction&);

// Block scales.

/// A block whose products add up to zero has the smallest scales.
OperandEdit least_scales_of_zeros(const recording::Instruction&);
/// A block whose products are all zero has scale one where it had NaN.
OperandEdit nan_scales_of_nonzeros(const recording::Instruction&);
/// The exponents of two ue8m0 add up to -127 at least, 127 at most.
OperandEdit clamped_scales(const recording::Instruction&);
/// The sign bit of ue4m3 negates the block.
OperandEdit signed_scales(const recording::Instruction&);
OperandEdit flushed_scales(const recording::Instruction&);

/// What a rival writes in place of the unit's code of D.
enum class ResultEdit : std::uint8_t {
  none,
  first_nan,         ///< the payload of the first NaN operand, quieted: k ascending, A before B,
  first_nan_from_c,  ///< then C; or C first
  positive_zero,     ///< +0 for -0
  zero_of_zeros,     ///< -0 where every addend is -0
  zero_of_addends,   ///< -0 where every addend is negative or -0
};
Rule::Change change_of(const recording::Instruction&, ResultEdit);
/// The edit of Rule::results that change_of() made.
ResultEdit edit_of(const Rule::Change&);

}  // namespace numemu::oracle

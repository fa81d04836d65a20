// The table of operations: what an operation of vectors does with its operands.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/value.hpp"

namespace numemu::oracle {

enum class Operation : std::uint8_t {
  convert,         ///< one rounding of a number
  mul,             ///< a * b
  add,             ///< a + b
  fma,             ///< a * b + c
  dot,             ///< the sum of K products and c
  sub,             ///< a - b
  div,             ///< a / b
  sqrt,            ///< the square root of a number
  fmsub,           ///< a * b - c
  fnmsub,          ///< -(a * b) + c
  fnmadd,          ///< -(a * b) - c
  minimum,         ///< a NaN operand gives NaN
  maximum,         ///< a NaN operand gives NaN
  minimum_number,  ///< a NaN operand gives the other
  maximum_number,  ///< a NaN operand gives the other
  min_num,         ///< a quiet NaN operand gives the other, a signalling one NaN
  max_num,         ///< a quiet NaN operand gives the other, a signalling one NaN
  eq,              ///< a == b
  lt,              ///< a < b
  le,              ///< a <= b
  eq_signaling,    ///< a == b; every NaN raises NV
  lt_quiet,        ///< a < b; signalling NaN alone raise NV
  le_quiet,        ///< a <= b; signalling NaN alone raise NV
  to_integer,      ///< convert to an integer format, without NX
  unit,            ///< what a matrix unit computes of K products and c
};

/// How the exact result comes about: what records of an operation are like.
enum class Arithmetic : std::uint8_t {
  number,      ///< the operand itself
  sum,         ///< of two operands
  products,    ///< of products, and of c where there is one
  quotient,    ///< of two operands
  root,        ///< of one operand
  choice,      ///< one of two operands
  comparison,  ///< 0 or 1
};

/// What a choice does with NaN.
enum class NanOperand : std::uint8_t { wins, loses, loses_if_quiet };

struct OperationRow {
  std::string_view name;
  std::string_view alias;  ///< another name that is accepted; "": none
  Arithmetic arithmetic;
  std::string_view what;  ///< for tables of operations
  bool has_c = false;
  bool negates_products = false;
  bool negates_last = false;  ///< c, or b of a sum
  bool largest = false;       ///< of a choice: the larger
  NanOperand nan = NanOperand::wins;
  bool equal = false, less = false;  ///< of a comparison: what is true
  bool any_nan_invalid = false;      ///< of a comparison
  bool hides_inexact = false;
};

const OperationRow& row_of(Operation);
std::string_view to_string(Operation);
/// All but `unit`, in the order of the enumeration, each ended by 0.
std::span<const std::string_view> operation_names();
/// "convert, mul, add ... or to_integer".
std::string joined_operation_names();
/// The operation of that name or alias. Throws Error with the nearest known name.
Operation parse_operation(std::string_view);

/// Whether the operation has one operand, the field `in`.
inline bool is_unary(const OperationRow& row) {
  return row.arithmetic == Arithmetic::number || row.arithmetic == Arithmetic::root;
}
inline bool is_unary(Operation operation) { return is_unary(row_of(operation)); }

/// An exact result and the exceptions of IEEE 754 that no rounding shows.
struct ExactResult {
  Value value;
  bool invalid = false;
  bool divided_by_zero = false;  ///< infinity of finite operands
};

/// a / b. IEEE 754-2019, 5.4.1. At most 64 leading bits and a sticky bit, as of all results.
ExactResult exact_quotient_of(const Value& a, const Value& b);
/// One of a and b. IEEE 754-2019, 9.6; -0 is less than +0. `order`: of a and b where neither is
/// NaN.
ExactResult exact_choice(const OperationRow&, const Value& a, const Value& b,
                         std::strong_ordering order);
/// 0 or 1. IEEE 754-2019, 5.11.
ExactResult exact_comparison(const OperationRow&, const Value& a, const Value& b,
                             std::strong_ordering order);
/// The square root of a number. IEEE 754-2019, 5.4.1.
ExactResult exact_root_of(const Value&);

}  // namespace numemu::oracle

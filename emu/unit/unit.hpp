// What a matrix unit is: a row of units.def, and the one call every unit answers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/gather.hpp"
#include "formats/format.hpp"

namespace numemu::unit {

/// How strong the evidence is that the model computes the machine's bits; docs/units.md explains
/// each grade.
enum class Grade : std::uint8_t {
  definition,
  silicon,
  hardware,
  model,
  leeds,
  vendor,
  anecdotal,
  not_reproducible
};

/// One row of units.def.
struct UnitRow {
  std::string name;          ///< canonical: vendor.chip.instruction.types, or neutral.*
  std::string alias;         ///< short form, may be empty
  std::string operand;       ///< operand format, or "any" for every format of at most 32 bits
  std::string result;        ///< format of D and C
  std::string accumulation;  ///< the arithmetic in words: order, fused or not, roundings
  Grade grade;
  std::string source;  ///< where the model comes from
};

/// One operand: codes of `format` in their container (uint8 up to 8 bits, uint16 up to 16, float
/// for float32 and tfloat32).
struct Operand {
  const Format* format = nullptr;
  const void* codes = nullptr;
  const Gather* gather = nullptr;
};

/// D = A x B + C with A: m x k, B: n x k (its gather's rows are the columns of the product), C and
/// D: m x n row-major in the result format's container. C may be null (then +0).
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a, b;
  const void* c = nullptr;
  void* d = nullptr;
};

/// A matrix unit. Results depend on nothing but the operands: not on threads, blocking or CPU.
class Unit {
 public:
  virtual ~Unit() = default;
  virtual const UnitRow& row() const = 0;
  /// Computes the product, over OpenMP threads unless already inside a parallel region.
  /// Throws Error naming both when an operand format is not accepted.
  virtual void multiply(const Gemm&) const = 0;
  /// The same, one element at a time in integer arithmetic: the specification.
  virtual void multiply_reference(const Gemm&) const = 0;
  /// Whether operands may have this format.
  virtual bool accepts(const Format&) const = 0;
  /// What accepts() asks of a format, in words.
  virtual std::string operand_rule() const = 0;
  /// Throws Error naming both the unit and the format when this unit does not take the format as an
  /// operand.
  void require_operand(const Format&) const;
};

/// The unit of that name or alias. Lives as long as the program. Throws Error with the nearest
/// known name.
const Unit& find_unit(std::string_view name);
/// Every row, in table order.
const std::vector<const Unit*>& all_units();
std::string_view to_string(Grade);

}  // namespace numemu::unit

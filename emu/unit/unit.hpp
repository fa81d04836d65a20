// A matrix unit: a description with its evidence, and the call that multiplies.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/description.hpp"
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
  emulator,
  vendor,
  anecdotal,
  modelled,
  not_reproducible,
  described_by_you
};

/// The catalogue entry of a unit beside its description.
struct UnitRow {
  std::string name;          ///< canonical: vendor.chip.instruction.types, or neutral.*
  std::string alias;         ///< short form, may be empty
  std::string operand;       ///< operand format(s), or "any"
  std::string result;        ///< format of D
  std::string accumulation;  ///< the arithmetic in one line
  Grade grade = Grade::modelled;
  std::string source;                  ///< where the model comes from
  std::vector<std::string> modifiers;  ///< that its name may take (modifiers.def)
};

class PreparedOperand;

/// One operand: codes of `format` in their container (uint8 up to 8 bits, uint16 up to 16, float
/// for float32 and tfloat32, double for float64).
struct Operand {
  const Format* format = nullptr;
  const void* codes = nullptr;
  const Gather* gather = nullptr;
  /// What Unit::prepare() of the multiplying unit gave for this operand. Null: what the product
  /// needs is computed for it alone.
  const PreparedOperand* prepared = nullptr;
};

/// D = A x B + C with A: m x k, B: n x k (its gather's rows are the columns of the product), C and
/// D: m x n row-major in the containers of the unit's C and D. C may be null (then +0).
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a, b;
  const void* c = nullptr;
  void* d = nullptr;
  /// Block-scaled units: codes of the scales, m x ceil(k / block) and n x ceil(k / block).
  const std::uint8_t *scale_a = nullptr, *scale_b = nullptr;
  /// Sparse units: A holds the kept elements only, m x (k N/M); for each its index in its group.
  const std::uint8_t* kept = nullptr;
  /// Stochastic registers draw from stream `accumulate` of this seed and tensor; element m N + n of
  /// step k uses counter word 1 = k (docs/random.md).
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0;
};

/// A matrix unit. Results depend on nothing but the operands: not on threads, blocking or CPU.
class Unit {
 public:
  virtual ~Unit() = default;
  virtual const UnitRow& row() const = 0;
  /// Its parameters; nullptr for a unit that has none (host.eigen.f32).
  virtual const UnitDescription* description() const = 0;
  /// Computes the product, over OpenMP threads unless already inside a parallel region.
  /// Throws Error when an operand format is not accepted, a size is negative, scales or metadata
  /// are missing, K is not a multiple of the sparsity pattern's group, or an operand is not the one
  /// that it was prepared from.
  virtual void multiply(const Gemm&) const = 0;
  /// The product, one element at a time in integer arithmetic: the specification.
  virtual void multiply_reference(const Gemm&) const = 0;
  /// Keeps what products of this unit compute from an operand that several of them read, such as a
  /// frozen weight: for Operand::prepared, in any number of products at once, on any threads. Codes
  /// and scales must neither change nor go while it lives; the gather is copied. Results are the
  /// same bits with and without it. Memory: emu/unit/prepared_operand.hpp.
  std::shared_ptr<const PreparedOperand> prepare(const Operand&, std::int64_t rows,
                                                 std::int64_t depth,
                                                 const std::uint8_t* scales = nullptr) const;
  /// Whether A, or B, may have this format.
  virtual bool accepts_a(const Format&) const = 0;
  virtual bool accepts_b(const Format&) const = 0;
  bool accepts(const Format& f) const { return accepts_a(f) && accepts_b(f); }
  /// The formats that the two accept, in words.
  virtual std::string operand_rule() const = 0;
  /// Throws Error naming both the unit and the format when A, or B, cannot have it.
  void require_operands(const Format& a, const Format& b) const;
  void require_operand(const Format& both) const { require_operands(both, both); }
  /// Of one element of C or D: its format, or nullptr for a two's complement register.
  const Format* c_format() const;
  const Format* d_format() const;
};

/// The unit of that name, alias, unambiguous short form or description ("neutral.mac.e5m10.sr8").
/// Lives as long as the program. Thread-safe. Throws Error with the nearest known name.
const Unit& find_unit(std::string_view name);
/// find_unit(), or nullptr where nothing has that name. Does not search for the nearest name, which
/// takes long.
const Unit* known_unit(std::string_view name);
/// A unit of one's own. Throws Error if the description contradicts itself.
std::unique_ptr<Unit> make_unit(UnitDescription);
/// Every unit of the tables, in their order, without modifiers.
const std::vector<const Unit*>& all_units();
/// Those of the tables that a pattern fits: the parts of a name in their order ("h100.wgmma",
/// "tcgen05.mx32"), or a whole name with * and ? ("nvidia.*.e4m3x*"). Empty where none does.
std::vector<const Unit*> units_like(std::string_view pattern);
/// The unit itself, then with each of its modifiers.
std::vector<const Unit*> with_modifiers(const Unit&);
std::string_view to_string(Grade);
/// S, H, M, L, V, W; D for definitions, Y for descriptions of yours, - where there is no evidence.
char letter_of(Grade);

/// The numbers of `count` elements of D in the containers that multiply() writes: a floating
/// format, or a two's complement register in 1, 2 or 4 bytes with the bits right of its point. The
/// unit has a description where its results are a register's.
std::vector<double> result_values(const Unit&, const void* d, std::int64_t count);

}  // namespace numemu::unit

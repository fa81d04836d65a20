// The reference: one output of a described unit, in integer arithmetic, one product at a time.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

struct ShortEnds;

/// An output: its code in the format of D, and the exception flags (formats/codec.hpp) of a unit
/// with a floating register, 0 otherwise; docs/units.md defines them.
struct Outcome {
  std::uint64_t code = 0;
  std::uint8_t flags = 0;
  /// A register did not hold a number that was written to it: it saturated, or became infinite.
  bool overflowed = false;
};

/// Outputs of one product by the rules of a description: this is the specification of every fast
/// path. The description and the product must outlive it. Thread-safe.
class ReferenceDot {
 public:
  /// Decodes the operands once. Throws Error as Unit::multiply does.
  ReferenceDot(const UnitDescription&, const Gemm&);
  ~ReferenceDot();
  ReferenceDot(ReferenceDot&&) noexcept;

  /// The code of D(i, j), with everything that led to it if `trace` is given. `words` replaces the
  /// seed's random numbers: one for each k, padding included, then one for each chunk.
  std::uint64_t code(std::int64_t i, std::int64_t j, Trace* trace = nullptr,
                     std::span<const std::uint32_t> words = {}) const;
  /// The outcome for a row of A and a column of B that meet element `c` of the product's C, and
  /// where stochastic registers draw for output `number`; of a machine whose registers have such
  /// `ends`.
  Outcome outcome(std::int64_t i, std::int64_t j, std::int64_t c, std::int64_t number,
                  Trace* trace = nullptr, std::span<const std::uint32_t> words = {},
                  const ShortEnds* ends = nullptr) const;
  /// The exact sum of the products of D(i, j), their scales included, of C and of `more`: the
  /// leading 64 bits, sticky. Operands are as the unit reads them (as_stored() for those of A, B).
  Value exact(std::int64_t i, std::int64_t j, std::initializer_list<Value> more = {}) const;
  /// Element p: the exact sum of the first p products of D(i, j) in the order of these k, and of C.
  std::vector<Value> exact_sums(std::int64_t i, std::int64_t j, std::span<const std::int64_t> order,
                                bool with_c) const;
  /// Writes D(i, j) into the product's `d`.
  void write(std::int64_t i, std::int64_t j) const;

 private:
  struct Problem;
  std::unique_ptr<const Problem> problem_;
};

/// The description without the rounding and flushing of operands.
UnitDescription as_stored(UnitDescription);

}  // namespace numemu::unit

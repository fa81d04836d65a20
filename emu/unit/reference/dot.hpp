// The reference: one output of a described unit, in integer arithmetic, one product at a time.
#pragma once
#include <cstdint>
#include <memory>

#include "emu/unit/description.hpp"
#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Outputs of one product by the rules of a description: this is the specification of every fast
/// path. The description and the product must outlive it. Thread-safe.
class ReferenceDot {
 public:
  /// Decodes the operands once. Throws Error as Unit::multiply does.
  ReferenceDot(const UnitDescription&, const Gemm&);
  ~ReferenceDot();
  ReferenceDot(ReferenceDot&&) noexcept;

  /// The code of D(i, j), with everything that led to it if `trace` is given.
  std::uint64_t code(std::int64_t i, std::int64_t j, Trace* trace = nullptr) const;
  /// Writes D(i, j) into the product's `d`.
  void write(std::int64_t i, std::int64_t j) const;

 private:
  struct Problem;
  std::unique_ptr<const Problem> problem_;
};

}  // namespace numemu::unit

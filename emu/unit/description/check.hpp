// The parts of check_description(), one per aspect of a description.
#pragma once
#include <string>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::unit {

/// Shared by several checks. Both levels of a unit are floating, or both two's complement.
inline bool floating_register(const UnitDescription& u) { return u.accumulator.format != nullptr; }
inline bool twos_complement(const UnitDescription& u) { return !floating_register(u); }
inline bool rounds(const UnitDescription& u) { return !is_integer_core(u); }
inline bool meets_later(const UnitDescription& u) {
  return u.core == CoreKind::fused && u.c_entry == CEntry::after_alignment;
}
inline bool block_scaled(const UnitDescription& u) {
  return u.scaling.point == Scaling::Point::exponents || u.scaling.point == Scaling::Point::groups;
}

/// Checks everything; each check relies only on earlier ones.
class DescriptionCheck {
 public:
  explicit DescriptionCheck(const UnitDescription& u) : u_(u), step_(products_of_step(u)) {}
  void run() const;

 private:
  static constexpr int kLargestSize = 1 << 20;      ///< of k, group, chunks and blocks
  static constexpr int kLargestExponent = 1 << 16;  ///< beyond the exponents of every format

  /// Throws Error "NAME: KEY: expected EXPECTED" unless it holds.
  void require(bool holds, std::string_view key, std::string_view expected) const;
  void in_range(int value, std::string_view key, int least, int most) const;

  void name() const;
  void sizes() const;
  /// A register whose keys are members of `object`.
  void one_register(const Register&, const std::string& object) const;
  void accumulator() const;
  void outer() const;
  void unused_fields() const;
  void operands() const;
  void results() const;
  void roundings() const;
  void order() const;
  void fused() const;
  void chain() const;
  void tree() const;
  void table() const;
  void c_entry() const;
  void subnormals() const;
  void nan() const;
  void scaling() const;
  void sparsity() const;
  void input() const;

  const UnitDescription& u_;
  int step_;  ///< products of a step, 0 where it takes the whole depth
};

}  // namespace numemu::unit

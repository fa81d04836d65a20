// The parts of check_description(), one per aspect of a description, and the most bits that the
// reference's integers hold.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::unit {

/// Bits of the significand of an operand as it is multiplied: of the input rounding where there is
/// one.
int significand_bits(const UnitDescription&, const Format& operand);
/// The product of two operands fits the 64 bits of a Value.
bool products_fit(const UnitDescription&);
/// fused, scaling groups: the exact sum of 16 products times both significands of its scales fits
/// 64 bits.
bool group_sums_fit(const UnitDescription&);
/// fused: the largest alignment.fraction_bits, and second.fraction_bits, whose sums are exact.
int most_fraction_bits(const UnitDescription&);
int most_second_fraction_bits(const UnitDescription&);
/// The largest second.c_fraction_bits: C itself must fit 64 bits.
inline constexpr int kMostCFractionBits = 63;

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

/// A field, or an object of fields, that contradicts the others.
struct DescriptionProblem {
  std::string key, expected;
};

/// Whether the other fields give this one a meaning; where they do not, it must keep its default.
bool applies(const UnitDescription&, std::string_view key);

/// Every check, one function for each aspect.
class DescriptionCheck {
 public:
  explicit DescriptionCheck(const UnitDescription& u) : u_(u), step_(products_of_step(u)) {}
  /// The problems, in the order of the aspects; empty where there are none.
  std::vector<DescriptionProblem> run();

 private:
  static constexpr int kLargestSize = 1 << 20;      ///< of k, group, chunks and blocks
  static constexpr int kLargestExponent = 1 << 16;  ///< beyond the exponents of every format

  /// Notes a problem unless it holds, and returns whether it does.
  bool require(bool holds, std::string_view key, std::string_view expected);
  bool in_range(int value, std::string_view key, int least, int most);

  void name();
  void sizes();
  /// A register whose keys are members of `object`.
  void one_register(const Register&, const std::string& object);
  void accumulator();
  void outer();
  void unused_fields();
  void operands();
  // These rely on formats that accumulator(), outer() and operands() have accepted.
  void results();
  void fused();
  void table();
  void nan();
  void scaling();
  // These do not.
  void roundings();
  void order();
  void chain();
  void tree();
  void c_entry();
  void subnormals();
  void sparsity();
  void input();

  const UnitDescription& u_;
  int step_;  ///< products of a step, 0 where it takes the whole depth
  std::vector<DescriptionProblem> problems_;
};

/// "my.unit: k: expected 0 to 1048576"; "unit" where it has no name to print.
std::string problem_text(const UnitDescription&, const DescriptionProblem&);

}  // namespace numemu::unit

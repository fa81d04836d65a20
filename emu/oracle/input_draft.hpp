// One record's inputs as they are written: numbers, products and quotients of chosen exponents.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/dice.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// Exponents of leading bits that the numbers of a format, or of a two's complement register, have.
struct ExponentReach {
  int low = 0, normal = 0, high = 0;
};

/// The inputs of record i of a batch.
class InputDraft {
 public:
  InputDraft(const Subject&, const Layout&);
  void begin(Records& records, std::int64_t i) { records_ = &records, i_ = i; }

  int a() const { return a_; }
  int b() const { return b_; }
  /// -1 where the record has none.
  int c() const { return c_; }
  /// The addend that can be chosen last: c, or b of a sum; -1 where there is none.
  int last() const { return last_; }
  const OperationRow& row() const { return row_; }
  /// Of the scales; -1 where the record has none.
  int scale_a() const { return scale_a_; }
  int scale_b() const { return scale_b_; }
  std::int64_t products() const { return field(a_).count; }
  const Field& field(int f) const { return layout_[static_cast<std::size_t>(f)]; }
  const ExponentReach& reach(int f) const { return reach_[static_cast<std::size_t>(f)]; }

  std::uint64_t code(int f, std::int64_t at = 0) const;
  void put(int f, std::int64_t at, std::uint64_t code);
  /// The nearest number of the field.
  void put(int f, std::int64_t at, const Value&);
  /// Where the element after `products` of A stands in B: the same, or of the kept.
  std::int64_t partner(std::int64_t p) const;

  /// Every input but metadata is zero; scales are one, metadata a random legal pattern.
  void clear(Dice&);
  /// Random bits for stochastic rounding and, if wanted, scales of similar size.
  void put_sides(Dice&, bool scales);
  /// The same, or its negative where the operation negates the last addend and f is that.
  void put_addend(int f, const Value&);
  /// Any code.
  void put_any(Dice&, int f, std::int64_t at);
  /// Any finite number's code.
  void put_finite(Dice&, int f, std::int64_t at);
  /// A number whose leading bit has the exponent, or the next that the field has, with at most
  /// `bits` significant bits; `negative` where the field has signs.
  void put_number(Dice&, int f, std::int64_t at, int exponent, int bits, bool negative);
  /// The largest number of the sign, or that many codes nearer to zero.
  void put_largest(int f, std::uint64_t codes, bool negative);
  /// Product p with factors whose exponents add up to `exponent`, as far as they reach; `negative`
  /// as it counts in the sum.
  void put_product(Dice&, std::int64_t p, int exponent, int bits, bool negative);
  /// Exponents that products reach.
  ExponentReach product_reach() const;
  /// Exponents that the result's largest term reaches without c: a product, quotient, root, ...
  ExponentReach term_reach() const;
  /// a and b whose quotient has this exponent, as far as they reach.
  void put_quotient(Dice&, int exponent, int bits, bool negative);
  /// Significant bits of the operands.
  int operand_bits() const;

 private:
  std::uint64_t nearest(const Field&, const Value&) const;

  Subject subject_;
  Layout layout_;
  const OperationRow& row_;
  int a_, b_, c_, last_, scale_a_, scale_b_, kept_, random_;
  std::vector<ExponentReach> reach_;
  Records* records_ = nullptr;
  std::int64_t i_ = 0;
};

}  // namespace numemu::oracle

// Inputs that are likely to be of a class; whether they are is for classes.hpp to say.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/format.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// Ascending, without repetition. Level 1: both zeros, the smallest and the largest number, both
/// sides of the smallest normal number and of one, infinities, NaN (a signalling one, too). Level
/// 2: powers of two as well, and the neighbours of all of these. Of each sign.
std::vector<std::uint64_t> edge_codes(const Format&, int level);

/// The codes of `from` for the edges of `to`, and their neighbours: where a conversion changes.
std::vector<std::uint64_t> conversion_edges(const Format& from, const Format& to, int level);

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

/// Proposes inputs of records of one subject.
class Proposer {
 public:
  Proposer(const Subject&, const Layout&);
  /// Writes the inputs of record i. `classifier` computes exact sums on the way.
  void propose(Style, Dice&, Classifier& classifier, Records&, std::int64_t i);

  /// The number of inputs of style exhaustive, where at most 2^32; else 0.
  std::int64_t inputs() const;
  /// Input number n of them.
  void put_input(std::int64_t n, Records&, std::int64_t i);
  /// The combinations of edges of all inputs, where at most 2^32; else 0.
  std::int64_t edge_combinations() const;
  void put_edges(std::int64_t n, Records&, std::int64_t i);

 private:
  void random(Dice&);
  void edges(Dice&);
  void cancel(Dice&, Classifier&);
  void subnormal(Dice&);
  void overflow(Dice&);
  void ties(Dice&, Classifier&);
  void alignment(Dice&);
  void near_ties(Dice&, Classifier&);
  void carry(Dice&);
  void rounding_carry(Dice&);
  void sum_carry(Dice&);
  /// Operands of a product, quotient or root near the number.
  void put_result(Dice&, const Value&);
  /// Operands whose exact result is this tie, as far as there are any; not of sums and products.
  void put_tie(Dice&, Value tie);
  /// Quotients and roots as near to a tie as there are any.
  void hard_quotient(Dice&);
  void hard_root(Dice&);
  /// Two operands of which one is beside the other.
  void neighbours(Dice&);

  void random_products(Dice&);
  /// The exact sum of the record with its last addend zero, which it then is.
  Value sum_without_last(Classifier&);
  /// The middle of two neighbours in the result's format, some codes from `near`; zero where no
  /// two are there.
  Value halfway(Dice&, const Value& near) const;
  /// x - y, exact.
  static Value difference(const Value& x, const Value& y);
  /// Whether results are numbers with neighbours: not two's complement, no codebook, no sign.
  bool has_neighbours() const;
  /// An exponent of half a unit in the last place that products reach, and leave `room` below it.
  int half_unit(Dice&, int room) const;
  /// b of a product becomes the quotient of the value and a.
  void put_partner(std::int64_t p, const Value& product);
  /// x * y, of at most 64 leading bits and a sticky bit.
  static Value product(const Value& x, const Value& y);

  Subject subject_;
  Layout layout_;
  InputDraft draft_;
  std::vector<std::vector<std::uint64_t>> edges_;  ///< of each field
  Records* records_ = nullptr;
  std::int64_t i_ = 0;
};

}  // namespace numemu::oracle

// Inputs that are likely to be of a class; whether they are is for classes.hpp to say.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/input_draft.hpp"

namespace numemu::oracle {

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

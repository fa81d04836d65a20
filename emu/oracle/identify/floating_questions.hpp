// The constructed questions of floating units, one function for each aspect.
#pragma once
#include <vector>

#include "emu/oracle/dots/draft.hpp"

namespace numemu::oracle {

class FloatingQuestions {
 public:
  explicit FloatingQuestions(Sheet&);
  void make();

 private:
  // How sums are formed.

  /// Positions near the ends of steps of any power of two.
  std::vector<int> positions() const;
  /// Ones everywhere, `distance` below a large number at i and its opposite at j; -1: in C.
  void mask(int i, int j, int large, int distance);
  void order();
  void distances();
  void ties();
  void products();
  void counted();
  void carries();
  void inputs();

  // The ends of the formats.

  void zeros();
  void exponents_of_zeros();
  void subnormals();
  void range();
  void specials();
  void scales();

  Sheet& all_;
  const Ports& ports_;
  int kept_, mantissa_;
  int top_ = 0, bottom_ = 0;  ///< exponents of products that D, too, can hold
};

}  // namespace numemu::oracle

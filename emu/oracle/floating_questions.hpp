// The constructed questions of floating units, one function for each aspect.
#pragma once
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "emu/oracle/draft.hpp"
#include "emu/oracle/questions.hpp"

namespace numemu::oracle {

/// Collects what can be expressed, each dot once.
class Questions {
 public:
  explicit Questions(const Ports& ports) : ports_(ports) {}
  Draft draft() const { return Draft(ports_); }

  void add(const char* aspect, const Draft& draft) {
    const auto dot = draft.dot();
    if (!dot) return;
    std::vector<std::uint64_t> key = dot->a;
    key.insert(key.end(), dot->b.begin(), dot->b.end());
    key.push_back(dot->c);
    for (const auto* scales : {&dot->scale_a, &dot->scale_b})
      key.insert(key.end(), scales->begin(), scales->end());
    if (seen_.insert(std::move(key)).second) questions_.push_back({aspect, *dot});
  }
  std::vector<Question> take() { return std::move(questions_); }

 private:
  const Ports& ports_;
  std::set<std::vector<std::uint64_t>> seen_;
  std::vector<Question> questions_;
};

class FloatingQuestions {
 public:
  explicit FloatingQuestions(const Ports& ports);
  std::vector<Question> make();

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
  void inputs();

  // The ends of the formats.

  void zeros();
  void exponents_of_zeros();
  void subnormals();
  void range();
  void specials();
  void scales();

  const Ports& ports_;
  Questions all_;
  int kept_, mantissa_;
  int top_ = 0, bottom_ = 0;  ///< exponents of products that D, too, can hold
};

}  // namespace numemu::oracle

#!/usr/bin/env bash
# An expression draws from a random source once: C++ leaves the order of two draws open, and compilers differ.
# shellcheck disable=SC2016
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

check() { sources '[^/]*\.(cpp|hpp)' formats emu policies experiments api cli | python3 "$here/single_draws.py"; }

dice() {
  put emu/dice.hpp 'class Dice {' ' public:' '  std::uint32_t word() { return source_.bits(next_++, 32); }' \
    '  int below(int n) { return word() % n; }' ' private:' '  RandomSource source_;' '  std::uint64_t next_ = 0;' '};'
}
draws() { # draws LINE...: the body of a function that has been given dice
  dice
  put emu/a.cpp '#include "emu/dice.hpp"' 'namespace numemu {' 'void f(Dice& dice) {' "$@" '}' '}  // namespace numemu'
}
good_statements() {
  draws 'const bool negative = dice.below(2) != 0;' 'const int e = dice.below(9), m = dice.below(8);' \
    'if (dice.below(2) == 0) put(dice.below(3));' 'for (int i = dice.below(4); i > 0; --i) put(dice.word());' \
    'const int x = dice.below(2) != 0 ? dice.below(8) : dice.below(9);' 'put(dice, e);' '// put(dice.below(2), dice.below(3))' \
    'const auto draw = [&] { const int high = dice.below(2); return high + dice.below(2); };' 'put(draw());'
}
good_other_type() {
  dice
  put emu/b.cpp 'struct Dice { int a, b; };' 'int f(Dice dice) { return dice.a + dice.b; }'
}
bad_arguments() { draws 'put(dice.below(2), dice.below(3));'; }
bad_operands() { draws 'const int x = dice.below(2) + dice.below(3);'; }
bad_given_too() { draws 'put_number(dice, 0, dice.below(2));'; }
bad_braces() { draws 'const Point p{dice.below(2), dice.below(3)};'; }
bad_lambda() { draws 'const auto draw = [&] { return dice.below(2); };' 'put(draw(), draw());'; }
bad_in_lambda() { draws 'const auto draw = [&] { return dice.below(2) << dice.below(3); };'; }
bad_body_of_if() { draws 'if (x) put(dice.below(2), dice.below(3));'; }
bad_in_braces_of_call() { draws 'put(0, Value{dice.below(2), false, dice.word()});'; }
bad_member() {
  dice
  put emu/a.cpp '#include "emu/dice.hpp"' 'class Maker {' '  int element() { return draw_.below(2); }' \
    '  void make() { put(element(), element()); }' '  Dice draw_;' '};'
}
bad_inside_source() {
  put emu/a.hpp 'class Draws {' ' public:' '  std::uint64_t word() { return source_.bits(next_++, 32); }' \
    '  std::uint64_t both() { return word() << 32 | word(); }' '  RandomSource source_;' '  std::uint64_t next_ = 0;' '};'
}

run_check "$@"

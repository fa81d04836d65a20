// Units, formats and the comparison of every path with the model, for the tests of integer kernels.
#pragma once
#include <map>
#include <vector>

#include "emu/unit/integer/integer.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/integer/integer_problem.hpp"

namespace numemu::unit::test::integers {

inline constexpr IntegerPath kPaths[] = {IntegerPath::best, IntegerPath::amx, IntegerPath::vnni,
                                         IntegerPath::portable, IntegerPath::wide};

inline UnitDescription integer_unit(int bits = 32, IntegerOverflow overflow = IntegerOverflow::wrap,
                                    int group = 0, int k = 0) {
  UnitDescription unit;
  unit.core = CoreKind::integer;
  unit.accumulator.bits = bits;
  unit.accumulator.integer = overflow;
  unit.group = group;
  unit.k = k;
  return unit;
}

/// How often each path took a product and agreed with the model; fails where one does not agree.
class Tally {
 public:
  void check(const IntegerProblem& p) {
    const std::vector<std::int32_t> expected = model(p);
    for (const IntegerPath path : kPaths) check_path(p, expected, path);
  }

  void check_path(const IntegerProblem& p, const std::vector<std::int32_t>& expected,
                  IntegerPath path) {
    const Register& r = p.unit.accumulator;
    const std::vector<std::uint8_t> c = container(r, p.c), want = container(r, expected);
    std::vector<std::uint8_t> got(want.size() + 1, 0xa5);
    const Gemm g = p.gemm(p.c.empty() ? nullptr : c.data(), got.data());
    if (!multiply_integer(p.unit, g, path)) {
      CHECK(std::count(got.begin(), got.end(), 0xa5) == static_cast<std::ptrdiff_t>(got.size()));
      return;
    }
    ++taken_[path];
    INFO(p.a.format->name << " x " << p.b.format->name << ", register " << r.bits << " bits, kind "
                          << static_cast<int>(r.integer) << ", group " << p.unit.group << ", "
                          << p.m << " x " << p.n << " x " << p.k << ", path "
                          << static_cast<int>(path));
    const bool equal = std::equal(want.begin(), want.end(), got.begin()) && got.back() == 0xa5;
    CHECK(equal);
  }

  int taken(IntegerPath path) { return taken_[path]; }

 private:
  std::map<IntegerPath, int> taken_;
};

inline const std::vector<Format>& integer_formats() {
  static const std::vector<Format> all = {integer_format(8, true),  integer_format(8, false),
                                          integer_format(4, true),  integer_format(4, false),
                                          integer_format(2, true),  integer_format(7, false),
                                          integer_format(16, true), integer_format(16, false),
                                          integer_format(12, true), integer_format(15, false)};
  return all;
}

}  // namespace numemu::unit::test::integers

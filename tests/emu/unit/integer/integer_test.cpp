// Integer kernels against a model of 64-bit sums: every mix of operands, register, path and shape.
#include "emu/unit/integer/integer.hpp"

#include <omp.h>

#include "tests/emu/unit/by_path.hpp"
#include "tests/emu/unit/integer/tally.hpp"

namespace integer_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using namespace numemu::unit::test::integers;

TEST_CASE("integer: every mix of operands and width of register wraps", "[fast]") {
  Tally tally;
  std::uint64_t seed = 1;
  for (const Format& a : integer_formats()) {
    for (const Format& b : integer_formats()) {
      for (const int bits : {8, 11, 16, 24, 32}) {
        const Codes codes = seed % 2 == 0 ? Codes::any : Codes::extreme;
        tally.check(integer_problem(integer_unit(bits), a, b, {17, 33, 70}, codes, seed++));
      }
    }
  }
  CHECK(tally.taken(IntegerPath::best) == 500);
  CHECK(tally.taken(IntegerPath::wide) == 500);
  CHECK(tally.taken(IntegerPath::portable) == 5 * 81);
  CHECK(tally.taken(IntegerPath::amx) == (has_path(IntegerPath::amx) ? 5 * 36 : 0));
  CHECK(tally.taken(IntegerPath::vnni) == (has_path(IntegerPath::vnni) ? 5 * 81 : 0));
}

TEST_CASE("integer: every shape and layout", "[fast]") {
  Tally tally;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1], &s16 = integer_formats()[6];
  std::uint64_t seed = 1000;
  for (const std::int64_t k : {0, 1, 2, 3, 31, 63, 64, 65, 127, 1023, 1025, 2100}) {
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {7, 1}, {1, 40}, {16, 16}, {17, 15}, {33, 65}}) {
      const IntegerShape shape{m, n, k, seed % 2 == 0, seed % 3 == 0, seed % 5 != 0};
      tally.check(integer_problem(integer_unit(), seed % 7 < 3 ? u8 : s8, seed % 7 < 5 ? s8 : u8,
                                  shape, Codes::any, seed));
      tally.check(integer_problem(integer_unit(), s16, s8, shape, Codes::any, seed));
      ++seed;
    }
  }
}

TEST_CASE("integer: lanes of whole cache lines, and sums stored in D", "[fast]") {
  Tally tally;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1];
  std::uint64_t seed = 2000;
  for (const std::int64_t k : {1, 5, 63, 64, 65, 200, 1100}) {
    for (const std::int64_t n : {63, 64, 100, 130}) {
      for (const bool with_c : {false, true}) {
        const IntegerShape shape{seed % 2 == 0 ? 64 : 33, n, k, seed % 3 == 0, true, with_c};
        tally.check(integer_problem(integer_unit(seed % 5 < 3 ? 32 : 20), s8,
                                    seed % 2 == 0 ? s8 : u8, shape, Codes::any, seed));
        ++seed;
      }
    }
  }
}

TEST_CASE("integer: sums wrap past 2^31", "[fast]") {
  Tally tally;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1], &s16 = integer_formats()[6],
               &u16 = integer_formats()[7];
  // -128 * -128 * 131072 = 2^31, 255 * 255 * 66052 > 2^32.
  tally.check(integer_problem(integer_unit(), s8, s8, {2, 2, 131072}, Codes::lowest, 1));
  tally.check(
      integer_problem(integer_unit(), s8, s8, {2, 2, 131072, true, true}, Codes::lowest, 2));
  tally.check(integer_problem(integer_unit(), u8, u8, {2, 2, 66053}, Codes::highest, 3));
  tally.check(integer_problem(integer_unit(), u8, s8, {2, 2, 66053}, Codes::extreme, 4));
  // One pair of the most negative numbers already is 2^31.
  tally.check(integer_problem(integer_unit(), s16, s16, {3, 3, 7}, Codes::lowest, 5));
  tally.check(integer_problem(integer_unit(), s16, u16, {3, 3, 700}, Codes::extreme, 6));
  tally.check(integer_problem(integer_unit(), u16, u16, {3, 3, 700}, Codes::highest, 7));
}

TEST_CASE("integer: saturation at both ends, leaving and returning", "[fast]") {
  Tally tally;
  std::uint64_t seed = 1;
  for (const IntegerOverflow overflow :
       {IntegerOverflow::saturate_once, IntegerOverflow::saturate_each}) {
    for (const int bits : {8, 12, 16, 20, 32}) {
      for (const auto& [group, k] : std::vector<std::pair<int, int>>{
               {0, 0}, {4, 0}, {4, 64}, {0, 32}, {3, 9}, {64, 64}, {2000, 0}}) {
        for (const std::size_t a : {0, 1, 3, 6, 7}) {
          const Format &fa = integer_formats()[a],
                       &fb = integer_formats()[seed % integer_formats().size()];
          const Codes codes = seed % 3 == 0 ? Codes::any : Codes::extreme;
          tally.check(integer_problem(integer_unit(bits, overflow, group, k), fa, fb,
                                      {5, 34, 131, false, seed % 2 == 0, seed % 4 != 0}, codes,
                                      seed));
          ++seed;
        }
      }
    }
  }
  CHECK(tally.taken(IntegerPath::best) == static_cast<int>(seed - 1));
  CHECK(tally.taken(IntegerPath::wide) == static_cast<int>(seed - 1));
  // Slices of the depth end inside steps.
  const Format& s8 = integer_formats()[0];
  for (const int group : {1000, 7, 1}) {
    tally.check(integer_problem(integer_unit(16, IntegerOverflow::saturate_once, group), s8, s8,
                                {3, 40, 3001}, Codes::extreme, seed++));
  }
}

TEST_CASE("integer: what cannot saturate takes the wrapping kernels", "[fast]") {
  Tally tally;
  const Format& s8 = integer_formats()[0];
  IntegerProblem p = integer_problem(integer_unit(32, IntegerOverflow::saturate_once, 4), s8, s8,
                                     {3, 3, 64}, Codes::lowest, 1);
  // 64 * 2^14 = 2^20 may be added to at most 2^31 - 1 - 2^20.
  for (const std::int32_t c : {0x7fffffff - (1 << 20), 0x7fffffff - (1 << 20) + 1}) {
    std::fill(p.c.begin(), p.c.end(), c);
    tally.check(p);
  }
  CHECK(tally.taken(IntegerPath::portable) == 1);
  CHECK(tally.taken(IntegerPath::best) == 2);
}

TEST_CASE("integer: any number of threads gives the same bits", "[fast]") {
  Tally tally;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1];
  const int before = omp_get_max_threads();
  const IntegerProblem wraps =
      integer_problem(integer_unit(), s8, u8, {150, 130, 1200}, Codes::any, 1);
  const IntegerProblem saturates = integer_problem(
      integer_unit(17, IntegerOverflow::saturate_once, 4), s8, u8, {150, 130, 70}, Codes::any, 2);
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    tally.check(wraps);
    tally.check(saturates);
  }
  omp_set_num_threads(before);
}

TEST_CASE("integer: other units are declined", "[fast]") {
  const Format& s8 = integer_formats()[0];
  const auto declined = [&](const UnitDescription& unit) {
    const IntegerProblem p =
        integer_problem(unit, s8, s8, {2, 2, 8, false, false, false}, Codes::any, 1);
    std::vector<std::int32_t> d(4);
    return !by_path(multiply_integer, unit, p.gemm(nullptr, d.data()));
  };
  CHECK_FALSE(declined(integer_unit()));
  CHECK(declined(integer_unit(33)));
  CHECK(declined(integer_unit(7)));
  UnitDescription unit = integer_unit();
  unit.core = CoreKind::exact;
  CHECK(declined(unit));
  unit = integer_unit();
  unit.core = CoreKind::xnor;  // of integers
  CHECK(declined(unit));
  CHECK(declined(integer_unit(16, IntegerOverflow::saturate_once, 3, 8)));
}

}  // namespace integer_test

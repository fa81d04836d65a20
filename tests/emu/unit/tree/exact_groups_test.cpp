// Groups added exactly with one rounding (CDNA1 after Leeds, Arm FP8) against the reference.
#include "emu/unit/tree/exact_groups.hpp"

#include "emu/unit/catalogue/models.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/lanes/lane_problem.hpp"

namespace numemu::unit::test::exact_groups_test {
namespace {

TEST_CASE("exact groups of FP8 products give the reference's bits", "[fast]") {
  for (const int group : {1, 4, 8}) {
    UnitDescription u = arm_fp8(group);
    u.scaling.shift = group;
    for (const char* format : {"float8_e4m3fn", "float8_e5m2"}) {
      INFO(format << " " << group);
      const Counts counts = compare_all(u, multiply_exact_groups, format, format);
      CHECK(counts.differing == 0);
      CHECK(counts.declined == 0);
    }
  }
}

TEST_CASE("exact groups of float16 products give the reference's bits", "[fast]") {
  for (const int group : {2, 4}) {
    const Counts counts =
        compare_all(rounded_groups(group), multiply_exact_groups, "float16", "float16");
    CHECK(counts.differing == 0);
    CHECK(counts.declined == 0);
  }
}

TEST_CASE("exact groups of bfloat16 products give the reference's bits", "[fast]") {
  UnitDescription u = rounded_groups(2);
  u.k = 8;
  const Counts counts = compare_all(u, multiply_exact_groups, "bfloat16", "bfloat16");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
  const Counts four = compare_all(rounded_groups(4), multiply_exact_groups, "bfloat16", "bfloat16");
  CHECK(four.differing == 0);
  CHECK(four.compared > 2000);
  CHECK(four.declined > 0);
}

TEST_CASE("a sum next to a midpoint keeps what lies far below it", "[fast]") {
  // 2^16 + 2^-8 is halfway between two float32 numbers; 2^-48 and its negative decide.
  for (const std::uint16_t tiny : {0x0001, 0x8001}) {
    Problem p = make_matrices("float16", "float16", 1, 1, 4, {}, Fill::any, 1);
    p.a.halves = {0x5c00, 0x2c00, tiny, 0};  // 2^8, 2^-4, 2^-24
    p.b.halves = {0x5c00, 0x2c00, 0x0001, 0};
    std::vector<float> d;
    REQUIRE(multiply_exact_groups(rounded_groups(4), p.gemm(d)));
    CHECK(d[0] == (tiny == 0x0001 ? 0x1p16f + 0x1p-7f : 0x1p16f));
  }
}

TEST_CASE("sums of -0 alone stay -0 beside numbers that need two doubles", "[fast]") {
  Problem p = make_matrices("float16", "float16", 2, 1, 4, {}, Fill::any, 1);
  p.a.halves = {0x8000, 0x8000, 0x8000, 0x8000, 0x0001, 0x7bff, 0, 0};
  p.b.halves = {0x0001, 0x7bff, 0x3c00, 0x3c00};
  p.c = {-0.0f, -0.0f};
  Counts counts;
  compare(rounded_groups(4), multiply_exact_groups, p, 1, counts, p.c.data());
  CHECK(counts.compared == 2);
  CHECK(counts.differing == 0);
}

TEST_CASE("exact groups over several tiles and slices of k", "[fast]") {
  Problem p = make_matrices("float16", "float16", 35, 45, 267, {}, Fill::any, 5);
  Dice dice(5);
  fill_operand(p.a, LaneData::gaussian, dice);
  fill_operand(p.b, LaneData::gaussian, dice);
  fill_c(p.c, p.m * p.n, 1, dice);
  Counts counts;
  compare(rounded_groups(4), multiply_exact_groups, p, 3, counts, p.c.data());
  CHECK(counts.differing == 0);
  CHECK(counts.compared == 35 * 45);
}

}  // namespace
}  // namespace numemu::unit::test::exact_groups_test

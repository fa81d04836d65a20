// Two-stage fused products (CDNA3) against the reference, and what they decline.
#include "emu/unit/staged/staged.hpp"

#include "emu/unit/catalogue/models.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/lanes/lane_problem.hpp"

namespace numemu::unit::test::staged_test {
namespace {

struct Case {
  const char *a, *b;
  int group, parts, k;
};
constexpr Case kCases[] = {{"float16", "float16", 8, 1, 0},
                           {"bfloat16", "bfloat16", 8, 1, 0},
                           {"float16", "float16", 4, 1, 8},
                           {"bfloat16", "bfloat16", 4, 1, 0},
                           {"tfloat32", "tfloat32", 4, 1, 8},
                           {"float8_e4m3fnuz", "float8_e4m3fnuz", 16, 2, 32},
                           {"float8_e5m2fnuz", "float8_e5m2fnuz", 16, 2, 0},
                           {"float8_e4m3fnuz", "float8_e5m2fnuz", 16, 2, 16}};

UnitDescription unit_of(const Case& c) {
  UnitDescription u = mi300(c.group, c.parts);
  u.k = c.k;
  return u;
}

TEST_CASE("two alignments give the reference's bits", "[fast]") {
  for (const Case& c : kCases) {
    INFO(c.a << " " << c.b << " " << c.group);
    const Counts counts = compare_all(unit_of(c), multiply_staged, c.a, c.b);
    CHECK(counts.differing == 0);
    CHECK(counts.declined == 0);
  }
}

TEST_CASE("two alignments over several tiles and slices of k", "[fast]") {
  for (const Case& c : {kCases[1], kCases[5]}) {
    Problem p = make_matrices(c.a, c.b, 35, 45, 267, {}, Fill::any, 5);
    Dice dice(5);
    fill_operand(p.a, LaneData::gaussian, dice);
    fill_operand(p.b, LaneData::gaussian, dice);
    fill_c(p.c, p.m * p.n, 1, dice);
    for (const int threads : {1, 3}) {
      Counts counts;
      compare(unit_of(c), multiply_staged, p, threads, counts, p.c.data());
      CHECK(counts.differing == 0);
      CHECK(counts.compared == 35 * 45);
    }
  }
}

TEST_CASE("a floor below the largest exponent and other widths are followed", "[fast]") {
  UnitDescription u = mi300(8, 1);
  u.alignment.floor = -60;
  u.alignment.fraction_bits = 20;
  u.second = {.fraction_bits = 27, .c_fraction_bits = 22, .c_dropped = 23};
  const Counts counts = compare_all(u, multiply_staged, "bfloat16", "float16");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
}

TEST_CASE("a product of 2^128 is infinite, one below is not", "[fast]") {
  Problem p = make_matrices("bfloat16", "bfloat16", 1, 2, 2, {}, Fill::any, 1);
  p.a.halves = {0x7f00, 0x7f00};             // 2^127
  p.b.halves = {0x4000, 0, 0x3f80, 0xbf80};  // 2, 0; 1, -1
  std::vector<float> d;
  REQUIRE(multiply_staged(mi300(8, 1), p.gemm(d)));
  CHECK(std::isinf(d[0]));
  CHECK(d[1] == 0);
}

TEST_CASE("a product without outputs is nothing to do", "[fast]") {
  Problem p = make_matrices("float16", "float16", 0, 3, 8, {}, Fill::any, 1);
  std::vector<float> d;
  CHECK(multiply_staged(mi300(8, 1), p.gemm(d)));
}

TEST_CASE("what two alignments in doubles do not cover is declined", "[fast]") {
  Problem p = make_matrices("float16", "float16", 2, 2, 8, {}, Fill::finite, 1);
  std::vector<float> d;
  UnitDescription u = mi300(8, 1);
  u.alignment.fraction_bits = 50;
  CHECK_FALSE(by_path(multiply_staged, u, p.gemm(d)));
  u = mi300(8, 1);
  u.alignment.zero_exponent.reset();
  CHECK_FALSE(by_path(multiply_staged, u, p.gemm(d)));
  u = mi300(8, 1);
  u.c_entry = CEntry::in_alignment;
  CHECK_FALSE(by_path(multiply_staged, u, p.gemm(d)));
}

}  // namespace
}  // namespace numemu::unit::test::staged_test

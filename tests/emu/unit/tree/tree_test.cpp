// Trees of rounded sums (CDNA1, CDNA2, Arm BFDOT) against the reference, and what they decline.
#include "emu/unit/tree/tree.hpp"

#include "emu/unit/catalogue/models.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/lanes/lane_problem.hpp"

namespace numemu::unit::test::tree_test {
namespace {

/// CDNA1 as MMA-Sim has it: CDNA2's tree without flushes.
UnitDescription mi100(int group) {
  UnitDescription u = mi200(group);
  u.subnormals = {};
  return u;
}

UnitDescription ebf1() {
  UnitDescription u = arm_bfdot();
  u.tree = {.leaf = 2};
  u.accumulator.rounding = {};
  u.accumulator.overflow_to_infinity = false;
  u.subnormals = {};
  return u;
}

TEST_CASE("pairwise trees give the reference's bits", "[fast]") {
  for (const int group : {2, 4}) {
    for (const UnitDescription& u : {mi200(group), mi100(group)}) {
      if (u.subnormals.flush_results && !flushes()) continue;
      for (const char* format : {"bfloat16", "float16"}) {
        INFO(format << " " << group << " " << u.subnormals.flush_results);
        const Counts counts = compare_all(u, multiply_tree, format, format);
        CHECK(counts.differing == 0);
        CHECK(counts.declined == 0);
      }
    }
  }
}

TEST_CASE("zero products keep their sign where the unit does not add +0", "[fast]") {
  UnitDescription u = mi100(4);
  u.tree.plus_zero_products = false;
  u.k = 8;
  const Counts counts = compare_all(u, multiply_tree, "bfloat16", "float8_e5m2");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
}

TEST_CASE("pairs rounded to odd give the reference's bits", "[fast]") {
  const Counts counts = compare_all(arm_bfdot(), multiply_tree, "bfloat16", "bfloat16");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
}

TEST_CASE("pairs of exact products give the reference's bits or are declined", "[fast]") {
  Counts counts = compare_all(ebf1(), multiply_tree, "bfloat16", "bfloat16");
  CHECK(counts.differing == 0);
  CHECK(counts.compared > 2000);
  // float16 has no product below 2^-149.
  counts = compare_all(ebf1(), multiply_tree, "float16", "float16");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
}

TEST_CASE("trees over several tiles and slices of k", "[fast]") {
  std::vector<UnitDescription> trees = {arm_bfdot(), ebf1()};
  trees.push_back(flushes() ? mi200(4) : mi100(4));
  for (const UnitDescription& u : trees) {
    Problem p = make_matrices("bfloat16", "bfloat16", 35, 45, 267, {}, Fill::any, 5);
    Dice dice(5);
    fill_operand(p.a, LaneData::gaussian, dice);
    fill_operand(p.b, LaneData::gaussian, dice);
    fill_c(p.c, p.m * p.n, 1, dice);
    for (const int threads : {1, 3}) {
      Counts counts;
      compare(u, multiply_tree, p, threads, counts, p.c.data());
      CHECK(counts.differing == 0);
      CHECK(counts.compared == 35 * 45);
    }
  }
}

TEST_CASE("a tree of -0 products is +0 where products are added to +0", "[fast]") {
  Problem p = make_matrices("bfloat16", "bfloat16", 1, 1, 4, {}, Fill::any, 1);
  p.a.halves.assign(4, 0x8000);
  p.b.halves.assign(4, 0x3f80);
  p.c = {-0.0f};
  for (const bool plus_zero : {false, true}) {
    UnitDescription u = mi100(4);
    u.tree.plus_zero_products = plus_zero;
    Counts counts;
    compare(u, multiply_tree, p, 1, counts, p.c.data());
    CHECK(counts.differing == 0);
    std::vector<float> d;
    REQUIRE(multiply_tree(u, p.gemm(d)));
    CHECK(std::signbit(d[0]) == !plus_zero);
  }
}

TEST_CASE("a pair whose first product is no float32 number is declined", "[fast]") {
  Problem p = make_matrices("bfloat16", "bfloat16", 1, 1, 2, {}, Fill::any, 1);
  p.a.halves = {0x0ab0, 0x0ab0};  // 1.375 * 2^-106
  p.b.halves = {0x2a00, 0x2a00};  // 2^-43
  std::vector<float> d;
  CHECK_FALSE(by_path(multiply_tree, ebf1(), p.gemm(d)));
}

TEST_CASE("trees that float32 lanes do not compute are declined", "[fast]") {
  Problem p = make_matrices("bfloat16", "bfloat16", 2, 2, 8, {}, Fill::finite, 1);
  std::vector<float> d;
  UnitDescription u = mi200(8);
  CHECK_FALSE(by_path(multiply_tree, u, p.gemm(d)));
  u = mi200(4);
  u.accumulator.rounding.mode = RoundingMode::rtz;
  CHECK_FALSE(by_path(multiply_tree, u, p.gemm(d)));
  u = arm_bfdot();
  u.subnormals.flush_results = false;
  CHECK_FALSE(by_path(multiply_tree, u, p.gemm(d)));
}

}  // namespace
}  // namespace numemu::unit::test::tree_test

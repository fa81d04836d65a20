// Chains with x86's rules against the reference: VDPBF16PS, TDPBF16PS, plain chains, VFMADD231PH.
#include "emu/unit/lanes/lanes.hpp"

#include "emu/unit/catalogue/models.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/lanes/lane_problem.hpp"

namespace numemu::unit::test::lanes_test {
namespace {

TEST_CASE("chains under FTZ and DAZ give the reference's bits", "[fast]") {
  if (!flushes()) return;
  for (const UnitDescription& u : {avx512_bf16(), amx_bf16()}) {
    const Counts counts = compare_all(u, multiply_lanes, "bfloat16", "bfloat16");
    CHECK(counts.differing == 0);
    CHECK(counts.declined == 0);
  }
}

TEST_CASE("chains that flush take operands whose subnormals float32 does not know", "[fast]") {
  if (!flushes()) return;
  const Counts counts = compare_all(amx_bf16(), multiply_lanes, "float16", "float8_e5m2");
  CHECK(counts.differing == 0);
  CHECK(counts.declined == 0);
}

TEST_CASE("an instruction's padding turns a C of -0 into +0", "[fast]") {
  if (!flushes()) return;
  Problem p = make_matrices("bfloat16", "bfloat16", 1, 1, 1, {}, Fill::any, 1);
  p.a.halves = {0x8000};
  p.b.halves = {0x3f80};
  p.c = {-0.0f};
  std::vector<float> d;
  REQUIRE(multiply_lanes(avx512_bf16(), p.gemm(d)));
  CHECK(std::bit_cast<std::uint32_t>(d[0]) == 0);
}

TEST_CASE("a larger product over several tiles and slices of k", "[fast]") {
  if (!flushes()) return;
  for (const UnitDescription& u : {avx512_bf16(), amx_bf16()}) {
    Problem p = make_matrices("bfloat16", "bfloat16", 101, 41, 290, {}, Fill::any, 5);
    Dice dice(5);
    fill_operand(p.a, LaneData::gaussian, dice);
    fill_operand(p.b, LaneData::gaussian, dice);
    Counts counts;
    compare(u, multiply_lanes, p, 3, counts, nullptr);
    CHECK(counts.differing == 0);
    CHECK(counts.compared == 101 * 41);
  }
}

TEST_CASE("chains of binary16 multiply-adds give the reference's bits", "[fast]") {
  UnitDescription u = avx512_fp16();
  u.c = u.d = u.accumulator.format = &find_format("float16");
  u.nan_code = 0xfe00;
  Counts counts;
  std::uint64_t seed = 1;
  for (const LaneData data : kAllLaneData) {
    for (const bool with_c : {false, true}) {
      Problem p = make_matrices("float16", "float16", 19, 70, 301, {.b_transposed = with_c},
                                Fill::any, ++seed);
      Dice dice(seed);
      fill_operand(p.a, data, dice);
      fill_operand(p.b, data, dice);
      std::vector<std::uint16_t> c(static_cast<std::size_t>(p.m * p.n));
      for (auto& code : c) code = static_cast<std::uint16_t>(dice.bits());
      compare<std::uint16_t>(u, multiply_halves, p, 2, counts, with_c ? c.data() : nullptr);
    }
  }
  CHECK(counts.differing == 0);
  // Processors without the instruction leave everything to the reference.
  CHECK((counts.declined == 0 || counts.compared == 0));
}

TEST_CASE("what the chains do not cover is declined", "[fast]") {
  UnitDescription u = avx512_bf16();
  u.subnormals.flush_c = !u.subnormals.flush_c;
  Problem p = make_matrices("bfloat16", "bfloat16", 2, 2, 2, {}, Fill::finite, 1);
  std::vector<float> d;
  CHECK_FALSE(by_path(multiply_lanes, u, p.gemm(d)));
}

}  // namespace
}  // namespace numemu::unit::test::lanes_test

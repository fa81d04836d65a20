// Step maps, filled by rules of known widths and orders, give these widths and orders back.
#include "tests/oracle/cuda/probes/step_map.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {
namespace {

/// The map that a unit following the rule would return.
std::vector<std::string> map_of(const Instruction& i, const Rule& rule, Variant variant) {
  Batch batch = step_map_tiles(i, variant);
  const int bytes = info(i.d).bytes;
  for (int tile = 0; tile < batch.count; ++tile)
    for (int row = 0; row < 8; ++row) {
      const int place = (tile * i.m + row) * i.n + row;
      store_code(batch.d.data() + place * bytes, bytes,
                 answer(rule, dot_of(batch, tile, row, row)));
    }
  return read_step_map(i, batch, variant);
}
std::vector<int> steps(const Instruction& i, const Rule& rule, Variant variant) {
  return steps_of(map_of(i, rule, variant));
}

/// Contiguous steps of `width`.
std::vector<int> stretches(int kept, int width) {
  std::vector<int> steps;
  for (int k = 0; k < kept; ++k) steps.push_back(k / width);
  return steps;
}

Rule fused(int step, int fraction, int kept = 23) {
  Rule rule;
  rule.core = Core::fused;
  rule.step = step;
  rule.fraction = fraction;
  rule.kept = kept;
  return rule;
}

TEST_CASE("maps of fused units give back G, where C comes first", "[fast]") {
  for (const char* each :
       {"m16n8k16.f32.bf16.bf16.f32", "m16n8k16.f16.f16.f16.f16", "m16n8k16.f32.f16.f16.f32",
        "m16n8k8.f32.tf32.tf32.f32", "m16n8k32.f32.e4m3.e5m2.f32", "m16n8k32.f16.e5m2.e5m2.f16"}) {
    const Instruction& i = instruction("mma", each);
    CAPTURE(each);
    for (const int width : {2, 4, 8, 16, 32}) {
      if (width > i.k) continue;
      for (const int fraction : {13, 23, 24, 25}) {
        CAPTURE(width, fraction);
        CHECK(steps(i, fused(width, fraction), Variant::c_first) == stretches(i.k, width));
        CHECK(steps(i, fused(width, fraction), Variant::c_last) == stretches(i.k, width));
      }
      // Half an ulp must be kept, and four of them would be an ulp of their own.
      CHECK(steps(i, fused(width, 25), Variant::halves) == stretches(i.k, width));
      CHECK(steps(i, fused(width, 24), Variant::halves) == stretches(i.k, width));
    }
  }
}

TEST_CASE("a map where half an ulp is lost is no order of steps", "[fast]") {
  const Instruction& i = instruction("mma", "m16n8k32.f32.e4m3.e4m3.f32");
  const std::vector<std::string> map = map_of(i, fused(16, 13, 13), Variant::halves);
  CHECK(map[0].find('?') != std::string::npos);
  CHECK(steps_of(map).empty());
}

TEST_CASE("types of few exponents still tell which products share a step", "[fast]") {
  const Instruction& i = instruction("mma", "m16n8k32.f32.e2m1.e2m1.f32");
  CHECK(step_map_tiles(i, Variant::c_first).count == 0);
  for (const int width : {8, 16, 32})
    CHECK(steps(i, fused(width, 25), Variant::halves) == stretches(32, width));
  Rule interleaved = fused(16, 25);
  interleaved.interleaved = 2;
  std::vector<int> by_twos;
  for (int k = 0; k < 32; ++k) by_twos.push_back(k / 2 % 2);
  CHECK(steps(i, interleaved, Variant::halves) == by_twos);
}

TEST_CASE("other orders than ascending k are seen", "[fast]") {
  const Instruction& i = instruction("mma", "m16n8k16.f32.bf16.bf16.f32");
  Rule swapped = fused(8, 25);
  swapped.swapped = true;
  std::vector<int> last_first = stretches(16, 8);
  for (int& step : last_first) step = 1 - step;
  CHECK(steps(i, swapped, Variant::c_first) == last_first);
  Rule interleaved = fused(8, 25);
  interleaved.interleaved = 1;
  std::vector<int> by_turns;
  for (int k = 0; k < 16; ++k) by_turns.push_back(k % 2);
  CHECK(steps(i, interleaved, Variant::c_first) == by_turns);
}

TEST_CASE("FP8 that is lowered shows its two steps where C enters last", "[fast]") {
  for (const char* each : {"m16n8k32.f32.e4m3.e4m3.f32", "m16n8k32.f16.e5m2.e4m3.f16"}) {
    const Instruction& i = instruction("mma", each);
    Rule rule = fused(16, 25);
    rule.core = Core::lowered_fp8;
    rule.c = CEnters::after_rounding;
    std::vector<int> low_first;
    for (int k = 0; k < 32; ++k) low_first.push_back(k % 4 / 2);
    CHECK(steps(i, rule, Variant::c_last) == low_first);
    // C first sees one step alone, for nothing meets C before the end.
    CHECK(steps(i, rule, Variant::c_first) == std::vector<int>(32, 0));
    rule.swapped = true;
    for (int& step : low_first) step = 1 - step;
    CHECK(steps(i, rule, Variant::c_last) == low_first);
    rule.swapped = false;
    rule.split = Split::even;
    std::vector<int> even_first;
    for (int k = 0; k < 32; ++k) even_first.push_back(k % 2);
    CHECK(steps(i, rule, Variant::c_last_by_two) == even_first);
    rule.split = Split::first_half;
    CHECK(steps(i, rule, Variant::c_last) == stretches(32, 16));
  }
}

TEST_CASE("float64 shows a chain of single products", "[fast]") {
  const Instruction& i = instruction("mma", "m16n8k8.f64.f64.f64.f64");
  Rule chain;
  chain.core = Core::fma_chain;
  CHECK(steps(i, chain, Variant::c_first) == stretches(8, 1));
  chain.chain = Chain::descending;
  std::vector<int> descending = stretches(8, 1);
  for (int& step : descending) step = 7 - step;
  CHECK(steps(i, chain, Variant::c_first) == descending);
}

TEST_CASE("clamping in steps shows these steps, clamping once shows one", "[fast]") {
  const Instruction& i = instruction("mma", "m16n8k32.s32.s8.s8.s32.satfinite");
  Rule rule;
  rule.core = Core::integer;
  for (const int width : {1, 4, 8, 16}) {
    rule.saturation = Saturation::per_step;
    rule.step = width;
    CHECK(steps(i, rule, Variant::in_saturation) == stretches(32, width));
  }
  rule.saturation = Saturation::once;
  CHECK(steps(i, rule, Variant::in_saturation) == std::vector<int>(32, 0));
  CHECK(
      step_map_tiles(instruction("mma", "m16n8k32.s32.s8.s8.s32"), Variant::in_saturation).count ==
      0);
  CHECK(
      step_map_tiles(instruction("mma", "m16n8k32.s32.u8.u8.s32.satfinite"), Variant::in_saturation)
          .count == 0);
}

TEST_CASE("sparse maps count the kept products", "[fast]") {
  const Instruction& i = instruction("mmasp", "m16n8k32.f32.bf16.bf16.f32");
  REQUIRE(i.kept() == 16);
  CHECK(steps(i, fused(8, 24), Variant::c_first) == stretches(16, 8));
  Rule positions = fused(8, 24);
  positions.counts_positions = true;
  CHECK(steps(i, positions, Variant::c_first) == stretches(16, 4));
}

TEST_CASE("the specification's width comes back from every instruction of Hopper", "[fast]") {
  int asked = 0;
  for (const Instruction& i : instructions()) {
    if (i.chips.first > 90 || i.chips.last < 90) continue;
    const std::vector<Rule> known = rules("H100", i);
    // Chips after Turing have no unit for quad pairs.
    REQUIRE(known.empty() == (i.m == 8 && i.k == 4 && i.a == Element::f16));
    if (known.empty()) continue;
    const Rule& rule = known[0];
    CAPTURE(name(i.kind), name(i), rule.name);
    const bool last = rule.c == CEnters::after_rounding;
    // C of float16 beside a float32 D: what C can cancel is too small a range.
    const Variant variant = is_integer(i.a)      ? Variant::in_saturation
                            : last || i.c != i.d ? Variant::c_last
                                                 : Variant::c_first;
    if (step_map_tiles(i, variant).count == 0) continue;
    ++asked;
    std::vector<int> expected(static_cast<std::size_t>(i.kept()), 0);
    if (rule.core == Core::fma_chain) std::iota(expected.begin(), expected.end(), 0);
    if (rule.core == Core::fused && rule.step != 0) expected = stretches(i.kept(), rule.step);
    if (rule.core == Core::lowered_fp8)
      for (int k = 0; k < i.kept(); ++k) expected[static_cast<std::size_t>(k)] = k % 4 / 2;
    CHECK(steps(i, rule, variant) == expected);
  }
  CHECK(asked > 60);
}

TEST_CASE("steps are numbered only where a map is an order", "[fast]") {
  CHECK(steps_of({"011", "000", "000"}) == std::vector<int>{0, 1, 1});
  CHECK(steps_of({"00", "10"}) == std::vector<int>{1, 0});
  CHECK(steps_of({"01", "10"}).empty());
  CHECK(steps_of({"0?", "00"}).empty());
  CHECK(steps_of({"011", "001", "100"}).empty());
  CHECK(steps_of({}).empty());
}

}  // namespace
}  // namespace numemu::oracle::recording

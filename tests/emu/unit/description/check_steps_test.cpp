// Refusals that concern steps: roundings, order, alignment and its widths, chains, trees, tables.
#include "emu/unit/description/check.hpp"
#include "emu/unit/reference/dot.hpp"
#include "tests/emu/unit/description/refusals.hpp"

namespace check_steps_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Point = Scaling::Point;

TEST_CASE("description: roundings", "[fast]") {
  refuses(CoreKind::chain,
          "accumulator.rounding: expected random bits and a variant with stochastic rounding only",
          [](auto& u) { u.accumulator.rounding.random_bits = 3; });
  refuses(CoreKind::chain, "accumulator.rounding: expected 1 to 32",
          [](auto& u) { u.accumulator.rounding = random_bits(0); });
  refuses(CoreKind::exact, "accumulator.rounding: expected core chain with stochastic rounding",
          [](auto& u) { u.accumulator.rounding = random_bits(8); });
  accepts(CoreKind::chain, [](auto& u) { u.accumulator.rounding = random_bits(32); });
  refuses(CoreKind::chain, "accumulator.rounding: expected at most 9 random bits with float64",
          [](auto& u) {
            u.c = u.d = u.accumulator.format = format("float64");
            u.nan_code = format("float64")->nan_code();
            u.accumulator.rounding = random_bits(10);
          });
  refuses(CoreKind::chain,
          "accumulator.integer_overflow: expected saturate_once or saturate_each with stochastic "
          "rounding",
          [](auto& u) {
            u.c = u.d = u.accumulator.format = nullptr;
            u.nan_code = 0;
            u.accumulator.rounding = random_bits(8);
          });
  refuses(CoreKind::chain,
          "chain.chains: expected 1 with stochastic rounding: the additions of chains draw no "
          "random number",
          [](auto& u) {
            u.accumulator.rounding = random_bits(8);
            u.c_entry = CEntry::after_rounding;
            u.chain.chains = 2;
          });
  refuses(CoreKind::chain,
          "k: expected 0 with stochastic rounding and chain.chunk: chunks draw by their index",
          [](auto& u) {
            u.accumulator.rounding = random_bits(8);
            u.k = 16;
            u.chain.chunk = 8;
          });
  refuses(CoreKind::chain, "c_rounding: expected a rounding without random bits", [](auto& u) {
    u.c_entry = CEntry::after_rounding;
    u.c_rounding = random_bits(8);
  });
  refuses(CoreKind::chain, "input.rounding: expected a rounding without random bits", [](auto& u) {
    u.input = {format("bfloat16"), random_bits(8)};
  });
  refuses(
      CoreKind::chain,
      "c_rounding: expected together with c_entry after_rounding and a floating accumulator.format",
      [](auto& u) { u.c_rounding = mode(RoundingMode::rtz); });
  refuses(CoreKind::chain, "input.rounding: expected together with input.format",
          [](auto& u) { u.input.rounding = mode(RoundingMode::rtz); });
}

TEST_CASE("description: order and C", "[fast]") {
  refuses(CoreKind::fused, "order: expected a k that is a multiple of 4 with pairs_mod4",
          [](auto& u) {
            u.k = 6;
            u.group = 3;
            u.order = StepOrder::pairs_mod4;
          });
  refuses(CoreKind::chain, "order: expected a k that is a multiple of 2 with odd_first",
          [](auto& u) { u.order = StepOrder::odd_first; });
  refuses(CoreKind::fused, "order: expected ascending where one step takes the whole instruction",
          [](auto& u) {
            u.group = 0;
            u.order = StepOrder::odd_first;
          });
  accepts(CoreKind::fused, [](auto& u) { u.order = StepOrder::pairs_mod4; });
  for (const CoreKind core :
       {CoreKind::chain, CoreKind::tree, CoreKind::exact, CoreKind::integer}) {
    refuses(core, "c_entry: expected core fused with after_alignment",
            [](auto& u) { u.c_entry = CEntry::after_alignment; });
  }
  for (const CoreKind core : {CoreKind::tree, CoreKind::exact, CoreKind::xnor}) {
    refuses(core, "c_entry: expected core fused or chain with after_rounding",
            [](auto& u) { u.c_entry = CEntry::after_rounding; });
  }
}

TEST_CASE("description: alignment", "[fast]") {
  refuses(CoreKind::fused, "alignment.rounding: expected rtz, rne, rodd or rdn",
          [](auto& u) { u.alignment.rounding = RoundingMode::rup; });
  refuses(CoreKind::fused, "alignment.zero_exponent: expected -65536 to 65536",
          [](auto& u) { u.alignment.zero_exponent = 70000; });
  refuses(CoreKind::fused, "alignment.floor: expected -65536 to 65536",
          [](auto& u) { u.alignment.floor = -70000; });
  refuses(CoreKind::fused, "alignment.parts: expected together with c_entry after_alignment",
          [](auto& u) { u.alignment.parts = 2; });
  refuses(CoreKind::fused, "alignment.parts: expected 1 to 2", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.alignment.parts = 3;
  });
  refuses(CoreKind::fused, "alignment.parts: expected an even group with 2 parts", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.k = u.group = 9;
    u.alignment.parts = 2;
  });
  refuses(CoreKind::fused, "second.fraction_bits: expected together with c_entry after_alignment",
          [](auto& u) { u.second.fraction_bits = 30; });
  refuses(CoreKind::fused, "second.c_dropped: expected together with c_entry after_alignment",
          [](auto& u) { u.second.c_dropped = 30; });
  refuses(CoreKind::fused, "second.c_fraction_bits: expected 0 to 63", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.second.c_fraction_bits = 64;
  });
  refuses(CoreKind::fused, "second.c_dropped: expected 0 to 65536", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.second.c_dropped = -1;
  });
}

TEST_CASE("description: the bits kept are those the reference can add", "[fast]") {
  // 16 products: 127 - 2 - 5; C after_alignment: 64 - 2 - 5; no step: up to 2^31 products.
  refuses(CoreKind::fused, "alignment.fraction_bits: expected 0 to 120",
          [](auto& u) { u.alignment.fraction_bits = 121; });
  accepts(CoreKind::fused, [](auto& u) { u.alignment.fraction_bits = 120; });
  refuses(CoreKind::fused, "alignment.fraction_bits: expected 0 to 57", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.alignment.fraction_bits = 58;
  });
  refuses(CoreKind::fused, "second.fraction_bits: expected 0 to 57", [](auto& u) {
    u.c_entry = CEntry::after_alignment;
    u.second.fraction_bits = 58;
  });
  refuses(CoreKind::fused, "alignment.fraction_bits: expected 0 to 93", [](auto& u) {
    u.k = u.group = 0;
    u.alignment.fraction_bits = 94;
  });
  // fp4: 16 products stay below 2^(4 + 3 + 3), their scales' significands below 2^2; 4 groups.
  const Change groups = [](UnitDescription& u) {
    u.a = u.b = format("float4_e2m1fn");
    u.k = u.group = 64;
    u.scaling = {.point = Point::groups, .format = format("float8_e4m3fn"), .block = 16};
  };
  accepts(CoreKind::fused, groups);
  refuses(CoreKind::fused, "alignment.fraction_bits: expected 0 to 112", [&](auto& u) {
    groups(u);
    u.alignment.fraction_bits = 113;
  });
}

TEST_CASE("description: at the largest fraction_bits a step is still exact", "[fast]") {
  // With all bits kept the fused step is the exact sum.
  constexpr int kProducts = 16;
  UnitDescription fused = sample(CoreKind::fused), exact = sample(CoreKind::exact);
  fused.k = fused.group = kProducts;
  fused.alignment.fraction_bits = most_fraction_bits(fused);
  check_description(fused);
  exact.a = exact.b = fused.a;
  exact.k = kProducts;
  const Gather gather = Gather::matrix(1, kProducts);
  Dice dice(1);
  for (int round = 0; round < 500; ++round) {
    std::uint8_t a[kProducts], b[kProducts];
    for (int k = 0; k < kProducts; ++k) {
      // The largest of one sign, so that the sum is as large as it can be; then anything.
      a[k] = round == 0 ? 0x7e : static_cast<std::uint8_t>(dice.below(0x7f));
      b[k] = round == 0 ? 0x7e : static_cast<std::uint8_t>(dice.below(2) * 0x80 + dice.below(0x7f));
    }
    const float c = round == 0 ? 200000.0f : static_cast<float>(dice.below(1000)) * 0x1p-12f;
    Gemm gemm;
    gemm.m = gemm.n = 1;
    gemm.k = kProducts;
    gemm.a = {fused.a, a, &gather};
    gemm.b = {fused.b, b, &gather};
    gemm.c = &c;
    CHECK(ReferenceDot(fused, gemm).code(0, 0) == ReferenceDot(exact, gemm).code(0, 0));
  }
}

TEST_CASE("description: chains", "[fast]") {
  const Change two = [](UnitDescription& u) {
    u.c_entry = CEntry::after_rounding;
    u.chain.chains = 2;
  };
  accepts(CoreKind::chain, two);
  refuses(CoreKind::chain, "chain.chains: expected 1 to 64", [](auto& u) { u.chain.chains = 0; });
  refuses(CoreKind::chain, "chain.chains: expected a divisor of k, 9", [&](auto& u) {
    two(u);
    u.k = 9;
  });
  refuses(CoreKind::chain,
          "c_entry: expected after_rounding with several chains, which start from +0",
          [](auto& u) { u.chain.chains = 2; });
  refuses(CoreKind::chain, "chain.chunk: expected 0 to 1048576",
          [](auto& u) { u.chain.chunk = -1; });
  refuses(CoreKind::chain, "chain.chunk: expected together with chain.chains 1", [&](auto& u) {
    two(u);
    u.chain.chunk = 8;
  });
  refuses(CoreKind::chain, "chain.chunk: expected a divisor of k, 12", [](auto& u) {
    u.k = 12;
    u.chain.chunk = 8;
  });
  refuses(CoreKind::chain,
          "c_entry: expected in_alignment with chain.chunk: the sums of chunks are chained from C",
          [](auto& u) {
            u.c_entry = CEntry::after_rounding;
            u.chain.chunk = 8;
          });
  refuses(CoreKind::chain, "chain.kahan: expected together with chain.fused true", [](auto& u) {
    u.chain.kahan = true;
    u.chain.fused = false;
  });
  refuses(CoreKind::tree, "chain.kahan: expected together with core chain",
          [](auto& u) { u.chain.kahan = true; });
}

TEST_CASE("description: trees and tables", "[fast]") {
  refuses(CoreKind::tree, "tree.leaf: expected 1 to 1048576", [](auto& u) { u.tree.leaf = 0; });
  refuses(CoreKind::tree, "tree.leaf: expected a divisor of the step, 8",
          [](auto& u) { u.tree.leaf = 3; });
  refuses(CoreKind::tree, "tree.round_products: expected together with tree.leaf 1",
          [](auto& u) { u.tree = {.leaf = 2, .round_products = false}; });
  refuses(CoreKind::tree, "tree.plus_zero_products: expected together with tree.leaf 1",
          [](auto& u) {
            u.tree.leaf = 2;
            u.tree.plus_zero_products = true;
          });
  refuses(CoreKind::integer, "products: expected together with core table",
          [](auto& u) { u.products = std::make_shared<const std::vector<std::int32_t>>(4); });
  refuses(CoreKind::table, "products: expected a table of products with core table",
          [](auto& u) { u.products = nullptr; });
  refuses(CoreKind::table, "products: expected 2^2 x 2^3 entries, one for each pair of codes",
          [](auto& u) { u.products = std::make_shared<const std::vector<std::int32_t>>(31); });
  refuses(CoreKind::table, "b: expected codes of at most 20 bits together with core table",
          [](auto& u) { u.a = u.b = format("float16"); });
}

}  // namespace check_steps_test

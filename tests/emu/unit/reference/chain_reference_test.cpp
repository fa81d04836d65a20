// Chains by hand: order, fused or not, several chains, chunks, Kahan, random words, NaN, flushes.
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace chain_reference_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

UnitDescription half_chain() { return unit_of(CoreKind::chain, "float16"); }

/// The word of P = 16 pieces a block, as docs/random.md says.
std::uint32_t word8(std::uint64_t seed, std::uint32_t tensor, std::uint32_t element,
                    std::uint32_t k) {
  const PhiloxBlock block = philox(seed, {element / 16, k, tensor, 3});
  return block[element % 16 / 4] >> (element % 4 * 8) & 0xff;
}

/// bfloat16 operands into float32, x86 NaN.
DotCase x86(std::vector<std::uint64_t> a, std::vector<std::uint64_t> b, std::uint64_t c) {
  UnitDescription u = unit_of(CoreKind::chain, "float32");
  u.a = u.b = &find_format("bfloat16");
  u.nan = NanRule::x86;
  u.nan_code = 0xffc00000;
  return {u, std::move(a), std::move(b), c};
}

}  // namespace

TEST_CASE("chain reference: k ascending from C, each sum rounded", "[fast]") {
  const UnitDescription u = half_chain();  // spacing 2 from 2048 on
  CHECK(products_of(u, {2048, 1, 1}).number() == 2048);
  CHECK(products_of(u, {1, 1, 2048}).number() == 2050);
  CHECK(products_of(u, {1, 1}, 2048).number() == 2048);
  UnitDescription later = u;
  later.c_entry = CEntry::after_rounding;
  CHECK(products_of(later, {1, 1}, 2048).number() == 2050);
  later.c_rounding.mode = RoundingMode::rtz;
  CHECK(products_of(later, {1, 2}, 2048).number() == 2050);
}

TEST_CASE("chain reference: fused, or products rounded first", "[fast]") {
  UnitDescription u = half_chain();
  DotCase dot{u, codes_of(*u.a, {1 + 0x1p-10}), codes_of(*u.a, {1 + 0x1p-10})};
  dot.c = code_of_number(*u.a, -(1 + 0x1p-9));
  CHECK(dot.number() == 0x1p-20);
  dot.unit.chain.fused = false;
  CHECK(dot.number() == 0);
}

TEST_CASE("chain reference: odd k before even", "[fast]") {
  UnitDescription u = half_chain();
  u.k = 2;
  CHECK(products_of(u, {2048, 1}, 1).number() == 2048);
  u.order = StepOrder::odd_first;
  CHECK(products_of(u, {2048, 1}, 1).number() == 2050);
}

TEST_CASE("chain reference: chains over k mod n are added pairwise, C last", "[fast]") {
  UnitDescription u = half_chain();
  u.k = 4;
  u.c_entry = CEntry::after_rounding;
  CHECK(products_of(u, {2048, 1, 1, 1}, 1).number() == 2048);
  u.chain.chains = 2;  // (2048 + 1) + (1 + 1) = 2050, and 1: a tie to 2052
  CHECK(products_of(u, {2048, 1, 1, 1}, 1).number() == 2052);
  u.chain.chains = 4;  // (2048 + 1) + (1 + 1)
  CHECK(products_of(u, {2048, 1, 1, 1}).number() == 2050);
  CHECK(products_of(u, {2048, 1, 1, 1, 1, 1, 1, 1}).number() == 2054);  // 2050 + 4
  // Three chains of an instruction of three: (c0 + c1) + c2.
  u.k = u.chain.chains = 3;
  CHECK(products_of(u, {1, 1, 2048}).number() == 2050);
  CHECK(products_of(u, {2048, 1, 1}).number() == 2048);
  CHECK(products_of(u, {-0.0, -0.0, -0.0}, -0.0).code() == 0);  // chains start from +0
}

TEST_CASE("chain reference: chunks from +0, their sums chained from C", "[fast]") {
  UnitDescription u = half_chain();
  CHECK(products_of(u, {2048, 1, 1, 1}).number() == 2048);
  u.chain.chunk = 2;
  CHECK(products_of(u, {2048, 1, 1, 1}).number() == 2050);
  CHECK(products_of(u, {1, 1, 1}, 2048).number() == 2052);  // + 2, then + 1: a tie to even
  u.chain.chunk = 3;
  CHECK(products_of(u, {1, 1, 2}, 2048).number() == 2052);  // + 4, not + 1 + 1 + 2
}

TEST_CASE("chain reference: Kahan keeps what a chain loses", "[fast]") {
  UnitDescription u = half_chain();
  const std::vector<double> products = {2048, 1, 1, 1, 1};
  CHECK(products_of(u, products).code() == 0x6800);
  u.chain.kahan = true;
  CHECK(products_of(u, products).code() == 0x6802);  // 2052, the exact sum
  CHECK(products_of(u, {1, 1, 1, 1}, 2048).code() == 0x6802);
  // Prefixes: 2048; e = -1: 2050; e = 0: 2051 is a tie to 2052, e = 1; then 1 - 1.
  CHECK(products_of(u, {2048, 1}).number() == 2048);
  CHECK(products_of(u, {2048, 1, 1}).number() == 2050);
  CHECK(products_of(u, {2048, 1, 1, 1}).number() == 2052);
  // The correction belongs to one instruction.
  u.k = 2;
  CHECK(products_of(u, {2048, 1, 1, 0}).number() == 2048);
}

TEST_CASE("chain reference: stochastic registers draw k of the element", "[fast]") {
  UnitDescription u = half_chain();
  u.accumulator.rounding = parse_rounding("sr(8)");
  std::vector<double> products;
  for (int k = 0; k < 40; ++k) products.push_back(1 + 0x1p-10 * (k * 37 % 64));
  DotCase dot = products_of(u, products, 0.3);
  dot.seed = 0x9876543210;
  dot.tensor = 77;
  for (const std::uint32_t element : {0u, 3u, 15u, 16u, 37u}) {
    std::uint64_t sum = *dot.c;
    for (std::uint32_t k = 0; k < products.size(); ++k) {
      // Both terms are multiples of 2^-13 below 2^7: their sum is a double.
      const double exact = to_double(decode(*u.a, sum)) + to_double(decode(*u.a, dot.a[k]));
      sum = encode(*u.a, value_of(exact), u.accumulator.rounding, Overflow::ieee,
                   word8(dot.seed, dot.tensor, element, k))
                .code;
    }
    INFO(element);
    CHECK(dot.code(nullptr, element) == sum);
  }
}

TEST_CASE("chain reference: sums of stochastic chunks draw K and their index", "[fast]") {
  UnitDescription u = half_chain();
  u.accumulator.rounding = parse_rounding("sr(8)");
  u.chain.chunk = 1;
  // A chunk of one product is exact; what rounds is the sum of chunks.
  DotCase dot = products_of(u, {0.7, 0.7, 0.7}, 2000);
  dot.seed = 5;
  bool differ = false;
  for (std::uint32_t element = 0; element < 64; ++element) {
    std::uint64_t sum = *dot.c;
    for (std::uint32_t chunk = 0; chunk < 3; ++chunk) {
      const double exact = to_double(decode(*u.a, sum)) + to_double(decode(*u.a, dot.a[chunk]));
      sum = encode(*u.a, value_of(exact), u.accumulator.rounding, Overflow::ieee,
                   word8(5, 0, element, 3 + chunk))
                .code;
    }
    CHECK(dot.code(nullptr, element) == sum);
    differ |= sum != dot.code(nullptr, 0);
  }
  CHECK(differ);
}

TEST_CASE("chain reference: x86 takes the first NaN of a, b and the accumulator", "[fast]") {
  const std::uint64_t one = 0x3f80, infinity = 0x7f80, c_one = 0x3f800000, c_nan = 0xff800005;
  CHECK(x86({0x7f81}, {0xffc2}, c_nan).code() == 0x7fc10000);
  CHECK(x86({one}, {0xff82}, c_nan).code() == 0xffc20000);
  CHECK(x86({one}, {one}, c_nan).code() == 0xffc00005);
  CHECK(x86({infinity}, {0}, c_one).code() == 0xffc00000);
  CHECK(x86({infinity}, {0}, c_nan).code() == 0xffc00005);
  CHECK(x86({infinity}, {one}, 0xff800000).code() == 0xffc00000);
  CHECK(x86({0x7f81, 0x7fc3}, {one, one}, c_one).code() == 0x7fc30000);  // b, a before the sum
  CHECK(x86({infinity, one}, {0, one}, c_one).code() == 0xffc00000);
  // C last: it comes before the sum.
  DotCase later = x86({0x7f81}, {one}, c_nan);
  later.unit.c_entry = CEntry::after_rounding;
  CHECK(later.code() == 0xffc00005);
  later.c = c_one;
  CHECK(later.code() == 0x7fc10000);
}

TEST_CASE("chain reference: a canonical NaN whatever came in", "[fast]") {
  DotCase dot = x86({0xff81}, {0x3f80}, 0x3f800000);
  dot.unit.nan = NanRule::canonical;
  dot.unit.nan_code = 0x7fffffff;
  CHECK(dot.code() == 0x7fffffff);
}

TEST_CASE("chain reference: tiny results of every multiply-add are flushed", "[fast]") {
  UnitDescription u = unit_of(CoreKind::chain, "float32");
  u.subnormals.flush_results = true;
  const auto below = [&](double factor, double c) {
    DotCase dot{u, codes_of(*u.a, {-0x1p-75}), codes_of(*u.a, {factor})};
    dot.c = code_of_number(*u.a, c);
    return dot.code();
  };
  CHECK(below(0x1p-76, 0x1p-126) == 0x00800000);
  CHECK(below(0x1p-75, 0x1p-126) == 0);
  CHECK(below(-0x1p-75, -0x1p-126) == 0x80000000);
  u.subnormals.tiny_before_rounding = true;
  CHECK(below(0x1p-76, 0x1p-126) == 0);
  // A flushed partial sum is lost: 2^-127 + 2^-127 in two steps.
  CHECK(products_of(u, {0x1p-127, 0x1p-127}).code() == 0);
  u.subnormals = {};
  CHECK(products_of(u, {0x1p-127, 0x1p-127}).number() == 0x1p-126);
}

TEST_CASE("chain reference: two's complement registers saturate at every addition", "[fast]") {
  UnitDescription u;
  u.core = CoreKind::chain;
  u.a = u.b = &find_format("int8");
  u.accumulator.bits = 8;
  u.accumulator.integer = IntegerOverflow::saturate_each;
  u.nan_code = 0;
  DotCase dot{u, codes_of(*u.a, {100, 100, -100}), codes_of(*u.a, {1, 1, 1})};
  CHECK(dot.whole() == 27);
  dot.unit.accumulator.integer = IntegerOverflow::wrap;
  CHECK(dot.whole() == 100);
  // 4 bits right of the point: 0.53125 is 8.5 sixteenths.
  dot.unit.a = dot.unit.b = &find_format("float32");
  dot.unit.accumulator.fraction = 4;
  dot.unit.accumulator.integer = IntegerOverflow::saturate_each;
  dot.a = codes_of(*dot.unit.a, {0.53125, 1});
  dot.b = codes_of(*dot.unit.a, {1, 1});
  CHECK(dot.whole() == 24);
  dot.unit.accumulator.rounding.mode = RoundingMode::rup;
  CHECK(dot.whole() == 25);
}

}  // namespace chain_reference_test

// Shared by the cores of the reference: random words, the order of steps, products, C added last.
#include "emu/unit/reference/step.hpp"

#include <cmath>

#include "emu/unit/description/words.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace step_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

std::vector<Factors> numbered(int count) {
  std::vector<Factors> products(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) products[static_cast<std::size_t>(i)].k = 100 + i;
  return products;
}

std::vector<std::int64_t> order_of(StepOrder order, int count) {
  UnitDescription u;
  u.order = order;
  std::vector<Factors> products = numbered(count);
  put_in_step_order(u, products);
  std::vector<std::int64_t> ks;
  for (const Factors& f : products) ks.push_back(f.k - 100);
  return ks;
}

/// A machine with a float32 register and its accumulator.
struct Bench {
  UnitDescription unit;
  const Format& format = find_format("float32");
  Kulisch sum{Exponents{-400, 400}, 1000};
  std::uint8_t flags = 0;
  Trace trace;
  Bench() {
    unit.core = CoreKind::fused;
    unit.a = unit.b = unit.accumulator.format = &format;
  }
  Machine machine(bool traced = false) {
    return {unit, &format, &format, &format, 0, {}, sum, flags, traced ? &trace : nullptr};
  }
  double added(double c, double s) { return to_double(add_c(machine(), value_of(c), value_of(s))); }
};

Value nan_with(std::uint64_t payload) { return {.kind = Class::nan, .significand = payload}; }

}  // namespace

TEST_CASE("reference step: random words are docs/random.md's of philox itself", "[fast]") {
  const std::uint64_t seed = 0x0123456789abcdef;
  const std::uint32_t tensor = 0xcafe;
  for (const int bits : {1, 5, 8, 9, 13, 16, 17, 24, 32}) {
    const int piece_bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : 4, pieces = 16 / piece_bytes;
    for (const std::int64_t element : {0, 1, 3, 4, 7, 8, 15, 16, 17, 1000003}) {
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{65536 + 5}}) {
        const PhiloxBlock block = philox(seed, {static_cast<std::uint32_t>(element / pieces),
                                                static_cast<std::uint32_t>(k), tensor, 3});
        std::uint32_t piece = 0;  // bytes of the block, lowest first
        for (int i = piece_bytes - 1; i >= 0; --i) {
          const auto at = static_cast<std::size_t>(element % pieces * piece_bytes + i);
          piece = piece << 8 | (block[at / 4] >> (8 * (at % 4)) & 0xff);
        }
        const Draw draw{seed, tensor, element};
        INFO(bits << " " << element << " " << k);
        CHECK(draw.at(k, bits) == piece >> (8 * piece_bytes - bits));
      }
    }
  }
}

TEST_CASE("reference step: the orders of products", "[fast]") {
  using List = std::vector<std::int64_t>;
  CHECK(order_of(StepOrder::ascending, 4) == List{0, 1, 2, 3});
  CHECK(order_of(StepOrder::pairs_mod4, 8) == List{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(order_of(StepOrder::odd_first, 6) == List{1, 0, 3, 2, 5, 4});
}

TEST_CASE("reference step: a step is the group, the whole instruction, never nothing", "[fast]") {
  UnitDescription u;
  CHECK(step_size(u, 12) == 12);
  CHECK(step_size(u, 0) == 1);
  u.group = 4;
  CHECK(step_size(u, 12) == 4);
}

TEST_CASE("reference step: names of steps say which k they take", "[fast]") {
  Trace trace;
  auto products = numbered(4);
  CHECK(step_name(trace, products) == "step 0, k 100..103");
  trace.steps.resize(3);  // steps without a number leave none out
  CHECK(step_name(trace, std::span(products).first(1)) == "step 1, k 100");
  const std::vector<Factors> apart = {products[3], products[0]};
  CHECK(step_name(trace, apart) == "step 2, 2 of k 100..103");
  products[2].padding = products[3].padding = true;
  CHECK(products_name(products) == "k 100..101 and 2 of padding");
  CHECK(products_name(std::span(products).last(2)) == "padding");
}

TEST_CASE("reference step: exact products of specials and numbers", "[fast]") {
  const Value zero, minus_zero{.negative = true};
  const Value infinity{.kind = Class::infinite}, two = value_of(2.0), minus_three = value_of(-3.0);
  CHECK(exact_product(zero, infinity).kind == Class::nan);
  CHECK(exact_product(nan_with(1), zero).kind == Class::nan);
  CHECK(exact_product(infinity, minus_three).kind == Class::infinite);
  CHECK(exact_product(infinity, minus_three).negative);
  CHECK(exact_product(minus_zero, minus_three).kind == Class::zero);
  CHECK_FALSE(exact_product(minus_zero, minus_three).negative);
  CHECK(to_double(exact_product(two, minus_three)) == -6);
}

TEST_CASE("reference step: exact products of float64 do not lose their leading bits", "[fast]") {
  const Value x = value_of(1 + 0x1p-52);  // squared: 105 bits
  Value square = exact_product(x, x);
  square.sticky = false;
  CHECK(std::fabs(to_double(square) - 1) < 1e-9);
}

TEST_CASE("reference step: the first NaN in the order given wins", "[fast]") {
  Bench bench;
  const Machine m = bench.machine();
  const Value one = value_of(1.0), first = nan_with(5), second = nan_with(9);
  bench.sum.clear();
  CHECK(round_sum(m, {&one, &first, &second}).significand == 5);
  CHECK(round_sum(m, {&second, &first}).significand == 9);
  CHECK(add_rounded(m, first, second).significand == 5);
  CHECK(add_c(m, second, first).significand == 9);
  CHECK(add_c(m, one, first).significand == 5);
  const Value up{.kind = Class::infinite}, down{.kind = Class::infinite, .negative = true};
  CHECK(add_rounded(m, up, down).kind == Class::nan);
  CHECK(add_rounded(m, up, down).significand == 0);  // an invalid operation, no payload
}

TEST_CASE("reference step: C is added with its own rounding", "[fast]") {
  Bench bench;
  bench.unit.accumulator.rounding.mode = RoundingMode::rtz;
  bench.unit.accumulator.overflow_to_infinity = true;
  CHECK(bench.added(0x1p24, 3) == 0x1p24 + 4);
  CHECK(to_double(add_rounded(bench.machine(), value_of(0x1p24), value_of(3.0))) == 0x1p24 + 2);
  // To nearest the largest number is reached from below the midpoint, not from 2^128 on only.
  CHECK(bench.added(0x1.fffffep127, 0x1p102) == 0x1.fffffep127);
  CHECK(add_c(bench.machine(), value_of(0x1.fffffep127), value_of(0x1p103)).kind ==
        Class::infinite);
  bench.unit.c_rounding.mode = RoundingMode::rtz;
  CHECK(bench.added(0x1.fffffep127, 0x1.8p103) == 0x1.fffffep127);
  CHECK(add_c(bench.machine(), value_of(0x1.fffffep127), value_of(0x1p104)).kind ==
        Class::infinite);

  (void)add_c(bench.machine(true), value_of(1.0), value_of(2.0));
  REQUIRE(bench.trace.steps.size() == 1);
  CHECK(bench.trace.steps[0].what == "addition of C");
  CHECK(bench.trace.steps[0].terms.size() == 2);
  CHECK(bench.trace.steps[0].result.value() == 0x40400000);
}

namespace {

constexpr std::uint64_t kMinusZero = 0x8000;  // of float16

/// D of 1 - 1 where the unit rounds down, and of zeros of both signs.
void check_cancellation(const UnitDescription& u, std::uint64_t zero) {
  // Other sums start from +0, so that a product of -0 alone is +0.
  const bool from_c = u.c_entry == CEntry::in_alignment && u.outer.every == 0;
  INFO(description_code(u));
  CHECK(test::products_of(u, {-1}, 1.0).code() == zero);
  CHECK(test::products_of(u, {1}, -1.0).code() == zero);
  CHECK(test::products_of(u, {0.0}, -0.0).code() == zero);
  CHECK(test::products_of(u, {-0.0}, 0.0).code() == (from_c ? zero : 0));
  CHECK(test::products_of(u, {0.0}, 0.0).code() == 0);
  CHECK(test::products_of(u, {2}, -1.0).number() == 1);
}

}  // namespace

TEST_CASE("a sum that cancels is -0 where it is rounded down, else +0", "[fast]") {
  const Rounding down{.mode = RoundingMode::rdn};
  for (const CoreKind core : {CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    UnitDescription u = test::unit_of(core, "float16");
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                    RoundingMode::rup, RoundingMode::rodd}) {
      u.accumulator.rounding.mode = mode;
      check_cancellation(u, 0);
      CHECK(test::products_of(u, {-0.0}, -0.0).code() == kMinusZero);
    }
    u.accumulator.rounding = down;
    check_cancellation(u, kMinusZero);
    CHECK(test::products_of(u, {-0.0}, -0.0).code() == kMinusZero);
    u.plus_zero_sums = true;
    check_cancellation(u, 0);
    CHECK(test::products_of(u, {-0.0}, -0.0).code() == kMinusZero);
  }
  UnitDescription chunks = test::unit_of(CoreKind::chain, "float16");
  chunks.accumulator.rounding = down;
  chunks.chain.chunk = 1;
  check_cancellation(chunks, kMinusZero);
  UnitDescription leaves = test::unit_of(CoreKind::tree, "float16");
  leaves.accumulator.rounding = down;
  leaves.tree.leaf = 2;
  CHECK(test::products_of(leaves, {1, -1}, 0.0).code() == kMinusZero);
  UnitDescription twice = leaves;
  twice.tree.leaf = 1;
  twice.tree.plus_zero_products = true;
  twice.group = 1;
  // The product -0 is +0; so the sum is one of two positive zeros.
  CHECK(test::products_of(twice, {-0.0}, 0.0).code() == 0);

  UnitDescription late = test::unit_of(CoreKind::chain, "float16");
  late.c_entry = CEntry::after_rounding;
  check_cancellation(late, 0);
  late.c_rounding = down;
  check_cancellation(late, kMinusZero);
  late.core = CoreKind::fused;
  late.k = late.group = 1;
  late.alignment.fraction_bits = 20;
  CHECK(test::products_of(late, {-1}, 1.0).code() == kMinusZero);
  CHECK(test::products_of(late, {-0.0}, 0.0).code() == 0);  // the step's own zero is +0

  UnitDescription outer = test::unit_of(CoreKind::exact, "float16");
  outer.outer = {1, {.format = outer.a, .rounding = down}};
  check_cancellation(outer, kMinusZero);
  outer.plus_zero_sums = true;
  check_cancellation(outer, 0);

  UnitDescription fused = test::unit_of(CoreKind::fused, "float16");
  fused.k = fused.group = 1;
  fused.alignment.fraction_bits = 20;
  fused.accumulator.rounding = down;
  CHECK(test::products_of(fused, {-1}, 1.0).code() == 0);
}

TEST_CASE("overflow_to_infinity holds where C is added with another rounding", "[fast]") {
  UnitDescription u = test::unit_of(CoreKind::chain, "float16");
  u.c_entry = CEntry::after_rounding;
  u.accumulator.overflow_to_infinity = true;
  for (const RoundingMode of_register : {RoundingMode::rne, RoundingMode::rtz}) {
    for (const RoundingMode of_c :
         {RoundingMode::rtz, RoundingMode::rdn, RoundingMode::rup, RoundingMode::rodd}) {
      u.accumulator.rounding.mode = of_register;
      u.c_rounding.mode = of_c;
      CHECK(test::products_of(u, {65504}, 65504.0).code() == 0x7c00);
      CHECK(test::products_of(u, {-65504}, -65504.0).code() == 0xfc00);
    }
  }
  u.accumulator.overflow_to_infinity = false;
  u.c_rounding.mode = RoundingMode::rtz;
  CHECK(test::products_of(u, {65504}, 65504.0).code() == 0x7bff);
}

}  // namespace step_test

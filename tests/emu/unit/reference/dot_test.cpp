// One output of the reference: padding, C, operand rules, sparsity, results and the trace.
#include "emu/unit/reference/dot.hpp"

#include <limits>

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace dot_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

/// Terms of products in a step.
std::vector<TraceTerm> products_in(const TraceStep& step) {
  std::vector<TraceTerm> terms;
  for (const TraceTerm& t : step.terms) {
    if (t.k >= 0) terms.push_back(t);
  }
  return terms;
}

}  // namespace

TEST_CASE("reference dot: without products the result is C", "[fast]") {
  for (const CoreKind core : {CoreKind::fused, CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    const UnitDescription u = unit_of(core, "float16");
    INFO(static_cast<int>(core));
    CHECK(products_of(u, {}, -1.5).number() == -1.5);
    CHECK(products_of(u, {}).code() == 0);
  }
}

TEST_CASE("reference dot: padding is +0 products", "[fast]") {
  UnitDescription u = unit_of(CoreKind::chain, "float16");
  CHECK(products_of(u, {-0.0}, -0.0).code() == 0x8000);
  u.k = 4;
  CHECK(products_of(u, {-0.0}, -0.0).code() == 0);
  CHECK(products_of(u, {1, 2, 3, 4, 5}).number() == 15);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(products_of(u, {infinity}).code() == 0x7c00);  // padding meets no infinity
}

TEST_CASE("reference dot: operands are rounded on their way in, then flushed", "[fast]") {
  UnitDescription u = unit_of(CoreKind::exact, "float32");
  u.input.format = &find_format("tfloat32");
  u.input.rounding.mode = RoundingMode::rtz;
  CHECK(products_of(u, {1 + 0x1.8p-10}).number() == 1 + 0x1p-10);
  u.input.rounding.mode = RoundingMode::rne;
  CHECK(products_of(u, {1 + 0x1.8p-10}).number() == 1 + 0x1p-9);
  CHECK(products_of(u, {std::numeric_limits<double>::quiet_NaN()}).code() == 0x7fc00000);
  CHECK(products_of(u, {0x1p-130}).number() == 0x1p-130);
  u.subnormals.flush_inputs = true;
  CHECK(products_of(u, {0x1p-130}).code() == 0);
}

TEST_CASE("reference dot: flushed zeros keep their sign, or become +0", "[fast]") {
  UnitDescription u = unit_of(CoreKind::exact, "float16");
  CHECK(products_of(u, {0x1p-15}, 0x1p-15).number() == 0x1p-14);
  u.subnormals = {.flush_inputs = true, .flush_c = true};
  CHECK(products_of(u, {0x1p-15}, 0x1p-15).code() == 0);
  CHECK(products_of(u, {-0x1p-15}, -0x1p-15).code() == 0x8000);
  u.subnormals.flush_c = false;
  CHECK(products_of(u, {0x1p-15}, 0x1p-15).number() == 0x1p-15);
  u.subnormals.flush_c = u.subnormals.inputs_to_plus_zero = true;
  CHECK(products_of(u, {-0x1p-15}, -0x1p-15).code() == 0);
  CHECK(products_of(u, {-0.0}, -0.0).code() == 0);
}

TEST_CASE("reference dot: a sparse A meets the elements of B that its metadata names", "[fast]") {
  UnitDescription u = unit_of(CoreKind::chain, "float16");
  u.sparsity = {.kept = 2, .group = 4};
  DotCase dot{u, codes_of(*u.a, {1, 10, 100, 1000}), codes_of(*u.a, {1, 2, 3, 4, 5, 6, 7, 8})};
  dot.kept = {1, 3, 0, 2};
  CHECK(dot.number() == 2 + 40 + 500 + 7000 + 2);  // 7542 is a tie between 7540 and 7544
  dot.b[0] = 0x7e00;                               // NaN that nothing meets
  CHECK(dot.number() == 7544);
  Trace trace;
  (void)dot.code(&trace);
  const auto terms = products_in(trace.steps.at(0));
  REQUIRE(terms.size() == 4);
  CHECK(terms[1].k == 3);
  CHECK(terms[2].k == 4);
  CHECK(terms[3].b == code_of_number(*u.a, 7));
  // Steps count kept products.
  UnitDescription grouped = unit_of(CoreKind::exact, "float16");
  grouped.sparsity = u.sparsity;
  grouped.group = 2;
  dot = {grouped, codes_of(*u.a, {1, 1, 1, 1}), codes_of(*u.a, {2048, 1, 0, 0, 1, 1, 0, 0})};
  dot.kept = {0, 1, 0, 1};
  CHECK(dot.number() == 2050);  // 2049 -> 2048, then + 2
}

TEST_CASE("reference dot: D widens the register, C is what its format says", "[fast]") {
  UnitDescription u = unit_of(CoreKind::chain, "float16");
  u.c = u.d = &find_format("float32");
  u.nan_code = 0x7fffffff;
  const DotCase dot = products_of(u, {1}, 0x1p-20);
  CHECK(dot.code() == 0x3f800000);
  CHECK(products_of(u, {std::numeric_limits<double>::quiet_NaN()}).code() == 0x7fffffff);
}

TEST_CASE("reference dot: the trace shows what was cut and what was added", "[fast]") {
  UnitDescription u = unit_of(CoreKind::fused, "float32");
  u.alignment.fraction_bits = 4;
  u.group = 2;
  const DotCase dot = products_of(u, {1, 0x3p-5, 2, 0}, 0x1p-6);
  Trace trace;
  CHECK(dot.code(&trace) == dot.code());
  CHECK(trace.result == dot.code());
  REQUIRE(trace.steps.size() == 2);
  const TraceStep& step = trace.steps[0];
  CHECK(step.what == "step 0, k 0..1");
  CHECK(step.largest_exponent.value() == 0);
  REQUIRE(step.terms.size() == 3);
  CHECK(to_double(step.terms[1].product) == 0x3p-5);
  CHECK(step.terms[1].exponent.value() == -4);
  CHECK(to_double(step.terms[1].kept) == 0x1p-4);
  CHECK(step.terms[2].what == "C");
  CHECK(step.terms[2].kept.kind == Class::zero);
  CHECK(to_double(step.sum.value()) == 1 + 0x1p-4);
  CHECK(step.result.value() == code_of_number(*u.a, 1 + 0x1p-4));
  CHECK(trace.steps[1].largest_exponent.value() == 1);
  CHECK(trace.steps[1].terms.back().what == "register");
}

TEST_CASE("reference dot: the trace of two parts shows every product as it was added", "[fast]") {
  UnitDescription u = unit_of(CoreKind::fused, "float32");
  u.alignment.fraction_bits = 4;
  u.group = 4;
  u.c_entry = CEntry::after_alignment;
  u.alignment.parts = 2;
  Trace trace;
  (void)products_of(u, {1, 2, 4, 8}, 3).code(&trace);
  const auto terms = products_in(trace.steps.at(0));
  REQUIRE(terms.size() == 4);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    INFO(i);
    CHECK(to_double(terms[i].kept) == static_cast<double>(1 << i));
  }
  CHECK(trace.steps[0].terms.back().what == "C");
  CHECK(to_double(trace.steps[0].terms.back().kept) == 3);
}

TEST_CASE("reference dot: a trace never changes a result", "[fast]") {
  for (const CoreKind core : {CoreKind::fused, CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    UnitDescription u = unit_of(core, "float16");
    u.k = 4;
    if (core == CoreKind::fused) u.alignment.fraction_bits = 12;
    const DotCase dot = products_of(u, {1, 0.3, 77, -2048, 0.1, 3, -0.0, 5}, 0.7);
    Trace trace;
    INFO(static_cast<int>(core));
    CHECK(dot.code(&trace) == dot.code());
    CHECK(trace.result == dot.code());
    CHECK(trace.steps.size() == 2);
  }
}

TEST_CASE("reference dot: an operand whose gather has other sizes is refused", "[fast]") {
  const UnitDescription u = unit_of(CoreKind::exact, "float32");
  const Gather two = Gather::matrix(1, 2), one = Gather::matrix(1, 1);
  const float x[] = {1, 2};
  Gemm g;
  g.m = g.n = 1;
  g.k = 2;
  g.a = {u.a, x, &two};
  g.b = {u.b, x, &one};
  CHECK_THROWS_WITH(ReferenceDot(u, g), Contains("gathers 1 x 1"));
}

TEST_CASE("reference: two levels of accumulation, by hand", "[fast]") {
  // Chains of 4 in float16 (11 bits), added to float32.
  UnitDescription u = unit_of(CoreKind::chain, "float16");
  u.outer = {4, {.format = &find_format("float32")}};
  u.nan_code = 0x7fc00000;
  // 2048 + 1 is a tie in float16, which rounds to 2048; the second sum is 1 + 1 + 1 + 1.
  CHECK(products_of(u, {2048, 1, 0, 0, 1, 1, 1, 1}).number() == 2052);
  CHECK(products_of(u, {2048, 1, 1, 1, 1, 1, 1, 1}).number() == 2052);
  // C starts the outer register, so that nothing of it is rounded to float16.
  CHECK(products_of(u, {1}, 2049).number() == 2050);
  CHECK(products_of(u, {}, 2049).number() == 2049);
  // The last sum may be short: 5 products are a sum of 4 and one of 1.
  CHECK(products_of(u, {2048, 0, 0, 0, 1}).number() == 2049);
  CHECK(products_of(u, {2048, 0, 0, 1}).number() == 2048);
  // The inner register overflows, the outer one need not.
  CHECK(products_of(u, {40000, 0, 0, 0, 40000}).number() == 80000);
  CHECK(std::isinf(products_of(u, {40000, 40000}).number()));
  CHECK(products_of(u, {40000, 40000, 0, 0, -40000, -40000}).code() == 0x7fc00000);
  // The outer register rounds as it says.
  u.outer.accumulator.rounding = {.mode = RoundingMode::rup};
  CHECK(products_of(u, {0x1p-20, 0, 0, 0}, 1).number() == 1 + 0x1p-20);
  CHECK(products_of(u, {0x1p-24, 0, 0, 0}, 1).number() == 1 + 0x1p-23);
  // The sums of a product each are rounded to bfloat16 and added in float16.
  u = unit_of(CoreKind::exact, "float32");
  u.group = 2;
  u.accumulator.format = &find_format("bfloat16");
  u.outer = {2, {.format = &find_format("float16")}};
  u.nan_code = 0x7e00;
  CHECK(products_of(u, {256, 1, 1, 1}).number() == 258);   // 257 is a tie in bfloat16: 256
  CHECK(products_of(u, {258, 1, 1, 1}).number() == 262);   // 259: 260
  CHECK(products_of(u, {258, 1}, 0.125).number() == 260);  // float16 holds no 260.125
}

TEST_CASE("reference: two levels in two's complement", "[fast]") {
  // VPMADDUBSW and VPADDD: pairs saturated to 16 bits, added in 32.
  UnitDescription u;
  u.core = CoreKind::integer;
  u.a = &find_format("uint8");
  u.b = &find_format("int8");
  u.group = 2;
  u.nan_code = 0;
  u.accumulator = {.bits = 16, .integer = IntegerOverflow::saturate_once};
  u.outer = {2, {.bits = 32}};
  const DotCase dot{u, {255, 255, 255, 255, 1}, {127, 127, 127, 127, 1}, 5};
  CHECK(dot.whole() == 32767 + 32767 + 1 + 5);
  u.outer.accumulator = {.bits = 16, .integer = IntegerOverflow::saturate_once};
  CHECK(DotCase{u, dot.a, dot.b, 5}.whole() == 32767);
}

TEST_CASE("reference: the trace of two levels", "[fast]") {
  UnitDescription u = unit_of(CoreKind::fused, "float16");
  u.k = u.group = 2;
  u.alignment.fraction_bits = 20;
  u.outer = {4, {.format = &find_format("float32")}};
  u.nan_code = 0x7fc00000;
  Trace trace;
  (void)products_of(u, {1, 2, 3, 4, 5, 6}, 100).code(&trace);
  REQUIRE(trace.steps.size() == 5);
  CHECK(trace.instructions == 3);
  const auto names = [&](std::size_t i) {
    std::string text = trace.steps[i].what + ":";
    for (const TraceTerm& t : trace.steps[i].terms) text += " " + t.what;
    return text;
  };
  CHECK(names(0) == "step 0, k 0..1: product product start");
  CHECK(names(1) == "step 1, k 2..3: product product register");
  CHECK(names(2) == "addition to the outer register: C register");
  CHECK(names(3) == "step 2, k 4..5: product product start");
  CHECK(names(4) == "addition to the outer register: outer register register");
  CHECK(trace.steps[2].outer);
  CHECK(trace.steps[2].result == 0x42dc0000);  // 110
  CHECK(trace.result == 0x42f20000);           // 121
  CHECK(trace.steps[1].result == 0x4900);      // 10 in float16
}

}  // namespace dot_test

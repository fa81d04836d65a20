// Refusals that concern numbers: subnormals, NaN, scales, sparsity, the rounding of operands.
#include "tests/emu/unit/description/refusals.hpp"

namespace check_numbers_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Point = Scaling::Point;

TEST_CASE("description: subnormals", "[fast]") {
  CHECK_NOTHROW(check_description(sample(CoreKind::exact)));
  refuses(CoreKind::exact,
          "subnormals.inputs_to_plus_zero: expected together with subnormals.flush_inputs true",
          [](auto& u) { u.subnormals.inputs_to_plus_zero = true; });
  refuses(CoreKind::exact,
          "subnormals.tiny_before_rounding: expected together with subnormals.flush_results true",
          [](auto& u) { u.subnormals.tiny_before_rounding = true; });
  refuses(CoreKind::exact, "subnormals.flush_inputs: expected together with a floating operand",
          [](auto& u) {
            u.a = u.b = format("int8");
            u.subnormals.flush_inputs = true;
          });
  refuses(CoreKind::integer,
          "subnormals.flush_c: expected together with core fused, chain, tree or exact",
          [](auto& u) { u.subnormals.flush_c = true; });
  const std::string tiny =
      "expected rne with subnormals.flush_results (or tiny_before_rounding true): tiny is judged "
      "as if rounded to nearest even";
  const Change toward_zero = [](UnitDescription& u) {
    u.accumulator.rounding = mode(RoundingMode::rtz);
    u.subnormals.flush_results = true;
  };
  refuses(CoreKind::exact, "accumulator.rounding: " + tiny, toward_zero);
  accepts(CoreKind::exact, [&](auto& u) {
    toward_zero(u);
    u.subnormals.tiny_before_rounding = true;
  });
  refuses(CoreKind::chain, "c_rounding: " + tiny, [](auto& u) {
    u.c_entry = CEntry::after_rounding;
    u.c_rounding = mode(RoundingMode::rtz);
    u.subnormals.flush_results = true;
  });
  for (const bool results : {false, true}) {
    refuses(CoreKind::chain,
            std::string("subnormals.flush_") + (results ? "results" : "c") +
                ": expected together with a floating accumulator.format",
            [&](auto& u) {
              u.c = u.d = u.accumulator.format = nullptr;
              u.nan_code = 0;
              (results ? u.subnormals.flush_results : u.subnormals.flush_c) = true;
            });
  }
}

TEST_CASE("description: NaN", "[fast]") {
  const std::string expected = "nan_code: expected a NaN of float32, such as 0x7fc00000";
  for (const std::uint64_t code : {0x7f800000ull, 0x0ull, 0x17fc00000ull, 0x7fc0ull})
    refuses(CoreKind::exact, expected, [&](auto& u) { u.nan_code = code; });
  refuses(CoreKind::integer, "nan_code: expected 0x0 with a two's complement register",
          [](auto& u) { u.nan_code = 1; });
  accepts(CoreKind::integer, [](auto& u) { u.nan_code = UnitDescription{}.nan_code; });
  refuses(CoreKind::exact, "nan_code: expected a code of float6_e2m3fn, which has no NaN",
          [](auto& u) { u.c = u.d = u.accumulator.format = format("float6_e2m3fn"); });
  const Change x86 = [](UnitDescription& u) { u.nan = NanRule::x86; };
  accepts(CoreKind::chain, x86);
  refuses(CoreKind::fused,
          "nan: expected together with core chain and a floating accumulator.format", x86);
  refuses(CoreKind::chain, "a: expected a format whose NaN has a payload with nan x86",
          [&](auto& u) {
            x86(u);
            u.a = format("float8_e4m3fn");
          });
  refuses(CoreKind::chain, "c: expected a format whose NaN has a payload with nan x86",
          [&](auto& u) {
            x86(u);
            u.c = u.accumulator.format = format("dlfloat16");
          });
  accepts(CoreKind::chain, [&](auto& u) {
    x86(u);
    u.a = format("int8");  // never NaN
  });
}

TEST_CASE("description: scales", "[fast]") {
  const Change exponents = [](UnitDescription& u) {
    u.scaling = {.point = Point::exponents, .format = format("float8_e8m0fnu"), .block = 32};
  };
  const Change groups = [](UnitDescription& u) {
    u.a = u.b = format("float4_e2m1fn");
    u.k = u.group = 64;
    u.scaling = {.point = Point::groups, .format = format("float8_e4m3fn"), .block = 16};
  };
  accepts(CoreKind::fused, exponents);
  accepts(CoreKind::exact, exponents);
  const auto changed = [](const Change& first, const Change& second) {
    return [=](UnitDescription& u) {
      first(u);
      second(u);
    };
  };
  refuses(CoreKind::chain, "scaling.point: expected core fused or exact with exponents", exponents);
  refuses(CoreKind::tree, "scaling.point: expected core fused with groups", groups);
  refuses(CoreKind::fused, "scaling.point: expected core exact with after_sum",
          [](auto& u) { u.scaling.point = Point::after_sum; });
  refuses(CoreKind::exact, "scaling.shift: expected 0 to 127",
          [](auto& u) { u.scaling = {.point = Point::after_sum, .shift = 128}; });
  refuses(CoreKind::fused, "scaling.shift: expected together with scaling.point after_sum",
          changed(exponents, [](auto& u) { u.scaling.shift = 1; }));
  refuses(CoreKind::exact,
          "scaling.block: expected together with scaling.point exponents or groups",
          [](auto& u) { u.scaling.block = 32; });
  refuses(CoreKind::exact,
          "scaling.format: expected together with scaling.point exponents or groups",
          [](auto& u) { u.scaling.format = format("float8_e8m0fnu"); });
  for (const Format* wrong :
       {static_cast<const Format*>(nullptr), format("float16"), format("int8")}) {
    refuses(CoreKind::fused,
            "scaling.format: expected a floating format of at most 8 bits, such as float8_e8m0fnu",
            changed(exponents, [&](auto& u) { u.scaling.format = wrong; }));
  }
  refuses(CoreKind::fused,
          "scaling.format: expected powers of two, such as float8_e8m0fnu, with scaling.point "
          "exponents",
          changed(exponents, [](auto& u) { u.scaling.format = format("float8_e4m3fn"); }));
  refuses(CoreKind::fused, "scaling.block: expected 1 to 1048576",
          changed(exponents, [](auto& u) { u.scaling.block = 0; }));
  refuses(CoreKind::fused, "sparsity: expected null with block scales",
          changed(exponents, [](auto& u) {
            u.sparsity = {2, 4};
          }));
  refuses(CoreKind::fused, "scaling.block: expected a multiple of 16 with scaling groups",
          changed(groups, [](auto& u) { u.scaling.block = 24; }));
  refuses(CoreKind::fused, "group: expected a multiple of 16 with scaling groups",
          changed(groups, [](auto& u) { u.group = 8; }));
  refuses(CoreKind::fused, "order: expected ascending with scaling groups",
          changed(groups, [](auto& u) {
            u.group = 32;
            u.order = StepOrder::pairs_mod4;
          }));
  refuses(CoreKind::fused,
          "products_overflow: expected together with core fused, without scaling groups",
          changed(groups, [](auto& u) { u.products_overflow = true; }));
  refuses(CoreKind::fused,
          "b: expected operands whose exact sums of 16 products, times both scales, fit 64 bits",
          changed(groups, [](auto& u) { u.a = u.b = format("float8_e5m2"); }));
}

TEST_CASE("description: sparsity and input rounding", "[fast]") {
  for (const Sparsity s :
       {Sparsity{5, 4}, Sparsity{0, 4}, Sparsity{2, 17}, Sparsity{-1, 4}, Sparsity{2, -4}}) {
    refuses(CoreKind::fused, "sparsity: expected N:M with 1 <= N <= M <= 16",
            [&](auto& u) { u.sparsity = s; });
  }
  refuses(CoreKind::fused, "sparsity: expected 0:0 (dense) or N:M", [](auto& u) {
    u.sparsity = {2, 0};
  });
  refuses(CoreKind::chain, "input.format: expected a signed floating format with a zero",
          [](auto& u) { u.input.format = format("int8"); });
  refuses(CoreKind::chain, "input.format: expected together with floating operands", [](auto& u) {
    u.a = format("int8");
    u.input.format = format("bfloat16");
  });
  accepts(CoreKind::fused, [](auto& u) {
    u.a = u.b = format("float32");
    u.input.format = format("float16");
  });
  accepts(CoreKind::fused, [](auto& u) {
    u.a = u.b = format("float32");
    u.input = {format("tfloat32"), mode(RoundingMode::rtz)};
  });
  refuses(CoreKind::integer,
          "input.format: expected together with core fused, chain, tree or exact",
          [](auto& u) { u.input.format = format("bfloat16"); });
}

}  // namespace check_numbers_test

// The analysis of a product for fast paths of fused units: rule, ranges, bounds, rows with
// specials.
#include "emu/unit/fused/prepare.hpp"

#include <limits>

#include "emu/unit/fused/prepare_values.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/fused/prepare_cases.hpp"

namespace prepare_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("prepare: every float16 and bfloat16 code becomes its float32", "[fast]") {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(codes.size());
  const auto wrong = [&](const Format& f) {
    int count = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const Value v = decode(f, i);
      if (v.kind == Class::nan) {
        count += !std::isnan(values[i]);
      } else {
        const auto expected = static_cast<float>(
            v.kind == Class::infinite ? std::copysign(INFINITY, v.negative ? -1.0 : 1.0)
                                      : to_double(v));
        count += std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(expected);
      }
    }
    return count;
  };
  for_each_simd_target([&](const std::string& target) {
    INFO(target);
    float16_to_float32(codes.data(), 65536, values.data());
    CHECK(wrong(find_format("float16")) == 0);
    // A tail that no vector fills.
    float16_to_float32(codes.data() + 31000, 5, values.data() + 31000);
    CHECK(wrong(find_format("float16")) == 0);
    bfloat16_to_float32(codes.data(), 65536, values.data());
    CHECK(wrong(find_format("bfloat16")) == 0);
  });
}

TEST_CASE("prepare: a survey finds the smallest non-zero and the largest magnitude", "[fast]") {
  std::vector<float> x(77, -0.0f);
  CHECK(survey(x.data(), 77).most == 0);
  CHECK(survey(x.data(), 77).least == 0xffffffffu);
  for (const std::size_t at : {std::size_t{0}, std::size_t{40}, std::size_t{76}}) {
    std::vector<float> y = x;
    y[at] = -3.0f;
    y[(at + 9) % 77] = std::numeric_limits<float>::denorm_min();
    CHECK(survey(y.data(), 77).least == 1u);
    CHECK(survey(y.data(), 77).most == std::bit_cast<std::uint32_t>(3.0f));
  }
}

TEST_CASE("prepare: ranges hold for every element, and exponents count from emin", "[fast]") {
  for (const char* format : {"float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2",
                             "float8_e4m3fnuz", "float6_e2m3fn", "float4_e2m1fn"}) {
    for (const Elements elements : kAllElements) {
      FusedCase f;
      f.a = f.b = format;
      const bool has_nan = find_format(format).has_nan();
      if (elements == Elements::special && !has_nan) continue;
      const FusedProduct p = make_fused(f, {9, 4, 40, true}, elements, Addend::none, 7);
      std::vector<std::uint8_t> d;
      const Gemm gemm = p.gemm(d);
      const auto o = prepare_fused(p.unit, gemm);
      REQUIRE(o);
      INFO(format << " elements " << static_cast<int>(elements));
      Present present = scan(gemm.a, 9, 40);
      CHECK(o->a.special_rows.empty() == !present.specials);
      CHECK(o->a.emin == 1 - find_format(format).bias);
      if (present.exponents.empty()) {
        CHECK(o->a.empty());
        continue;
      }
      CHECK(o->a.present.low <= present.exponents.low);
      CHECK(o->a.present.top >= present.exponents.top);
      CHECK(o->a.highest == std::max(present.exponents.top - 1, o->a.emin));
      CHECK(o->a.lowest >= o->a.emin);
      CHECK(o->lowest_bit == o->a.present.low + o->b.present.low);
    }
  }
}

TEST_CASE("prepare: rows with NaN or infinity are marked and read as zeros", "[fast]") {
  FusedProduct p = make_fused({}, {4, 3, 20}, Elements::gaussian, Addend::usual, 2);
  p.a.halves[1 * 20 + 7] = 0x7c00;
  p.a.halves[3 * 20 + 19] = 0xfe01;
  p.c[5] = NAN;
  std::vector<std::uint8_t> d;
  const auto o = prepare_fused(p.unit, p.gemm(d));
  REQUIRE(o);
  CHECK(o->a.special_rows == std::vector<std::uint8_t>{0, 1, 0, 1});
  CHECK(o->b.special_rows.empty());
  CHECK(o->special_c);
  CHECK(o->a.values.values[1 * 20 + 7] == 0.0f);
  CHECK(o->a.values.values[3 * 20 + 19] == 0.0f);
}

TEST_CASE("prepare: the bound on sums sees C, the products and long depths", "[fast]") {
  const auto bounded = [](const char* accumulator, Elements elements, Addend addend,
                          std::int64_t k) {
    const FusedProduct p =
        make_fused({"float16", "float16", accumulator}, {3, 3, k}, elements, addend, 4);
    std::vector<std::uint8_t> d;
    return prepare_fused(p.unit, p.gemm(d))->bounded;
  };
  CHECK(bounded("float16", Elements::gaussian, Addend::none, 1000));
  CHECK_FALSE(bounded("float16", Elements::gaussian, Addend::none, 100000));
  CHECK_FALSE(bounded("float16", Elements::uniform, Addend::none, 100));
  CHECK_FALSE(bounded("float16", Elements::gaussian, Addend::dominating, 10));
  CHECK(bounded("float32", Elements::uniform, Addend::usual, 1000));
}

TEST_CASE("prepare: zeros may be left out where products are normal, not for wide bfloat16",
          "[fast]") {
  const auto left_out = [](const FusedCase& f, Elements elements, Addend addend) {
    const FusedProduct p = make_fused(f, {5, 5, 50}, elements, addend, 4);
    std::vector<std::uint8_t> d;
    return prepare_fused(p.unit, p.gemm(d))->zeros_never_count;
  };
  CHECK(left_out({}, Elements::uniform, Addend::usual));
  CHECK(left_out({"float8_e4m3fn", "float8_e5m2"}, Elements::wide, Addend::none));
  CHECK_FALSE(left_out({}, Elements::uniform, Addend::tiny));
  CHECK_FALSE(left_out({"bfloat16", "bfloat16"}, Elements::wide, Addend::none));
}

TEST_CASE("prepare: rules that fast paths do not cover are none", "[fast]") {
  CHECK(fused_rule(describe({})));
  CHECK(fused_rule(describe({"float8_e4m3fn", "float8_e4m3fn", "float16", 32, 16, 25, true})));
  const auto covers = [](auto change) {
    UnitDescription u = describe({});
    change(u);
    return fused_rule(u).has_value();
  };
  CHECK(covers([](auto& u) { u.accumulator.rounding.mode = RoundingMode::rne; }));
  CHECK(covers([](auto& u) { u.accumulator.format = &find_format("e6m12"); }));
  CHECK_FALSE(covers([](auto& u) { u.accumulator.rounding.mode = RoundingMode::rup; }));
  CHECK_FALSE(covers([](auto& u) { u.accumulator.format = &find_format("e9m12"); }));
  CHECK_FALSE(covers([](auto& u) { u.accumulator.format = &find_format("e5m2+fnuz"); }));
  CHECK_FALSE(covers([](auto& u) { u.alignment.zero_exponent = 0; }));
  CHECK_FALSE(covers([](auto& u) { u.group = 5; }));
  CHECK(covers([](auto& u) { u.order = StepOrder::odd_first; }));
  CHECK_FALSE(covers([](auto& u) {
    u.order = StepOrder::odd_first;
    u.group = 1;
  }));
  CHECK_FALSE(covers([](auto& u) { u.d = &find_format("bfloat16"); }));
}

}  // namespace prepare_test

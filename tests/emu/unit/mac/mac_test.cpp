// Rounded multiply-adds: the vector loops give the bits of the reference on every CPU.
#include "emu/unit/mac/mac.hpp"

#include <hwy/targets.h>

#include "tests/catch.hpp"
#include "tests/emu/unit/mac/mac_case.hpp"

namespace mac_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

void check_all(const std::string& format, const std::string& a, const std::string& b,
               Magnitudes tiny) {
  for (const std::string& rounding : roundings()) {
    for (const Overflow overflow : kOverflows) {
      const UnitDescription unit = chain_of(format, rounding, overflow);
      for (const Case& c : data_sets(a, b, tiny)) {
        INFO(format << " " << rounding << " " << to_string(overflow) << " " << a << " x " << b
                    << " seed " << c.seed);
        CHECK(differing(unit, c) == 0);
      }
    }
  }
}

template <class Body>
void for_each_target(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace

TEST_CASE("mac: every rounding and overflow mode gives the bits of the reference", "[slow]") {
  SECTION("hfp16_e6m9") { check_all("hfp16_e6m9", "float8_e4m3fn", "float8_e5m2", {0, 0x1p-6}); }
  SECTION("float16") { check_all("float16", "float8_e4m3fn", "float16", {0, 0x1p-10}); }
  SECTION("e5m10, exact products") {
    check_all("e5m10", "float8_e5m2", "float8_e5m2", {0, 0x1p-9});
  }
  SECTION("e4m3") { check_all("float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", {0, 0x1p-3}); }
  SECTION("e4m3, fnuz") { check_all("float8_e4m3fnuz", "float8_e5m2", "int4", {0, 0x1p-5}); }
  SECTION("e3m2+finite, NaN") { check_all("e3m2+finite", "float8_e5m2", "float6_e2m3fn", {0, 1}); }
  SECTION("e3m2+finite") { check_all("e3m2+finite", "float4_e2m1fn", "float6_e2m3fn", {0, 1}); }
  SECTION("e4m1+nan1") { check_all("e4m1+nan1", "float4_e2m1fn", "float8_e5m2", {0, 1}); }
  SECTION("bfloat16") { check_all("bfloat16", "bfloat16", "bfloat16", {0, 0x1p-62}); }
  SECTION("bfloat16, small operands") { check_all("bfloat16", "float8_e5m2", "int8", {0, 1}); }
  SECTION("e8m13") { check_all("e8m13", "float16", "float8_e4m3fn", {0, 0x1p-9}); }
  SECTION("tfloat32") { check_all("tfloat32", "tfloat32", "bfloat16", {0, 0x1p-65}); }
  SECTION("float32") { check_all("float32", "float32", "float32", {0, 0x1p-70}); }
  SECTION("e6m11") { check_all("e6m11", "float16", "float16", {0, 0x1p-12}); }
  SECTION("e2m3") { check_all("e2m3", "float4_e2m1fn", "float4_e2m1fn", {0, 1}); }
  SECTION("binary8p4se") { check_all("binary8p4se", "binary8p4se", "binary8p3se", {0, 0x1p-4}); }
}

TEST_CASE("mac: C and D wider than the register", "[fast]") {
  for (const char* format : {"e8m8", "e8m10", "e8m12", "e8m16", "e8m21", "e6m12", "float16"}) {
    for (const char* rounding : {"rne", "rtz", "rdn", "rodd", "sr(8)"}) {
      for (const int chunk : {0, 16}) {
        UnitDescription unit = chain_of(format, rounding, Overflow::ieee, chunk);
        unit.c = unit.d = &find_format("float32");
        unit.nan_code = 0x7fc00001;
        for (const Case& c : data_sets("float8_e5m2", "float8_e4m3fn", {0, 0x1p-6})) {
          INFO(format << " " << rounding << " chunk " << chunk << " seed " << c.seed);
          CHECK(differing(unit, c) == 0);
        }
        unit.c = &find_format("bfloat16");
        CHECK(differing(unit, {.with_c = true, .magnitudes = {0x1p-4, 4}, .seed = 7}) == 0);
      }
    }
  }
}

TEST_CASE("mac: chunks", "[slow]") {
  for (const int chunk : {1, 7, 64}) {
    for (const char* rounding : {"rne", "rtz", "rup", "rna", "sr(8)", "sr(12)", "sr(23)"}) {
      for (const char* format : {"hfp16_e6m9", "float16", "e4m3fn"}) {
        const UnitDescription unit = chain_of(format, rounding, Overflow::ieee, chunk);
        for (Case c : data_sets("float8_e4m3fn", "float8_e5m2", {0, 0x1p-6})) {
          c.k = c.seed == 2 ? 300 : 65;
          INFO(format << " " << rounding << " chunk " << chunk << " seed " << c.seed);
          CHECK(differing(unit, c) == 0);
        }
      }
    }
  }
}

TEST_CASE("mac: seeds, tensors, columns that do not fill a block of random bits", "[fast]") {
  for (const char* rounding : {"sr(1)", "sr(8)", "sr(12)", "sr(23)", "sr(9,b)", "sr(32)"}) {
    const UnitDescription unit = chain_of("hfp16_e6m9", rounding);
    for (const std::int64_t n : {1, 16, 31, 64}) {
      const Case c{.m = 6,
                   .n = n,
                   .k = 35,
                   .magnitudes = {0x1p-3, 2},
                   .seed = 0xfedcba9876543210u + n,
                   .tensor = 0x89abcdefu};
      INFO(rounding << " n " << n);
      CHECK(differing(unit, c) == 0);
    }
  }
}

TEST_CASE("mac: two's complement registers", "[slow]") {
  for (const IntegerOverflow overflow :
       {IntegerOverflow::wrap, IntegerOverflow::saturate_each, IntegerOverflow::saturate_once}) {
    for (const auto& [bits, fraction] :
         {std::pair{16, 0}, {8, 0}, {12, 0}, {32, 0}, {16, 8}, {24, 12}, {7, 3}, {32, 12}}) {
      for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(1)", "sr(8)",
                                   "sr(12,a)", "sr(9,b)", "sr(4,odd)"}) {
        for (const int chunk : {0, 7}) {
          const UnitDescription unit = integer_chain(bits, fraction, overflow, rounding, chunk);
          for (const auto& [a, b] : {std::pair{"int8", "int8"},
                                     {"float4_e2m1fn", "float8_e4m3b11fnuz"},
                                     {"uint8", "float6_e2m3fn"}}) {
            INFO(bits << " bits, " << fraction << " of fraction, " << rounding << " " << a << " x "
                      << b << " chunk " << chunk);
            CHECK(differing(unit, {.a = a,
                                   .b = b,
                                   .m = 5,
                                   .n = 17,
                                   .k = 40,
                                   .with_c = true,
                                   .magnitudes = {0, 1e9}}) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("mac: every target gives the bits of the reference", "[slow]") {
  for_each_target([] {
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(12,a)",
                                 "sr(8,b)", "sr(23)", "sr(8,odd)"}) {
      for (const char* format : {"hfp16_e6m9", "float16", "e8m13"}) {
        for (const Case& c : data_sets("float8_e5m2", "float16", {0, 0x1p-10})) {
          INFO(format << " " << rounding << " seed " << c.seed);
          CHECK(differing(chain_of(format, rounding), c) == 0);
        }
      }
      const UnitDescription integer = integer_chain(16, 6, IntegerOverflow::wrap, rounding);
      INFO("16 bits " << rounding);
      CHECK(differing(integer, {.a = "float4_e2m1fn",
                                .b = "float8_e4m3fnuz",
                                .with_c = true,
                                .magnitudes = {0, 1e9}}) == 0);
    }
    CHECK(differing(chain_of("hfp16_e6m9"), {.magnitudes = {0x1p-3, 2}}) == 0);
    CHECK(differing(integer_chain(16, 0, IntegerOverflow::saturate_each),
                    {.a = "int8", .b = "int8"}) == 0);
  });
}

}  // namespace mac_test

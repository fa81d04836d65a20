// Codes of exact numbers: every finite code of the small types comes back, nothing is ever rounded,
// and the special codes are those of PTX and OCP.
#include <vector>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/probes/draft.hpp"

namespace numemu::oracle::recording::probing {
namespace {

/// The number that a finite code stands for, read field by field.
Exact decoded(const ElementInfo& type, std::uint64_t code) {
  const std::uint64_t mantissa = code & ((1ULL << type.mantissa_bits) - 1);
  const auto field =
      static_cast<int>(code >> type.mantissa_bits & ((1ULL << type.exponent_bits) - 1));
  const bool negative = type.has_sign && (code >> (type.bits - 1)) != 0;
  const std::uint64_t leading = field == 0 ? 0 : 1ULL << type.mantissa_bits;
  return {negative, mantissa | leading, (field == 0 ? 1 : field) - type.bias - type.mantissa_bits};
}

/// Finite codes of a sign.
std::uint64_t finite_codes(const ElementInfo& type) {
  const int bits = type.exponent_bits + type.mantissa_bits;
  if (type.specials == Specials::ieee)
    return ((1ULL << type.exponent_bits) - 1) << type.mantissa_bits;
  return (1ULL << bits) - (type.specials == Specials::one_nan ? 1 : 0);
}

constexpr Element kSmall[] = {Element::f16,  Element::bf16, Element::e5m2, Element::e4m3,
                              Element::e3m2, Element::e2m3, Element::e2m1};

TEST_CASE("every finite code of the small types is the code of its number", "[fast]") {
  for (const Element e : kSmall) {
    const ElementInfo type = info(e);
    CAPTURE(type.name);
    const std::uint64_t sign = 1ULL << (type.bits - 1);
    for (std::uint64_t magnitude = 0; magnitude < finite_codes(type); ++magnitude) {
      for (const std::uint64_t code : {magnitude, magnitude | sign}) {
        const Exact x = decoded(type, code);
        REQUIRE(code_of(e, x) == code);
        REQUIRE(code_of(e, {x.negative, x.significand << 3, x.exponent - 3}) == code);
        // Half way to the next code there is none.
        REQUIRE_FALSE(code_of(e, {x.negative, 2 * x.significand + 1, x.exponent - 1}));
      }
    }
  }
}

TEST_CASE("the ends of the types are where their encodings say", "[fast]") {
  CHECK(code_of(Element::f16, largest(Element::f16)) == 0x7bffU);
  CHECK(code_of(Element::bf16, largest(Element::bf16)) == 0x7f7fU);
  CHECK(code_of(Element::tf32, largest(Element::tf32)) == 0x7f7fe000U);
  CHECK(code_of(Element::f32, largest(Element::f32)) == 0x7f7fffffU);
  CHECK(code_of(Element::f64, largest(Element::f64)) == 0x7fefffffffffffffULL);
  CHECK(code_of(Element::e5m2, largest(Element::e5m2)) == 0x7bU);
  CHECK(code_of(Element::e4m3, largest(Element::e4m3)) == 0x7eU);
  CHECK(code_of(Element::e2m1, largest(Element::e2m1)) == 0x7U);
  CHECK(code_of(Element::f32, power(-149)) == 1U);
  CHECK(code_of(Element::tf32, power(-136)) == 0x2000U);
  CHECK_FALSE(code_of(Element::tf32, power(-137)));
  CHECK_FALSE(code_of(Element::f32, power(128)));
  CHECK_FALSE(code_of(Element::e4m3, scaled(15, 5)));  // 480, past 448
  CHECK(code_of(Element::f16, -zero()) == 0x8000U);
  CHECK_FALSE(code_of(Element::ue4m3, -power(0)));
}

TEST_CASE("integers have their codes, and none beyond their ends", "[fast]") {
  CHECK(code_of(Element::s8, integer(-128)) == 0x80U);
  CHECK(code_of(Element::s8, integer(127)) == 0x7fU);
  CHECK_FALSE(code_of(Element::s8, integer(128)));
  CHECK_FALSE(code_of(Element::s8, integer(-129)));
  CHECK(code_of(Element::u8, integer(255)) == 0xffU);
  CHECK_FALSE(code_of(Element::u8, integer(-1)));
  CHECK(code_of(Element::s4, integer(-1)) == 0xfU);
  CHECK_FALSE(code_of(Element::u4, integer(16)));
  CHECK(code_of(Element::s32, integer(-0x80000000LL)) == 0x80000000U);
  CHECK_FALSE(code_of(Element::s32, integer(0x80000000LL)));
  CHECK_FALSE(code_of(Element::s8, power(-1)));
}

TEST_CASE("infinities, NaN and scales have the codes of their types", "[fast]") {
  CHECK(infinity_code(Element::f16, true) == 0xfc00U);
  CHECK(infinity_code(Element::e5m2) == 0x7cU);
  CHECK_FALSE(infinity_code(Element::e4m3));
  CHECK(nan_code(Element::f32, false, true, 1) == 0x7fc00001U);
  CHECK(nan_code(Element::f32, true, false, 1) == 0xff800001U);
  CHECK(nan_code(Element::tf32, false, true, 0) == 0x7fc00000U);
  CHECK(nan_code(Element::e4m3, true, true, 0) == 0xffU);
  CHECK_FALSE(nan_code(Element::e4m3, false, false, 1));
  CHECK_FALSE(nan_code(Element::f16, false, false, 0));  // an infinity
  CHECK_FALSE(nan_code(Element::e2m1, false, true, 0));
  CHECK(scale_code(Element::ue8m0, 0) == 127U);
  CHECK(scale_code(Element::ue8m0, 127) == 254U);
  CHECK_FALSE(scale_code(Element::ue8m0, 128));
  CHECK(scale_code(Element::ue4m3, 0) == 0x38U);
  CHECK_FALSE(scale_code(Element::ue4m3, 9));
}

TEST_CASE("a product finds factors whose product it is, in every instruction", "[fast]") {
  for (const Instruction& i : instructions()) {
    if (is_integer(i.a) || i.block != 0) continue;
    CAPTURE(name(i));
    int found = 0;
    for (int exponent = -40; exponent <= 20; ++exponent) {
      for (const std::uint64_t significand : {1ULL, 3ULL}) {
        const Exact wanted = {significand == 3, significand, exponent};
        const Draft draft = Draft(i, "x", "x").product(1, wanted);
        if (!draft.expressible()) continue;
        ++found;
        const Probe probe = draft.probe();
        const int shift = i.a == Element::tf32 ? 13 : 0;
        const auto factor = [shift](Element e, std::uint64_t code) {
          ElementInfo type = info(e);
          type.bits -= shift;
          return decoded(type, code >> shift);
        };
        const Exact a = factor(i.a, probe.a[1]);
        const Exact b = factor(i.b, probe.b[static_cast<std::size_t>(k_of(i, probe.metadata, 1))]);
        std::uint64_t product = a.significand * b.significand;
        if (i.a == Element::f64) continue;  // 106 bits; leading_exponent() says enough below
        int at = a.exponent + b.exponent;
        for (; product % 2 == 0; product /= 2) ++at;
        REQUIRE(product == significand);
        REQUIRE(at == exponent);
        REQUIRE((a.negative != b.negative) == wanted.negative);
      }
    }
    CHECK(found > 0);
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::probing

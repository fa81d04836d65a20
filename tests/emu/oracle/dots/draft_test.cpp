// Codes of exact numbers: every finite code of the small formats comes back, nothing is ever
// rounded; products and sparse choices of drafts are what was asked for.
#include "emu/oracle/dots/draft.hpp"

#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace draft_test {

using namespace numemu;
using namespace numemu::oracle;

namespace {

std::optional<std::uint64_t> code(const char* format, const Value& v) {
  return exact_code(&find_format(format), 0, v);
}

}  // namespace

TEST_CASE("every finite code of the small formats is the code of its number", "[fast]") {
  for (const char* name :
       {"float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float6_e3m2fn",
        "float6_e2m3fn", "float4_e2m1fn", "float8_e8m0fnu", "dlfloat16", "int8", "uint4"}) {
    const Format& f = find_format(name);
    CAPTURE(name);
    for (std::uint64_t each = 0; each <= f.last_code(); ++each) {
      Value v = decode(f, each);
      if (v.kind != Class::finite) continue;
      REQUIRE(exact_code(&f, 0, v) == each);
      if (v.significand >> 60 == 0) {
        v.exponent -= 3;
        v.significand <<= 3;
        REQUIRE(exact_code(&f, 0, v) == each);
      }
      // Half way to the next code there is none, but where the smallest is halved.
      v = decode(f, each);
      v.exponent -= f.mantissa_bits + 2;
      v.significand = (v.significand << (f.mantissa_bits + 2)) + 1;
      REQUIRE_FALSE(exact_code(&f, 0, v));
    }
  }
}

TEST_CASE("the ends of the formats are where their encodings say", "[fast]") {
  CHECK(code("float32", number(1, -149)) == 1U);
  CHECK(code("tfloat32", number(1, -136)) == 1U);
  CHECK_FALSE(code("tfloat32", number(1, -137)));
  CHECK_FALSE(code("float32", number(1, 128)));
  CHECK_FALSE(code("float8_e4m3fn", number(15, 5)));  // 480, past 448
  CHECK(code("float16", -Value{}) == 0x8000U);
  CHECK(code("float8_e8m0fnu", number(1, -127)) == 0U);
  CHECK_FALSE(code("float8_e8m0fnu", number(1, 128)));
  CHECK_FALSE(code("float8_e8m0fnu", number(3)));
  CHECK(code("int8", number(-128)) == 0x80U);
  CHECK_FALSE(code("int8", number(128)));
  CHECK_FALSE(code("uint8", number(-1)));
  CHECK_FALSE(code("int8", number(1, -1)));
  CHECK(exact_code(nullptr, 32, number(-0x80000000LL)) == 0x80000000U);
  CHECK_FALSE(exact_code(nullptr, 32, number(0x80000000LL)));
}

TEST_CASE("a draft puts B where the kept number of A meets it", "[fast]") {
  Ports ports;
  ports.a = ports.b = &find_format("float16");
  ports.c = ports.d = &find_format("float32");
  ports.k = 8;
  ports.sparsity = {2, 4};
  const auto dot =
      Draft(ports).product(3, number(3, 4)).keep(1, {1, 3}).b(0, code("float16", number(1))).dot();
  REQUIRE(dot);
  CHECK(dot->kept == std::vector<std::uint8_t>{0, 1, 1, 3});
  const Value a = decode(*ports.a, dot->a[3]), b = decode(*ports.b, dot->b[7]);
  CHECK((a.significand * b.significand) >> (20 - 10) != 0);
  CHECK(dot->b[0] == 0x3c00);
  CHECK_FALSE(Draft(ports).product(4, number(1)).dot());  // four are kept
  CHECK_FALSE(Draft(ports).keep(2, {0, 1}).dot());
  CHECK_FALSE(Draft(ports).product(0, number(1, 60)).dot());
}

}  // namespace draft_test

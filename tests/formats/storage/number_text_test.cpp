// Text is read exactly, against the C library where it is exact, and written as C's %a does.
#include "formats/storage/number_text.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::number_text_test {
namespace {

std::uint64_t float64_bits(const Value& value) {
  return encode(find_format("float64"), value, {}, Overflow::ieee).code;
}

TEST_CASE("random doubles are written as %a writes them and read back", "[fast]") {
  const RandomSource source{.seed = 3};
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto bits =
        static_cast<std::uint64_t>(source.bits(2 * i, 32)) << 32 | source.bits(2 * i + 1, 32);
    const auto x = std::bit_cast<double>(bits);
    if (!std::isnormal(x)) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%a", x);
    CHECK(hex_text(value_of(x)) == text);
    CHECK(float64_bits(parse_number(text)) == bits);
    // Correctly rounded decimal input is what strtod of glibc gives.
    std::snprintf(text, sizeof text, "%.25e", x);
    CHECK(float64_bits(parse_number(text)) == bits);
    std::snprintf(text, sizeof text, "%.3e", x);
    CHECK(float64_bits(parse_number(text)) ==
          std::bit_cast<std::uint64_t>(std::strtod(text, nullptr)));
  }
}

TEST_CASE("special values and spellings", "[fast]") {
  CHECK(hex_text(parse_number("-0")) == "-0x0p+0");
  CHECK(hex_text(parse_number("+0.000e5")) == "0x0p+0");
  CHECK(hex_text(parse_number("-Inf")) == "-inf");
  CHECK(hex_text(parse_number("NaN")) == "nan");
  CHECK(hex_text(parse_number("-nan")) == "-nan");
  CHECK(hex_text(parse_number(".5")) == "0x1p-1");
  CHECK(hex_text(parse_number("5.")) == "0x1.4p+2");
  CHECK(hex_text(parse_number("0X.8P1")) == "0x1p+0");
  CHECK(hex_text(parse_number("0x10p0")) == "0x1p+4");
  CHECK(hex_text(parse_number("448")) == "0x1.cp+8");
  CHECK(hex_text({Class::finite, false, false, -16400, 3}) == "0x1.8p-16399");
  CHECK(hex_text({Class::finite, true, false, 0, ~std::uint64_t{0}}) ==
        "-0x1.fffffffffffffffep+63");
}

TEST_CASE("one rounding from the number as written", "[fast]") {
  // 1 + 2^-11 + 2^-80 lies above the midpoint of two float16; a double in between would lose that.
  const std::string above = "0x1.00200000000000000001p0", tie = "0x1.002p0";
  const Format& half = find_format("float16");
  CHECK(encode(half, parse_number(above), {}, Overflow::ieee).code == 0x3c01);
  CHECK(encode(half, parse_number(tie), {}, Overflow::ieee).code == 0x3c00);
  // The same in decimal: 1.00048828125 is the midpoint.
  CHECK(encode(half, parse_number("1.00048828125"), {}, Overflow::ieee).code == 0x3c00);
  CHECK(encode(half, parse_number("1.00048828125000000000000000000000000001"), {}, Overflow::ieee)
            .code == 0x3c01);
  CHECK(encode(half, parse_number("1.00048828124999999999999999999999999999"), {}, Overflow::ieee)
            .code == 0x3c00);
  CHECK(parse_number("0.1").sticky);
  CHECK_FALSE(parse_number("0.125").sticky);
  CHECK(parse_number("1e-4950").sticky);
  CHECK(hex_text(parse_number("0x1p-16400")) == "0x1p-16400");
}

TEST_CASE("what is no number", "[fast]") {
  for (const char* bad :
       {"", "-", "x", "1x", "0x", "0x.p1", "1e", "1e+", "1.2.3", "--1", "1 ", " 1", "infinit",
        "infinityy", "nan(1)", "0x1p1.5", "1e20001", "0b1", "1,5"}) {
    CHECK_THAT(test::message_of([&] { parse_number(bad); }),
               Catch::StartsWith("expected a number, found '"));
  }
  CHECK(test::message_of([] { parse_number("a\nb"); }) == "expected a number, found 'a\\nb'");
  CHECK(test::message_of([] { parse_number(std::string(1101, '1')); }).size() < 130);
}

TEST_CASE("infinity has two names", "[fast]") {
  for (const std::string text : {"inf", "Inf", "infinity", "INFINITY", "+infinity"})
    CHECK(hex_text(parse_number(text)) == "inf");
  CHECK(hex_text(parse_number("-infinity")) == "-inf");
}

TEST_CASE("hexadecimal without an exponent may be a code", "[fast]") {
  for (const std::string text : {"0x3c", "-0X3C", "0x1.8"}) {
    CHECK(test::message_of([&] { parse_number(text); }) ==
          "expected a number, found '" + text + "': hexadecimal needs an exponent (" + text +
              "p+0); codes need --codes hex");
  }
}

TEST_CASE("codes are all with 0x or all without", "[fast]") {
  CHECK(parse_code("0x3c", true) == 0x3c);
  CHECK(parse_code("0X3C", true) == 0x3c);
  CHECK(parse_code("60", false) == 0x60);
  CHECK(parse_code("ffffffffffffffff", false) == ~std::uint64_t{0});
  for (const char* text :
       {"60", "", "0x", "0x3g", "-0x3c", "0x1p0", "0x10000000000000000", "nan"}) {
    CHECK(test::message_of([&] { parse_code(text, true); }) ==
          "expected a code in hexadecimal with 0x, found '" + std::string(text) + "'");
  }
  CHECK(test::message_of([] { parse_code("0x3c", false); }) ==
        "expected a code in hexadecimal without 0x, found '0x3c'");
}

TEST_CASE("decimals beside hexadecimal floats have nine digits", "[fast]") {
  CHECK(decimal_text(value_of(0.1f)) == "0.100000001");
  CHECK(decimal_text(value_of(-256.0)) == "-256");
  CHECK(decimal_text(value_of(0x1p-149)) == "1.40129846e-45");
  CHECK(decimal_text({}) == "0");
  CHECK(decimal_text({.kind = Class::zero, .negative = true}) == "-0");
  CHECK(decimal_text({.kind = Class::infinite}) == "inf");
  CHECK(decimal_text({Class::finite, false, false, 3000, 1}) == "inf");
}

}  // namespace
}  // namespace numemu::number_text_test

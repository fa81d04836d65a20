// sign1: the sign alone in every rounding and overflow mode, from doubles, quotients and specials.
#include <cmath>
#include <limits>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::encode_sign_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
const char* const kRoundings[] = {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(3,a)"};
constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};

TEST_CASE("encode: sign1 keeps the sign; zeros and NaN are +1", "[fast]") {
  struct Case {
    double x;
    std::uint64_t code;
    int flags;
  };
  const Case cases[] = {
      {1, 0, 0},
      {-1, 1, 0},
      {0.0, 0, kInexact},
      {-0.0, 0, kInexact},
      {0.3, 0, kInexact},
      {-0.3, 1, kInexact},
      {1e300, 0, kInexact},
      {-1e300, 1, kInexact},
      {0x1p-1074, 0, kInexact},
      {-0x1p-1074, 1, kInexact},
      {std::nextafter(1.0, 2.0), 0, kInexact},
      {std::nextafter(-1.0, 0.0), 1, kInexact},
      {kInf, 0, kOverflow | kInexact},
      {-kInf, 1, kOverflow | kInexact},
      {kNan, 0, kInvalid},
      {-kNan, 0, kInvalid},
  };
  const Format& f = find_format("sign1");
  for (const Case& c : cases) {
    for (const char* rounding : kRoundings) {
      for (const Overflow overflow : kOverflows) {
        for (const std::uint32_t random : {0u, 255u}) {
          const Encoded got = encode(f, value_of(c.x), parse_rounding(rounding), overflow, random);
          INFO(c.x << " " << rounding << " " << to_string(overflow));
          CHECK(got.code == c.code);
          CHECK(int{got.flags} == c.flags);
        }
      }
    }
  }
}

TEST_CASE("encode: sign1 of a quotient is exact only at one", "[fast]") {
  const Format& f = find_format("sign1");
  const auto flags = [&](float x, float s) {
    return int{encode(f, exact_quotient(value_of(x), value_of(s)), {}, Overflow::saturate).flags};
  };
  CHECK(flags(3, 3) == 0);
  CHECK(flags(-0.1F, 0.1F) == 0);
  CHECK(flags(3, 3.0000002F) == kInexact);
  CHECK(flags(1, 3) == kInexact);
  const Value above_one{Class::finite, false, true, 0, 1};
  CHECK(encode(f, above_one, {}, Overflow::saturate).flags == kInexact);
}

TEST_CASE("decode: sign1 has two values and no special", "[fast]") {
  const Format& f = find_format("sign1");
  CHECK(f.kind == Kind::sign);
  CHECK(f.bits == 1);
  CHECK(to_double(decode(f, 0)) == 1);
  CHECK(to_double(decode(f, 1)) == -1);
  CHECK(finite_values(f) == std::vector<double>{-1, 1});
  CHECK_FALSE((f.has_zero() || f.has_nan() || f.has_infinity() || f.has_negative_zero()));
  CHECK((f.last_code() == 1 && f.largest_code() == 0 && f.largest_code(true) == 1));
  CHECK((largest_value(f) == 1 && smallest_normal(f) == 1 && smallest_value(f) == 1));
  const float* table = decode_table(f);
  CHECK((table[0] == 1 && table[1] == -1 && table[254] == 1 && table[255] == -1));
}

TEST_CASE("quantize: sign1 counts what is inexact and invalid", "[fast]") {
  const float x[] = {-2.5F, 0.0F, 2.5F, 5.0F, static_cast<float>(kNan)};
  std::uint8_t codes[5];
  const FlagCounts counts = quantize_codes({.format = &find_format("sign1")}, x, 5, 2.5F, codes);
  CHECK((codes[0] == 1 && codes[1] == 0 && codes[2] == 0 && codes[3] == 0 && codes[4] == 0));
  CHECK(counts == FlagCounts{.elements = 5, .inexact = 2, .invalid = 1});
}

TEST_CASE("quantize: signs by comparison are those of the reference", "[fast]") {
  const Conversion sign{.format = &find_format("sign1")};
  const RandomSource random;
  std::vector<float> x = {0.0F, -0.0F, 1e-45F, -1e-45F, 3.0F, -3.0F, 3.4e38F, -3.4e38F, 0.75F};
  for (std::uint64_t i = 0; i < 4000; ++i)
    x.push_back(std::ldexp(static_cast<float>(random.bits(i, 24)) - 0x1p23F, -20));
  const auto n = static_cast<std::int64_t>(x.size());
  for (const float scale : {1.0F, 0.75F, 3.0F, 1e-45F, 3.4e38F}) {
    CAPTURE(scale);
    std::vector<std::uint8_t> codes(x.size()), expected_codes(x.size());
    std::vector<float> values(x.size()), expected_values(x.size());
    CHECK(quantize_codes(sign, x.data(), n, scale, codes.data()) ==
          quantize_codes_reference(sign, x.data(), n, scale, expected_codes.data()));
    CHECK(codes == expected_codes);
    CHECK(quantize_values(sign, x.data(), n, scale, values.data()) ==
          quantize_values_reference(sign, x.data(), n, scale, expected_values.data()));
    CHECK(values == expected_values);
  }
}

TEST_CASE("cells: sign1 has two, split at zero in every mode, and no brackets", "[fast]") {
  const Format& f = find_format("sign1");
  for (const char* rounding : kRoundings) {
    const std::vector<Cell> list = cells(f, parse_rounding(rounding), true);
    REQUIRE(list.size() == 2);
    CHECK((list[0].value == -1 && list[0].low == -kInf && list[0].high == 0));
    CHECK((list[1].value == 1 && list[1].low == 0 && list[1].low_closed && list[1].high == kInf));
  }
  CHECK_THROWS_AS(brackets(f, true), Error);
}

}  // namespace
}  // namespace numemu::encode_sign_test

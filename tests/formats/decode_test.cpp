// The limits of every row and the special codes, as the specification prints them.
#include <cmath>
#include <set>
#include <string>

#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/specification.hpp"

namespace numemu::decode_test {
namespace {

TEST_CASE("decode: fields and limits of every row are the specified ones", "[fast]") {
  std::set<std::string> specified;
  for (const oracle::Specified& row : oracle::specified_rows()) {
    INFO(row.name);
    specified.insert(row.name);
    const Format& f = find_format(row.name);
    CHECK(f.name == row.name);
    CHECK(f.bits == row.bits);
    CHECK(f.exponent_bits == row.e);
    CHECK(f.mantissa_bits == row.m);
    CHECK(f.bias == row.bias);
    CHECK(largest_value(f) == row.max);
    CHECK(smallest_normal(f) == row.min_normal);
    CHECK(smallest_value(f) == row.min_positive);
  }
  for (const Format* f : named_formats()) CHECK(specified.count(f->name) == 1);
}

TEST_CASE("decode: integers are two's complement or unsigned", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->kind != Kind::integer) continue;
    for (std::uint64_t code = 0; code <= f->code_mask(); ++code) {
      const auto unsigned_value = static_cast<double>(code);
      const double want = f->is_signed && code >= f->sign_bit()
                              ? unsigned_value - std::ldexp(1, f->bits)
                              : unsigned_value;
      CHECK(to_double(decode(*f, code)) == want);
    }
  }
}

TEST_CASE("decode: P3109 special codes", "[fast]") {
  const Format& extended = find_format("binary8p4se");
  CHECK(decode(extended, 0x80).kind == Class::nan);
  CHECK(decode(extended, 0x7f).kind == Class::infinite);
  CHECK((decode(extended, 0xff).kind == Class::infinite && decode(extended, 0xff).negative));
  CHECK(largest_value(extended) == 224);  // P3109 interim report, binary8p4: 1.75 * 2^7
  CHECK(smallest_value(extended) == 0x1p-10);
  CHECK(largest_value(find_format("binary8p4sf")) == 240);
  const Format& unsigned_extended = find_format("binary8p4ue");
  CHECK(decode(unsigned_extended, 0xff).kind == Class::nan);
  CHECK(decode(unsigned_extended, 0xfe).kind == Class::infinite);
  CHECK(decode(unsigned_extended, 0x80).kind == Class::finite);
  CHECK(decode(find_format("binary8p4uf"), 0xfe).kind == Class::finite);
  const Format& powers = find_format("binary4p1sf");  // code 0, then powers of two
  CHECK(finite_values(powers) ==
        std::vector<double>{-8, -4, -2, -1, -0.5, -0.25, -0.125, 0, 0.125, 0.25, 0.5, 1, 2, 4, 8});
}

TEST_CASE("decode: flushed formats read subnormal codes as zero", "[fast]") {
  const Format& f = find_format("e4m3+ftz");
  for (std::uint64_t code = 0; code < 8; ++code) CHECK(decode(f, code).kind == Class::zero);
  CHECK(decode(f, 0x83).negative);
  CHECK(to_double(decode(f, 8)) == 0x1p-6);
  CHECK(smallest_value(f) == 0x1p-6);
  CHECK(finite_values(f).size() == 2 * 14 * 8 + 1);
}

}  // namespace
}  // namespace numemu::decode_test

// Every code of every row of at most 16 bits against the specification's numbers, restated here.
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace numemu {
namespace {

// The specification's table of scalar floats, typed in again: E, M, bias, limits and the codes that
// are no numbers.
struct Expected {
  int e, m, bias;
  double max, min_normal, min_positive;
  enum Reserved { none, inf_nan, all_ones, negative_zero, unsigned_top } reserved;
  bool normal_field_zero = false;
};

const std::map<std::string, Expected>& expected() {
  static const std::map<std::string, Expected> table = {
      {"float8_e5m2", {5, 2, 15, 57344, 0x1p-14, 0x1p-16, Expected::inf_nan}},
      {"float8_e4m3fn", {4, 3, 7, 448, 0x1p-6, 0x1p-9, Expected::all_ones}},
      {"float8_e4m3", {4, 3, 7, 240, 0x1p-6, 0x1p-9, Expected::inf_nan}},
      {"float8_e3m4", {3, 4, 3, 15.5, 0x1p-2, 0x1p-6, Expected::inf_nan}},
      {"float8_e5m2fnuz", {5, 2, 16, 57344, 0x1p-15, 0x1p-17, Expected::negative_zero}},
      {"float8_e4m3fnuz", {4, 3, 8, 240, 0x1p-7, 0x1p-10, Expected::negative_zero}},
      {"float8_e4m3b11fnuz", {4, 3, 11, 30, 0x1p-10, 0x1p-13, Expected::negative_zero}},
      {"float8_e8m0fnu", {8, 0, 127, 0x1p127, 0x1p-127, 0x1p-127, Expected::unsigned_top, true}},
      {"float6_e3m2fn", {3, 2, 3, 28, 0x1p-2, 0x1p-4, Expected::none}},
      {"float6_e2m3fn", {2, 3, 1, 7.5, 1, 0x1p-3, Expected::none}},
      {"float4_e2m1fn", {2, 1, 1, 6, 1, 0.5, Expected::none}},
      {"hfp8_e4m3", {4, 3, 11, 30, 0x1p-10, 0x1p-13, Expected::none}},
      {"hfp8_e4m3_nosub", {4, 3, 11, 30, 0x1p-11 * 1.125, 0x1p-11 * 1.125, Expected::none, true}},
      {"hfp8_e5m2", {5, 2, 15, 57344, 0x1p-14, 0x1p-16, Expected::inf_nan}},
      {"hfp8_e5m2_finite", {5, 2, 15, 114688, 0x1p-14, 0x1p-16, Expected::none}},
      {"hfp16_e6m9", {6, 9, 31, 4290772992, 0x1p-30, 0x1p-39, Expected::inf_nan}},
      {"dlfloat16",
       {6, 9, 31, 8573157376, 0x1p-31 * (1 + 0x1p-9), 0x1p-31 * (1 + 0x1p-9), Expected::all_ones,
        true}},
      {"tfloat32", {8, 10, 127, 0x1.ffcp127, 0x1p-126, 0x1p-136, Expected::inf_nan}},
      {"float16", {5, 10, 15, 65504, 0x1p-14, 0x1p-24, Expected::inf_nan}},
      {"bfloat16", {8, 7, 127, 0x1.fep127, 0x1p-126, 0x1p-133, Expected::inf_nan}},
      {"float32", {8, 23, 127, 0x1.fffffep127, 0x1p-126, 0x1p-149, Expected::inf_nan}},
      {"float64", {11, 52, 1023, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, Expected::inf_nan}},
  };
  return table;
}

// The real number of a code by the formula of the specification; NaN and infinity as themselves.
double value_by_formula(const Expected& row, bool is_signed, int bits, std::uint64_t code) {
  const bool negative = is_signed && (code >> (bits - 1) & 1) != 0;
  const auto field = static_cast<int>(code >> row.m & ((1U << row.e) - 1));
  const auto m = static_cast<int>(code & ((1U << row.m) - 1));
  const bool ones = field == (1 << row.e) - 1, all_ones = ones && m == (1 << row.m) - 1;
  if (row.reserved == Expected::inf_nan && ones)
    return m == 0 ? (negative ? -HUGE_VAL : HUGE_VAL) : std::nan("");
  if ((row.reserved == Expected::all_ones || row.reserved == Expected::unsigned_top) && all_ones)
    return std::nan("");
  if (row.reserved == Expected::negative_zero && negative && field == 0 && m == 0)
    return std::nan("");
  const bool reads_as_zero = field == 0 && m == 0 && row.reserved != Expected::unsigned_top;
  double value = 0;
  if (!reads_as_zero) {
    value = field == 0 && !row.normal_field_zero
                ? std::ldexp(m, 1 - row.bias - row.m)
                : std::ldexp((1 << row.m) + m, field - row.bias - row.m);
  }
  return negative ? -value : value;
}

TEST_CASE("decode: every code of every float row of at most 16 bits has the specified value",
          "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->kind != Kind::floating || f->bits > 16) continue;
    INFO(f->name);
    REQUIRE(expected().count(f->name) == 1);
    const Expected& row = expected().at(f->name);
    int mismatches = 0;
    for (std::uint64_t code = 0; code <= f->code_mask(); ++code) {
      const double want = value_by_formula(row, f->is_signed, f->bits, code);
      const Value v = decode(*f, code);
      const double got = to_double(v);
      const bool dlfloat_negative_zero = f->name == "dlfloat16" && code == 0x8000;
      const bool same =
          std::isnan(want)
              ? std::isnan(got)
              : got == want &&
                    (dlfloat_negative_zero ? !v.negative : std::signbit(got) == std::signbit(want));
      mismatches += !same;
    }
    CHECK(mismatches == 0);
  }
}

TEST_CASE("decode: limits of every float row are the specified ones", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->kind != Kind::floating) continue;
    INFO(f->name);
    REQUIRE(expected().count(f->name) == 1);
    const Expected& row = expected().at(f->name);
    CHECK(f->bits == row.e + row.m + (f->is_signed ? 1 : 0));
    CHECK(largest_value(*f) == row.max);
    CHECK(smallest_normal(*f) == row.min_normal);
    CHECK(smallest_value(*f) == row.min_positive);
  }
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

TEST_CASE("decode: finite values increase strictly in code order", "[fast]") {
  for (const char* name :
       {"float8_e4m3fn", "float8_e8m0fnu", "hfp8_e4m3_nosub", "dlfloat16", "float16", "bfloat16",
        "binary8p1se", "binary8p4ue", "binary15p7sf", "binary3p3uf", "e2m3+fnuz", "e1m2+finite"}) {
    INFO(name);
    const Format& f = find_format(name);
    for (std::uint64_t code = 0; code < f.largest_code(); ++code)
      REQUIRE(to_double(decode(f, code)) < to_double(decode(f, code + 1)));
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
}  // namespace numemu

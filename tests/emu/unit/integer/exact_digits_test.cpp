// Exact products by digits in AMX tiles against the Kulisch accumulator of neutral.exact.
#include "emu/unit/integer/exact_digits.hpp"

#include <cmath>
#include <limits>

#include "emu/unit/integer/block.hpp"
#include "emu/unit/integer/convert.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace exact_digits_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

bool available() { return has_amx() && has_byte_lookup(); }

enum class Outcome { equal, different, declined };

/// Compares with the reference, or where that would take long with the unit's other fast ways.
Outcome compare(const Problem& p, bool against_fast = false) {
  std::vector<float> got, expected;
  if (!multiply_exact_digits(p.gemm(got))) {
    const std::vector<float> untouched(got.size(), std::bit_cast<float>(0xdeadbeefu));
    return differing(got, untouched) == 0 ? Outcome::declined : Outcome::different;
  }
  const Gemm g = p.gemm(expected);
  against_fast ? find_unit("exact").multiply(g) : find_unit("exact").multiply_reference(g);
  return differing(got, expected) == 0 ? Outcome::equal : Outcome::different;
}

Outcome taken() { return available() ? Outcome::equal : Outcome::declined; }

std::vector<const Format*> small_formats() {
  std::vector<const Format*> formats;
  for (const Format* format : named_formats()) {
    if (format->bits <= 8) formats.push_back(format);
  }
  for (const char* name : {"e5m0", "e3m1b9+finite", "e6m1", "binary8p4se", "e4m4+unsigned+finite"})
    formats.push_back(&find_format(name));
  return formats;
}

}  // namespace

TEST_CASE("exact digits: every pair of small formats", "[fast]") {
  std::uint64_t seed = 1;
  int equal = 0;
  for (const Format* a : small_formats()) {
    for (const Format* b : small_formats()) {
      Problem p = make_matrices(a->name, b->name, 5, 19, 67, {seed % 2 == 0, seed % 3 == 0, true},
                                Fill::finite, seed);
      ++seed;
      INFO(a->name << " x " << b->name);
      const Outcome outcome = compare(p);
      CHECK(outcome != Outcome::different);
      equal += outcome == Outcome::equal;
      // NaN may be among the codes drawn; four digits hold every e4 format.
      const auto held = [](const Format* f) { return f->exponent_bits <= 4 && !f->has_nan(); };
      if (held(a) && held(b)) CHECK(outcome == taken());
    }
  }
  if (available()) CHECK(equal > 300);
}

TEST_CASE("exact digits: every code of a format meets every other", "[fast]") {
  for (const auto& [a, b] :
       std::vector<std::pair<const char*, const char*>>{{"float8_e4m3fn", "float8_e4m3fn"},
                                                        {"int8", "uint8"},
                                                        {"float8_e3m4", "int8"},
                                                        {"float4_e2m1fn", "float6_e2m3fn"}}) {
    Problem p;
    p.m = p.n = 256;
    p.k = 1;
    for (const auto& [name, data] :
         std::vector<std::pair<const char*, OperandData*>>{{a, &p.a}, {b, &p.b}}) {
      data->format = &find_format(name);
      data->gather = Gather::matrix(256, 1);
      for (int code = 0; code < 256; ++code) {
        const std::uint64_t magnitude = static_cast<std::uint64_t>(code) &
                                        ~data->format->sign_bit() & data->format->code_mask();
        const bool finite =
            data->format->kind == Kind::integer || magnitude <= data->format->largest_code();
        data->bytes.push_back(static_cast<std::uint8_t>(finite ? code : 1));
      }
    }
    CHECK(compare(p) == taken());
    p.c.assign(256 * 256, -0.0f);
    CHECK(compare(p) == taken());
    p.c.assign(256 * 256, 0x1p-149f);
    CHECK(compare(p) == taken());
  }
}

TEST_CASE("exact digits: lanes of whole cache lines", "[fast]") {
  std::uint64_t seed = 1;
  for (const std::int64_t k : {3, 64, 127, 170, 171, 600, 1100}) {
    for (const std::int64_t n : {64, 130}) {
      for (const bool with_c : {false, true}) {
        const Problem p = make_matrices("float8_e4m3fn", "float8_e4m3fn", 33, n, k,
                                        {seed % 3 == 0, true, with_c}, Fill::finite, seed);
        CHECK(compare(p) == taken());
        ++seed;
      }
    }
  }
}

TEST_CASE("exact digits: any C, with infinities, NaN and cancellation", "[fast]") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    Problem p = make_matrices("float8_e4m3fn", "float8_e4m3fn", 33, 31, 40, {}, Fill::finite, seed);
    Dice dice(seed);
    p.c.resize(33 * 31);
    std::vector<float> sums;
    find_unit("exact").multiply(p.gemm(sums));
    for (std::size_t i = 0; i < p.c.size(); ++i) {
      p.c[i] = any_float(dice);
      // Whole cancellation, and C just where the sum's bits end.
      if (i % 4 == 1) p.c[i] = -sums[i];
      if (i % 4 == 2)
        p.c[i] = std::ldexp(p.c[i] < 0 ? -1.0f : 1.5f, static_cast<int>(dice.below(90)) - 45);
    }
    CHECK(compare(p) == taken());
  }
}

TEST_CASE("exact digits: ties with C are broken by the last bit of the sum", "[fast]") {
  // a b = 2^-18 beside C = 2^30 (1 + 2^-23) + half a unit from another product: only an unbroken
  // sum of more than 53 bits shows which side of the tie it is on.
  Problem p;
  p.m = 1;
  p.n = 2;
  p.k = 2;
  p.a.format = p.b.format = &find_format("float8_e4m3fn");
  p.a.gather = Gather::matrix(1, 2);
  p.b.gather = Gather::matrix(2, 2);
  p.a.bytes = {0x01, 0x38};              // 2^-9, 1
  p.b.bytes = {0x01, 0x68, 0x81, 0x68};  // +-2^-9, 64
  for (const float c : {0x1.000002p30f, 0x1p30f, -0x1.000002p30f, -0x1p30f}) {
    p.c = {c, c};
    CHECK(compare(p) == taken());
  }
}

TEST_CASE("exact digits: zeros keep the sign that all of them agree on", "[fast]") {
  const auto all = [](std::uint8_t a, std::uint8_t b, float c, std::int64_t k) {
    Problem p;
    p.m = 3;
    p.n = 5;
    p.k = k;
    p.a.format = p.b.format = &find_format("float8_e4m3fn");
    p.a.gather = Gather::matrix(p.m, k);
    p.b.gather = Gather::matrix(p.n, k);
    p.a.bytes.assign(static_cast<std::size_t>(p.m * k + 1), a);
    p.b.bytes.assign(static_cast<std::size_t>(p.n * k + 1), b);
    p.c.assign(15, c);
    return p;
  };
  for (const std::uint8_t a : {0x00, 0x80, 0x38, 0xb8}) {
    for (const std::uint8_t b : {0x00, 0x80, 0x38, 0xb8}) {
      for (const float c : {0.0f, -0.0f, 1.0f}) {
        for (const std::int64_t k : {0, 1, 70}) {
          Problem p = all(a, b, c, k);
          CHECK(compare(p) == taken());
          if (k > 0) p.a.bytes[0] = 0x00;
          CHECK(compare(p) == taken());
          p.c.clear();
          CHECK(compare(p) == taken());
        }
      }
    }
  }
}

TEST_CASE("exact digits: one to four digits, and what is declined", "[fast]") {
  // Largest and smallest magnitudes of e5m2 that four digits still hold: 30 bits.
  Problem p = make_matrices("float8_e5m2", "int4", 20, 20, 50, {}, Fill::finite, 1);
  const auto clamp_exponents = [&](int lowest_field) {
    for (auto& code : p.a.bytes) {
      const int field = code >> 2 & 31;
      if (field < lowest_field) code = static_cast<std::uint8_t>((code & 0x83) | lowest_field << 2);
    }
  };
  CHECK(compare(p) == Outcome::declined);
  clamp_exponents(2);
  CHECK(compare(p) == Outcome::declined);
  clamp_exponents(3);
  CHECK(compare(p) == taken());
  clamp_exponents(12);
  CHECK(compare(p) == taken());
  p.a.bytes[7] = 0x7c;
  CHECK(compare(p) == Outcome::declined);
  p.a.bytes[7] = 0x7e;
  CHECK(compare(p) == Outcome::declined);
  // Padding with codes whose value is not zero.
  Problem scales =
      make_convolution("float8_e8m0fnu", "int4", {1, 4, 4, 1, 3, 1, 1, 1}, 2, Fill::finite, 2);
  for (auto& code : scales.a.bytes) code = 127;
  CHECK(compare(scales) == Outcome::declined);
  CHECK(compare(make_matrices("bfloat16", "int8", 3, 3, 3, {}, Fill::finite, 3)) ==
        Outcome::declined);
}

TEST_CASE("exact digits: shapes, gathers, slices and folds", "[fast]") {
  for (const std::int64_t k : {0, 1, 63, 64, 65, 1024, 1025, 2500}) {
    CHECK(compare(make_matrices("float8_e4m3fn", "int8", 33, 17, k, {true, false, true},
                                Fill::finite, 7),
                  true) == taken());
    CHECK(compare(make_matrices("float8_e4m3fn", "float8_e4m3fn", 1, 50, k, {false, true, false},
                                Fill::finite, 8),
                  true) == taken());
  }
  for (const char* format : {"float8_e4m3fn", "int8"}) {
    CHECK(compare(make_convolution(format, "float8_e4m3fn", {2, 9, 9, 3, 3, 1, 1, 1}, 7,
                                   Fill::finite, 9)) == taken());
    CHECK(compare(make_convolution(format, "float8_e4m3fn", {1, 8, 8, 20, 3, 2, 2, 1}, 40,
                                   Fill::finite, 10),
                  true) == taken());
  }
}

TEST_CASE("exact digits: planes are folded before they could wrap", "[fast]") {
  // 128 * 128 * 131072 = 2^31 in one plane; three digits of 0x7f7f7f-like values in the middle one.
  for (const char* format : {"int8", "float8_e4m3fn"}) {
    Problem p;
    p.m = 2;
    p.n = 3;
    p.k = format[0] == 'i' ? 300'000 : 65'536;
    p.a.format = p.b.format = &find_format(format);
    p.a.gather = Gather::matrix(p.m, p.k);
    p.b.gather = Gather::matrix(p.n, p.k);
    const std::uint8_t code = format[0] == 'i' ? 0x80 : 0x7e;
    p.a.bytes.assign(static_cast<std::size_t>(p.m * p.k), code);
    p.b.bytes.assign(static_cast<std::size_t>(p.n * p.k), code);
    // The smallest value, so that the others are not taken for multiples of a larger unit.
    p.a.bytes[0] = p.b.bytes[0] = 0x01;
    p.c = {1, 0.5f, -0.0f, 0x1p40f, 3, -7};
    CHECK(compare(p, true) == taken());
  }
}

}  // namespace exact_digits_test

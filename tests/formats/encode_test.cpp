// The reference encoder against the host, canonical codes, and its rules one by one.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::encode_test {
namespace {

using oracle::kDeterministic;
using oracle::kOverflows;

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Encoded encode_as(const char* format, double x, Overflow overflow = Overflow::saturate,
                  const char* rounding = "rne") {
  return encode(find_format(format), value_of(x), parse_rounding(rounding), overflow);
}

// IEEE conversions of the host in its four rounding directions; x86 and AArch64 flags differ in
// when they detect tininess, so only x86 compares underflow (after rounding, as here).
TEST_CASE("encode: float64 to float32 equals the host in four rounding directions", "[fast]") {
  const Format& f = find_format("float32");
  const std::pair<RoundingMode, int> modes[] = {{RoundingMode::rne, FE_TONEAREST},
                                                {RoundingMode::rtz, FE_TOWARDZERO},
                                                {RoundingMode::rup, FE_UPWARD},
                                                {RoundingMode::rdn, FE_DOWNWARD}};
  std::mt19937_64 random(64);
  int mismatches = 0;
  for (int i = 0; i < 200000; ++i) {
    // Exponents across the range of float32, half of them around its subnormals and its maximum.
    const int exponent = static_cast<int>(i % 4 == 0   ? -152 + random() % 30
                                          : i % 4 == 1 ? 124 + random() % 6
                                                       : random() % 300 - 150);
    // Few significand bits half of the time: then exact cases and ties occur.
    const std::uint64_t keep =
        (random() & 1) != 0 ? ~std::uint64_t{0} << (random() % 32 + 20) : ~std::uint64_t{0};
    const double significand = 1 + static_cast<double>(random() >> 12 & keep) * 0x1p-52;
    volatile double x = std::ldexp((random() & 1) != 0 ? significand : -significand, exponent);
    for (const auto& [mode, host_mode] : modes) {
      std::fesetround(host_mode);
      std::feclearexcept(FE_ALL_EXCEPT);
      volatile float y = static_cast<float>(x);
      const int raised = std::fetestexcept(FE_ALL_EXCEPT);
      std::fesetround(FE_TONEAREST);
      int want = ((raised & FE_INEXACT) != 0 ? kInexact : 0) |
                 ((raised & FE_OVERFLOW) != 0 ? kOverflow : 0);
      const Encoded got = encode(f, value_of(double{x}), {.mode = mode}, Overflow::ieee);
      int flags = got.flags;
#if defined(__x86_64__)
      want |= (raised & FE_UNDERFLOW) != 0 ? kUnderflow : 0;
#else
      flags &= ~kUnderflow;
#endif
      mismatches += got.code != std::bit_cast<std::uint32_t>(float{y}) || flags != want;
    }
  }
  CHECK(mismatches == 0);
}

TEST_CASE("encode: every code comes back from its value", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 16) continue;
    INFO(f->name);
    int mismatches = 0;
    for (std::uint64_t code = 0; code <= f->code_mask(); ++code) {
      const Value v = decode(*f, code);
      if (v.kind == Class::nan || (v.kind == Class::zero && f->name == "dlfloat16")) continue;
      for (const Overflow overflow : kOverflows) {
        if (v.kind == Class::infinite && overflow == Overflow::saturate) continue;
        const Encoded back = encode(*f, v, {}, overflow);
        mismatches += back.code != code || back.flags != 0;
      }
    }
    CHECK(mismatches == 0);
  }
}

TEST_CASE("encode: canonical codes of float8_e4m3fn and others", "[fast]") {
  CHECK(encode_as("float8_e4m3fn", 448).code == 0x7e);
  CHECK(encode_as("float8_e4m3fn", 464).code ==
        0x7e);  // the tie between 448 and the reserved 480 goes to even
  CHECK(encode_as("float8_e4m3fn", 464).flags == kInexact);
  CHECK(encode_as("float8_e4m3fn", 465).flags == (kInexact | kOverflow));
  CHECK(encode_as("float8_e4m3fn", 465, Overflow::ieee).code == 0x7f);
  CHECK(encode_as("float8_e4m3fn", -465, Overflow::ieee).code == 0xff);
  CHECK(encode_as("float8_e4m3fn", kInf, Overflow::propagate).code == 0x7e);
  CHECK(encode_as("float8_e4m3fn", kNan).code == 0x7f);
  CHECK(encode_as("float8_e4m3fn", -kNan).code == 0xff);
  CHECK(encode_as("float8_e5m2", kNan).code == 0x7e);
  CHECK(encode_as("float8_e5m2", kInf, Overflow::propagate).code == 0x7c);
  CHECK(encode_as("float8_e5m2", kInf, Overflow::saturate).code == 0x7b);
  CHECK(encode_as("float8_e4m3fnuz", kNan).code == 0x80);
  CHECK(encode_as("float8_e4m3fnuz", -1e-9).code == 0);
  CHECK(encode_as("float8_e4m3fn", -1e-9).code == 0x80);
  CHECK(encode_as("float8_e4m3fn", 0.0017).code == 1);  // subnormal unit 2^-9
  CHECK(encode_as("float32", kNan).code == 0x7fc00000);
  CHECK(encode_as("dlfloat16", kInf, Overflow::propagate).code == 0x7fff);
  CHECK(encode_as("dlfloat16", -0.0).code == 0);
}

TEST_CASE("encode: a signalling NaN raises NV and becomes the quiet one, quiet NaN raises nothing",
          "[fast]") {
  struct Case {
    const char* from;
    std::uint64_t signalling, quiet;
  };
  for (const auto& [from, signalling, quiet] : {Case{"float16", 0x7c01, 0x7e01},
                                                {"bfloat16", 0x7fbf, 0x7fff},
                                                {"float32", 0xff800001, 0xffc00001},
                                                {"float64", 0x7ff7ffffffffffff, 0x7fffffffffffffff},
                                                {"e6m5+ieee", 0x7e1, 0x7f0},
                                                {"e5m2", 0x7d, 0x7f},
                                                {"tfloat32", 0x3fc01, 0x3fe01}}) {
    const Format& f = find_format(from);
    INFO(f.name);
    for (const char* to : {"float32", "float8_e4m3fn", "bfloat16", "e5m3"}) {
      const auto flags = [&](std::uint64_t code) {
        return encode(find_format(to), decode(f, code), {}, Overflow::ieee).flags;
      };
      REQUIRE(decode(f, signalling).kind == Class::nan);
      CHECK(flags(signalling) == kInvalid);
      CHECK(flags(quiet) == 0);
      CHECK(flags(f.nan_code()) == 0);
    }
    CHECK(encode(f, decode(f, signalling), {}, Overflow::ieee).code ==
          f.nan_code((signalling & f.sign_bit()) != 0));
  }
  // One NaN per sign, or a single one, cannot show signalling; nor can one of two bits.
  for (const char* from : {"float8_e4m3fn", "float8_e4m3fnuz", "dlfloat16", "float8_e8m0fnu",
                           "binary8p3se", "binary8p3uf", "e4m1+ieee"}) {
    const Format& f = find_format(from);
    INFO(f.name);
    for (std::uint64_t code = 0; code <= f.last_code(); ++code) {
      if (decode(f, code).kind != Class::nan) continue;
      CHECK(encode(find_format("float32"), decode(f, code), {}, Overflow::ieee).flags == 0);
    }
  }
}

TEST_CASE("encode: formats without NaN or sign follow their rules in every overflow mode",
          "[fast]") {
  for (const Overflow overflow : kOverflows) {
    const Encoded nan = encode_as("float4_e2m1fn", -kNan, overflow);
    CHECK((nan.code == 7 && nan.flags == kInvalid));
    CHECK(encode_as("float4_e2m1fn", 100, overflow).code == 7);
    CHECK(encode_as("int8", kNan, overflow).code == 127);
    CHECK(encode_as("int8", -1000, overflow).code == 0x80);
    CHECK(encode_as("uint8", kNan, overflow).code == 255);
    for (const double x : {-1.0, -kInf}) {
      const Encoded integer = encode_as("uint8", x, overflow),
                    scale = encode_as("float8_e8m0fnu", x, overflow);
      CHECK((integer.code == 0 && integer.flags == kInvalid));
      CHECK((scale.code == 0xff && scale.flags == kInvalid));
    }
    CHECK(encode_as("uint8", -0.5, overflow).code == 0);
    CHECK(encode_as("uint8", -0.5, overflow).flags == kInexact);
    CHECK(encode_as("uint8", -0.0, overflow).flags == 0);
    CHECK(encode_as("binary8p4ue", -0.25, overflow).code == 0xff);
    CHECK(encode_as("binary8p4ue", -1e-30, overflow).code == 0);
    CHECK(encode_as("float8_e8m0fnu", -1e-60, overflow).code == 0xff);
  }
}

TEST_CASE("encode: e8m0 has no zero and clamps below 2^-127", "[fast]") {
  CHECK(encode_as("float8_e8m0fnu", 0.0).code == 0);
  CHECK(encode_as("float8_e8m0fnu", 0x1p-149).code == 0);
  CHECK(encode_as("float8_e8m0fnu", 0x1p-149, Overflow::saturate, "rup").code == 0);
  CHECK(encode_as("float8_e8m0fnu", 0x1p-127).flags == 0);
  CHECK(encode_as("float8_e8m0fnu", 0x1.4p-127).code == 0);
  CHECK(encode_as("float8_e8m0fnu", 0x1.8p-127).code == 0);  // the tie goes to the even code
  CHECK(encode_as("float8_e8m0fnu", 0x1.800002p-127).code == 1);
  CHECK(encode_as("float8_e8m0fnu", 0x1.8p-126).code == 2);
  CHECK(encode_as("float8_e8m0fnu", 0x1.7fffffp-127, Overflow::saturate, "rup").code == 1);
}

TEST_CASE("encode: no double rounding from float64", "[fast]") {
  // Just above a tie of the target, so close that a first rounding to float32 (or float16) would
  // land on the tie.
  CHECK(encode_as("float8_e4m3fn", 1.0625 + 0x1p-40).code == 0x39);
  CHECK(encode_as("float8_e4m3fn", 1.0625).code == 0x38);
  CHECK(encode_as("float16", 1 + 0x1p-11 + 0x1p-50).code == 0x3c01);
  CHECK(encode_as("bfloat16", 1 + 0x1p-8 + 0x1p-50).code == 0x3f81);
  CHECK(encode_as("float4_e2m1fn", 0.25 + 0x1p-54).code == 1);
}

TEST_CASE("encode: a sticky bit breaks ties and keeps flags", "[fast]") {
  const Format& f = find_format("float8_e4m3fn");
  Value tie{Class::finite, false, false, -60,
            std::uint64_t{17} << 56};  // 17/16, between 1 and 1.125
  CHECK(encode(f, tie, {}, Overflow::saturate).code == 0x38);
  tie.sticky = true;
  CHECK(encode(f, tie, {}, Overflow::saturate).code == 0x39);
  const Value above_one{Class::finite, false, true, -60, std::uint64_t{1} << 60};
  CHECK(encode(f, above_one, {}, Overflow::saturate).flags == kInexact);
  CHECK(encode(f, above_one, {.mode = RoundingMode::rup}, Overflow::saturate).code == 0x39);
}

TEST_CASE("encode: flushing happens after rounding and is an underflow", "[fast]") {
  const Format &flushed = find_format("e4m3+ftz"), &gradual = find_format("float8_e4m3");
  for (const RoundingMode mode : kDeterministic) {
    for (const oracle::Input& x : oracle::probes(oracle::RationalCodec("float8_e4m3"))) {
      const Encoded want = encode(gradual, x.value(), {.mode = mode}, Overflow::ieee);
      const Encoded got = encode(flushed, x.value(), {.mode = mode}, Overflow::ieee);
      const bool subnormal = (want.code & 0x78) == 0 && (want.code & 7) != 0;
      REQUIRE(got.code == (subnormal ? want.code & 0x80 : want.code));
      if (subnormal) REQUIRE(got.flags == (kInexact | kUnderflow));
    }
  }
}

TEST_CASE("encode: extreme exponents neither overflow the arithmetic nor loop", "[fast]") {
  for (const char* name : {"float64", "float8_e8m0fnu", "int8", "e15m23+finite", "dlfloat16"}) {
    const Format& f = find_format(name);
    for (const std::uint64_t significand : {std::uint64_t{1}, ~std::uint64_t{0}}) {
      const Value huge{Class::finite, false, false, std::numeric_limits<std::int32_t>::max(),
                       significand};
      CHECK(encode(f, huge, {}, Overflow::saturate).code == f.largest_code());
      const Value tiny{Class::finite, false, true, std::numeric_limits<std::int32_t>::min(),
                       significand};
      CHECK(encode(f, tiny, {}, Overflow::saturate).code == 0);
    }
  }
}

TEST_CASE("encode: the nearest float32 equals the host's, and NaN keeps its sign", "[fast]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    // Exponents of float32, its subnormal numbers and beyond both ends.
    const double x =
        std::ldexp(static_cast<double>(random() | 1), static_cast<int>(random() % 300) - 214);
    for (const double y : {x, -x})
      REQUIRE(std::bit_cast<std::uint32_t>(nearest_float(value_of(y))) ==
              std::bit_cast<std::uint32_t>(static_cast<float>(y)));
  }
  CHECK(nearest_float(value_of(kInf)) == std::numeric_limits<float>::infinity());
  CHECK(nearest_float(value_of(-kInf)) == -std::numeric_limits<float>::infinity());
  CHECK(std::bit_cast<std::uint32_t>(nearest_float(value_of(kNan))) == 0x7fc00000);
  CHECK(std::bit_cast<std::uint32_t>(nearest_float(value_of(std::copysign(kNan, -1.0)))) ==
        0xffc00000);
  CHECK(std::bit_cast<std::uint32_t>(nearest_float(value_of(-0.0))) == 0x80000000);
}

}  // namespace
}  // namespace numemu::encode_test

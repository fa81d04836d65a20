// Elements under a given scale against exact fractions, and the special blocks by hand.
#include "formats/blocks/block_convert.hpp"

#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/formats/blocks/block_oracle.hpp"

namespace block_convert_test {

using namespace numemu;
using Catch::Contains;
using oracle::Fraction;

namespace {

constexpr RoundingMode kModes[] = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                   RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd};

Conversion conversion_of(const BlockFormat& f, RoundingMode mode = RoundingMode::rne) {
  Conversion c;
  c.format = f.element;
  c.rounding.mode = mode;
  return c;
}

Fraction scale_fraction(const BlockFormat& f, std::uint64_t code, float t) {
  return oracle::fraction(to_double(decode(*f.scale, code))) *
         (f.tensor_scale ? oracle::fraction(t) : 1);
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Numbers whose quotients by `scale` are elements, midpoints, their neighbours, or anything.
std::vector<float> probes(const std::vector<oracle::Element>& list, const Fraction& scale) {
  std::vector<float> out = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 1e-45f, 3e38f};
  const auto around = [&](const Fraction& x) {
    const float f = oracle::nearest_float(x * scale);
    if (!std::isfinite(f)) return;
    for (const float y : {f, std::nextafter(f, -HUGE_VALF), std::nextafter(f, HUGE_VALF)})
      if (std::isfinite(y)) out.push_back(y);
  };
  const std::size_t step = std::max<std::size_t>(1, list.size() / 40);
  for (std::size_t i = 0; i + 1 < list.size(); i += step) {
    around(list[i].value);
    around((list[i].value + list[i + 1].value) / 2);
  }
  around(list.back().value);
  around(list.back().value * 3 / 2);
  return out;
}

}  // namespace

TEST_CASE("elements are the exact quotient rounded once, in every mode", "[fast]") {
  struct Case {
    const char* format;
    std::uint64_t scale;
    float t;
  };
  const Case cases[] = {
      {"mxfp4", 127, 1},
      {"mxfp4", 0, 1},
      {"mxfp4", 254, 1},
      {"mxfp6_e2m3", 120, 1},
      {"mxfp6_e3m2", 130, 1},
      {"mxfp8_e4m3", 100, 1},
      {"mxfp8_e5m2", 127, 1},
      {"mxint8", 127, 1},
      {"mxint8", 3, 1},
      {"bfp(4,16)", 128, 1},
      {"nvfp4", 0x38, 1},
      {"nvfp4", 0x35, 0.3f},
      {"nvfp4", 0x01, 1e-3f},
      {"nvfp4", 0x7e, 0x1.6p-126f},
      {"group(int4,128,float16)", 0x3555, 1},
      {"group(int8,32,float32)", 0x3dcccccd, 1},
      {"group(uint4,32,bfloat16)", 0x3e2b, 1},
      {"group(e4m3fn,128,float32)", 0x3b4ccccd, 1},
  };
  for (const Case& one : cases) {
    const BlockFormat& f = find_block_format(one.format);
    const Fraction scale = scale_fraction(f, one.scale, one.t);
    const BlockScale block = block_scale(f, {one.scale, 0}, one.t);
    for (const bool symmetric : {true, false}) {
      const auto list = oracle::elements_of(*f.element, f.element_exponent, symmetric);
      const std::vector<float> numbers = probes(list, scale);
      for (const RoundingMode mode : kModes) {
        Conversion c = conversion_of(f, mode);
        c.symmetric = symmetric;
        for (const float x : numbers) {
          CAPTURE(f.name, one.scale, one.t, symmetric, static_cast<int>(mode), x);
          const Encoded got = encode_in_block(f, c, block, x, 0);
          if (std::isinf(x)) {
            const bool refused = x < 0 && !f.element->is_signed;
            CHECK(got.flags == (refused ? kInvalid : kOverflow | kInexact));
            continue;
          }
          const Fraction q = oracle::fraction(x) / scale;
          oracle::Element want = oracle::rounded(list, q, mode);
          if (want.value == 0 && std::signbit(x) && f.element->has_negative_zero())
            want.code |= f.element->sign_bit();
          REQUIRE(got.code == want.code);
          REQUIRE(((got.flags & kInexact) != 0) == (want.value != q && !(got.flags & kInvalid)));
          const float y = decode_in_block(f, block, got.code);
          REQUIRE(bits(y) ==
                  bits(want.value == 0
                           ? std::copysign(0.0f, f.element->has_negative_zero() ? x : 0.0f)
                           : oracle::nearest_float(want.value * scale)));
        }
      }
    }
  }
}

namespace {

void decode_every_code(int scales) {
  const RandomSource random{.seed = 11};
  for (const char* name : {"mxfp4", "mxfp8_e5m2", "mxint8", "nvfp4", "group(int8,32,float32)",
                           "group(int4,32,float16)", "bfp(8,32)"}) {
    const BlockFormat& f = find_block_format(name);
    for (int k = 0; k < scales; ++k) {
      const std::uint64_t scale =
          k == 0 ? f.scale->largest_code()
                 : random.bits(static_cast<std::uint64_t>(k), 32) % (f.scale->largest_code() + 1);
      const float t =
          k == 1 ? 0x1p-126f : static_cast<float>(random.uniform(1000u + static_cast<unsigned>(k)));
      const BlockScale block = block_scale(f, {scale, 0}, t);
      for (std::uint64_t code = 0; code <= f.element->code_mask(); ++code) {
        const Value v = decode(*f.element, code);
        if (v.kind != Class::finite) continue;
        const Fraction exact = oracle::fraction(to_double(v)) *
                               oracle::power_of_two(f.element_exponent) *
                               scale_fraction(f, scale, t);
        CAPTURE(name, scale, t, code);
        const float want = exact == 0 ? std::copysign(0.0f, v.negative ? -1.0f : 1.0f)
                                      : oracle::nearest_float(exact);
        REQUIRE(bits(decode_in_block(f, block, code)) == bits(want));
      }
    }
  }
}

void shift_codes(std::uint64_t numbers) {
  std::vector<oracle::Element> whole;
  for (std::int64_t i = -600; i <= 600; ++i)
    whole.push_back({Fraction(i), static_cast<std::uint64_t>(i + 600)});
  const RandomSource random{.seed = 3};
  for (const char* name : {"group(uint4,32,float32,zp)", "group(int8,32,float32,zp)"}) {
    const BlockFormat& f = find_block_format(name);
    const std::int64_t low = f.element->is_signed ? -128 : 0,
                       high = f.element->is_signed ? 127 : 15;
    for (std::uint64_t k = 0; k < numbers; ++k) {
      const float s = static_cast<float>(random.uniform(3 * k)) + 0.01f;
      const std::int64_t z = low + random.bits(3 * k + 1, 16) % (high - low + 1);
      // Often on a tie: (j + 1/2) s is exact for these s.
      const float step = std::bit_cast<float>(bits(s) & 0xffff0000);
      const auto j = static_cast<float>(static_cast<int>(random.bits(3 * k + 2, 9)) - 256);
      const float x = k % 2 == 0 ? (j + 0.5f) * step : j * s * 1.01f;
      const float scale = k % 2 == 0 ? step : s;
      const BlockScale block = block_scale(
          f, {bits(scale), static_cast<std::uint32_t>(z) & (f.element->is_signed ? 0xffu : 0xfu)},
          1);
      REQUIRE(block.zero == z);
      const Fraction q = oracle::fraction(x) / oracle::fraction(scale);
      for (const RoundingMode mode : kModes) {
        const auto n = static_cast<std::int64_t>(oracle::rounded(whole, q, mode).code) - 600 + z;
        const std::int64_t want = std::clamp(n, low, high);
        const Encoded got = encode_in_block(f, conversion_of(f, mode), block, x, 0);
        CAPTURE(name, x, scale, z, static_cast<int>(mode));
        REQUIRE(got.code == (static_cast<std::uint64_t>(want) & f.element->code_mask()));
        REQUIRE(((got.flags & kOverflow) != 0) == (n != want));
        REQUIRE(bits(decode_in_block(f, block, got.code)) ==
                bits(want == z
                         ? 0.0f
                         : oracle::nearest_float(Fraction(want - z) * oracle::fraction(scale))));
      }
    }
  }
}

void add_minima(std::uint64_t numbers) {
  const BlockFormat& f = find_block_format("group(uint4,32,float32,min)");
  const RandomSource random{.seed = 4};
  const auto list = oracle::elements_of(*f.element, 0, true);
  for (std::uint64_t k = 0; k < numbers; ++k) {
    const float s =
        static_cast<float>(std::ldexp(1 + random.uniform(3 * k), static_cast<int>(k % 90) - 60));
    const float m = static_cast<float>((random.uniform(3 * k + 1) - 0.5) *
                                       std::ldexp(1.0, static_cast<int>(k % 61) - 30));
    const float x = k % 3 == 0 ? m : m + s * static_cast<float>(random.uniform(3 * k + 2) * 17);
    if (x < m) continue;
    const BlockScale block = block_scale(f, {bits(s), bits(m)}, 1);
    const Fraction q = (oracle::fraction(x) - oracle::fraction(m)) / oracle::fraction(s);
    for (const RoundingMode mode : kModes) {
      const oracle::Element want = oracle::rounded(list, q, mode);
      const Encoded got = encode_in_block(f, conversion_of(f, mode), block, x, 0);
      CAPTURE(x, s, m, static_cast<int>(mode));
      REQUIRE(got.code == want.code);
      const Fraction exact = want.value * oracle::fraction(s) + oracle::fraction(m);
      REQUIRE(bits(decode_in_block(f, block, got.code)) ==
              bits(exact == 0 ? 0.0f : oracle::nearest_float(exact)));
    }
  }
}

}  // namespace

TEST_CASE("every code decodes to the nearest float32 of element times scale", "[fast]") {
  decode_every_code(15);
}

TEST_CASE("zero points shift the codes and saturate", "[fast]") { shift_codes(1000); }

TEST_CASE("minima are added back exactly with one rounding", "[fast]") { add_minima(1500); }

TEST_CASE("elements under many scales, zero points and minima", "[slow]") {
  decode_every_code(60);
  shift_codes(4000);
  add_minima(6000);
}

TEST_CASE("a stochastic quotient of a difference goes up for the counted words", "[fast]") {
  // (x - m) / s = 2^60 + 1 over 2^60: sr(n) sees d = 2^-60, and only c's tie rules round it off.
  const BlockFormat& f = find_block_format("group(uint4,32,float32,min)");
  Conversion c = conversion_of(f);
  c.rounding = parse_rounding("sr(4,a)");
  const BlockScale block = block_scale(f, {bits(1.0f), bits(-0x1p-60f)}, 1);
  for (std::uint32_t r = 0; r < 16; ++r) {
    c.random_words = &r;
    CHECK(encode_in_block(f, c, block, 1.0f, 0).code == 1);
    CHECK(encode_in_block(f, c, block, 1.5f, 0).code == (r >= 8 ? 2u : 1u));
    CHECK((encode_in_block(f, c, block, 1.0f, 0).flags & kInexact) != 0);
  }
}

TEST_CASE("zero points lie where the least element needs them", "[fast]") {
  const BlockFormat& u = find_block_format("group(uint4,32,float32,zp)");
  const BlockFormat& s = find_block_format("group(int8,32,float32,zp)");
  const Value one = value_of(1.0f);
  CHECK(zero_point(u, one, 0.0f) == 0);
  CHECK(zero_point(u, one, -3.0f) == 3);
  CHECK(zero_point(u, one, -3.5f) == 4);
  CHECK(zero_point(u, one, -2.5f) == 2);
  CHECK(zero_point(u, one, -100.0f) == 15);
  CHECK(zero_point(s, one, 0.0f) == 0x80);
  CHECK(zero_point(s, one, -128.0f) == 0);
  CHECK(zero_point(s, one, -255.0f) == 0x7f);
}

TEST_CASE("NaN blocks decode to NaN and their elements are zero", "[fast]") {
  for (const char* name : {"mxfp4", "mxint8", "nvfp4", "group(int4,32,float16)",
                           "group(int4,32,float32,zp)", "group(uint4,32,bfloat16,min)"}) {
    const BlockFormat& f = find_block_format(name);
    const BlockScale block = block_scale(f, nan_scale(f), 1);
    for (const float x : {1.0f, -2.0f, std::nanf(""), HUGE_VALF}) {
      const Encoded got = encode_in_block(f, conversion_of(f), block, x, 0);
      CHECK(got.code == 0);
      CHECK(got.flags == 0);
    }
    CHECK(bits(decode_in_block(f, block, 0)) == 0x7fc00000);
    CHECK(bits(decode_in_block(f, block, 1)) == 0x7fc00000);
  }
  CHECK(nan_scale(find_block_format("mxfp4")).scale == 0xff);
  CHECK(nan_scale(find_block_format("nvfp4")).scale == 0x7f);
  CHECK_THROWS_WITH(nan_scale(find_block_format("group(int4,32,hfp8_e4m3)")),
                    Contains("hfp8_e4m3") && Contains("has no NaN"));
}

TEST_CASE("arrays are decoded by block and hostile codes are refused", "[fast]") {
  const BlockFormat& f = find_block_format("mx(e2m1,2)");
  const BlockLayout layout = block_layout(f, {2, 3}, -1);
  const std::uint8_t codes[6] = {1, 2, 3, 4, 5, 15};
  std::uint8_t scales[4] = {127, 128, 126, 255};
  float y[6];
  dequantize_blocks(f, layout, {codes, scales, nullptr, 1}, y);
  const float want[5] = {0.5f, 1, 3, 1, 1.5f};
  for (int i = 0; i < 5; ++i) CHECK(y[i] == want[i]);
  CHECK(bits(y[5]) == 0x7fc00000);
  const std::uint8_t wide[6] = {1, 2, 3, 16, 5, 17};
  CHECK_THROWS_WITH(dequantize_blocks(f, layout, {wide, scales, nullptr, 1}, y),
                    Contains("codes: element 3 is 16, expected at most 15 for float4_e2m1fn"));
  const BlockFormat& zp = find_block_format("group(uint4,2,float16,zp)");
  const std::uint16_t halves[4] = {0x3c00, 0x3c00, 0x3c00, 0x3c00};
  const std::uint8_t zeros[4] = {1, 2, 3, 77};
  CHECK_THROWS_WITH(dequantize_blocks(zp, layout, {codes, halves, zeros, 1}, y),
                    Contains("zero points: element 3 is 77"));
}

namespace {

/// The message of dequantizing one block of two zeros under that scale.
template <class Code>
std::string refusal(const char* name, Code scale, float tensor_scale = 1, float minimum = 0) {
  const BlockFormat& f = find_block_format(name);
  const std::uint8_t codes[4] = {};
  const Encoded one = encode(*f.scale, value_of(1.0f), {}, Overflow::saturate);
  const Code scales[2] = {static_cast<Code>(one.code), scale};
  const float minima[2] = {0, minimum};
  const std::uint8_t zeros[2] = {};
  const void* shifts = f.affine == Affine::min ? static_cast<const void*>(minima) : zeros;
  float y[4];
  return numemu::test::message_of([&] {
    dequantize_blocks(f, block_layout(f, {2, 2}, -1), {codes, scales, shifts, tensor_scale}, y);
  });
}

}  // namespace

TEST_CASE("scales that no quantizer stores are refused", "[fast]") {
  // NVFP4: zero and the NaN code are the only unusual scales.
  CHECK(refusal<std::uint8_t>("nvfp4", 0x7f).empty());
  CHECK(refusal<std::uint8_t>("nvfp4", 0x00).empty());
  CHECK(refusal<std::uint8_t>("nvfp4", 0xb0) ==
        "scales: element 1 is -0.5 (code 0xb0), expected a scale of float8_e4m3fn that is positive "
        "or 0");
  CHECK_THAT(refusal<std::uint8_t>("nvfp4", 0x80), Contains("element 1 is -0 (code 0x80)"));
  CHECK_THAT(refusal<std::uint8_t>("nvfp4", 0xff), Contains("element 1 is NaN (code 0xff)"));
  CHECK(refusal<std::uint8_t>("mxfp4", 0xff).empty());
  for (const char* name :
       {"group(int4,2,float32)", "group(uint4,2,float32,zp)", "group(uint4,2,float32,min)"}) {
    CAPTURE(name);
    CHECK(refusal<std::uint32_t>(name, 0x7fc00000).empty());
    CHECK(refusal<std::uint32_t>(name, bits(0x1p-149f)).empty());
    CHECK_THAT(refusal<std::uint32_t>(name, 0x7fc00001), Contains("element 1 is NaN"));
    CHECK_THAT(refusal<std::uint32_t>(name, 0xffc00000), Contains("element 1 is NaN"));
    CHECK_THAT(refusal<std::uint32_t>(name, 0x7f800000), Contains("element 1 is Inf"));
    CHECK_THAT(refusal<std::uint32_t>(name, bits(-2.0f)), Contains("element 1 is -2"));
    CHECK_THAT(refusal<std::uint32_t>(name, bits(0.0f)),
               Contains("element 1 is 0 (code 0x0), expected a scale of float32 above 0"));
    CHECK_THAT(refusal<std::uint32_t>(name, bits(-0.0f)), Contains("element 1 is -0"));
  }
  CHECK_THAT(refusal<std::uint16_t>("group(int4,2,float16)", 0x7c00), Contains("is Inf"));
}

TEST_CASE("tensor scales and minima must be numbers", "[fast]") {
  CHECK(refusal<std::uint8_t>("nvfp4", 0x38, 0x1p-126f).empty());
  CHECK(refusal<std::uint8_t>("nvfp4", 0x38, std::nanf("")) ==
        "tensor scale: element 0 is NaN, expected a finite number above 0");
  CHECK_THAT(refusal<std::uint8_t>("nvfp4", 0x38, 0), Contains("element 0 is 0,"));
  CHECK_THAT(refusal<std::uint8_t>("nvfp4", 0x38, -1), Contains("element 0 is -1,"));
  CHECK_THAT(refusal<std::uint8_t>("nvfp4", 0x38, HUGE_VALF), Contains("element 0 is Inf,"));
  const char* min = "group(uint4,2,float32,min)";
  CHECK(refusal<std::uint32_t>(min, bits(1.0f), 1, -5).empty());
  CHECK(refusal<std::uint32_t>(min, bits(1.0f), 1, std::nanf("")) ==
        "zero points: element 1 is NaN, expected a finite minimum");
  CHECK_THAT(refusal<std::uint32_t>(min, bits(1.0f), 1, -HUGE_VALF), Contains("element 1 is -Inf"));
}

}  // namespace block_convert_test

// Quotients rounded to odd: against exact integers, and when they are declined.
#include "formats/simd/quantize_odd.hpp"

#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/simd/quantize_fast.hpp"
#include "formats/value.hpp"
#include "tests/catch.hpp"

namespace numemu::quantize_odd_test {
namespace {

[[gnu::noinline]] bool divide(const std::vector<float>& x, float scale, std::vector<float>& q) {
  const FloatGuard guard(HostRounding::toward_zero);
  return odd_quotients(x.data(), static_cast<std::int64_t>(x.size()), scale, q.data());
}

// The exact quotient under the reference's own rounding to odd.
float odd_quotient(float x, float scale) {
  static const Format& float32 = find_format("float32");
  const Value exact = exact_quotient(value_of(x), value_of(scale));
  const Encoded e = encode(float32, exact, {.mode = RoundingMode::rodd}, Overflow::saturate);
  return std::bit_cast<float>(static_cast<std::uint32_t>(e.code));
}

TEST_CASE("odd quotients: by float64 for all elements and divisors", "[fast]") {
  std::mt19937_64 random(6);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (int round = 0; round < 300; ++round) {
      const float scale = std::bit_cast<float>(
          static_cast<std::uint32_t>(1 + random() % 0x7f7fffff));  // subnormal ones too
      std::vector<float> x(61), q(61);
      for (float& e : x) {
        e = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7f800000));
        if (random() % 3 == 0) e = scale * static_cast<float>(random() % 64);
        if (random() % 2 == 0) e = -e;
        if (!std::isfinite(e)) e = -0.0F;
      }
      {
        const FloatGuard guard(HostRounding::toward_zero);
        odd_quotients_wide(x.data(), std::ssize(x), scale, q.data());
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO(hwy::TargetName(target) << " " << x[i] << " / " << scale);
        CHECK(std::bit_cast<std::uint32_t>(q[i]) ==
              std::bit_cast<std::uint32_t>(odd_quotient(x[i], scale)));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("odd quotients: equal the exact quotient rounded to odd", "[fast]") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> significand(1, 2);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (int round = 0; round < 300; ++round) {
      const bool power = round % 2 == 0 || !has_fused_multiply_add();
      const float scale =
          std::ldexp(power ? 1.0F : significand(random), static_cast<int>(random() % 252) - 126);
      std::vector<float> x(61), q(61);
      for (float& e : x) {
        const int exponent = static_cast<int>(random() % 220) - 102;
        e = std::ldexp(random() % 4 == 0 ? 1.5F : significand(random), exponent);
        // Exact quotients too.
        if (random() % 3 == 0) e = scale * static_cast<float>(random() % 64);
        if (e != 0 && (e < 0x1p-102F || !(e < HUGE_VALF))) e = 1;
        if (static_cast<double>(e) / scale >= 0x1p127) e = 0;
        if (random() % 2 == 0) e = -e;
      }
      REQUIRE(divide(x, scale, q));
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO(hwy::TargetName(target) << " " << x[i] << " / " << scale);
        CHECK(std::bit_cast<std::uint32_t>(q[i]) ==
              std::bit_cast<std::uint32_t>(odd_quotient(x[i], scale)));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("odd quotients: elements and quotients that are too small or too large are declined",
          "[fast]") {
  std::vector<float> q(20);
  for (const std::size_t at : {0U, 7U, 19U}) {
    std::vector<float> x(20, 1.0F);
    CHECK(divide(x, 0.5F, q));
    x[at] = -0x1p-102F;
    CHECK(divide(x, 0.5F, q));
    x[at] = 0x1.fffffep-103F;
    CHECK_FALSE(divide(x, 0.5F, q));
    x[at] = 0x1.fffffep125F;
    CHECK(divide(x, 0.5F, q));
    x[at] = -0x1p126F;
    CHECK_FALSE(divide(x, 0.5F, q));
    CHECK_FALSE(divide(x, 0x1p-100F, q));
  }
}

TEST_CASE("odd quotients: serve what 24 bits tell of", "[fast]") {
  const auto serves = [](const char* format, const char* rounding, float scale) {
    return OddQuotients::make(
               {.format = &find_format(format), .rounding = parse_rounding(rounding)}, scale)
        .has_value();
  };
  const bool fused = has_fused_multiply_add();
  for (const char* format : {"float8_e5m2", "float8_e4m3fn", "int8", "float16", "bfloat16"})
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)"}) {
      CHECK(serves(format, rounding, 0.3F) == fused);
      CHECK(serves(format, rounding, 0.25F));
    }
  CHECK(serves("float8_e4m3fn", "sr(18)", 0.3F) == fused);
  CHECK_FALSE(serves("float8_e4m3fn", "sr(19)", 0.3F));
  CHECK(serves("float8_e4m3fn", "sr(19)", 0.25F));
  CHECK_FALSE(serves("bfloat16", "sr(19)", 0.25F));  // its subnormal numbers are float32's
  CHECK(serves("bfloat16", "sr(19)", 1));
  CHECK_FALSE(serves("e3m0+finite", "rne", 1));
  CHECK_FALSE(serves("float8_e4m3fn", "rne", 0x1p-130F));
}

}  // namespace
}  // namespace numemu::quantize_odd_test

// Every rounding mode, overflow mode and kind of data of quantize_codes and quantize_values against
// their references, on every instruction set.
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/quantize_fast.hpp"
#include "tests/catch.hpp"

namespace numemu::quantize_rounding_test {
namespace {

constexpr const char* kRoundings[] = {
    "rne",    "rna",      "rtz",     "rup",       "rdn",        "rodd",   "sr(1)",      "sr(2,odd)",
    "sr(8)",  "sr(8,a)",  "sr(8,b)", "sr(8,odd)", "sr(11)",     "sr(14)", "sr(16,odd)", "sr(18)",
    "sr(19)", "sr(20,b)", "sr(23)",  "sr(23,a)",  "sr(24,odd)", "sr(32)", "sr(32,odd)", "sr(32,b)"};

std::vector<const Format*> formats() {
  std::vector<const Format*> list;
  for (const Format* f : named_formats())
    if (f->bits <= 16) list.push_back(f);
  for (const char* name : {"binary8p1se",
                           "binary8p3sf",
                           "binary6p1uf",
                           "binary8p8ue",
                           "binary15p5se",
                           "e3m0+finite",
                           "e2m3+nosub",
                           "e4m3+ftz",
                           "e5m10+ftz",
                           "e1m6+finite",
                           "e1m14",
                           "e8m7+ftz",
                           "e4m3b40+nan1+nosub",
                           "e3m12",
                           "e1m7+finite+unsigned",
                           "e10m5b500",
                           "e5m10b300",
                           "int9",
                           "int12",
                           "int16",
                           "uint10",
                           "uint16",
                           "e8m0+finite+unsigned"})
    list.push_back(&find_format(name));
  return list;
}

enum class Data { between, normal, wide, patterns, special };
constexpr Data kAllData[] = {Data::between, Data::normal, Data::wide, Data::patterns,
                             Data::special};

// A finite value of the format, in the range of float32.
double some_value(const Format& f, std::mt19937_64& random) {
  const Value v = decode(f, random() & f.code_mask());
  constexpr int kFar = 1000;
  if (v.kind != Class::finite || std::abs(v.exponent) > kFar) return 0;
  return to_double(v);
}

float element(const Format& f, Data data, float scale, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  constexpr float kSpecials[] = {0.0F, -0.0F, HUGE_VALF, -HUGE_VALF, NAN, -NAN, 1e-45F, -3e38F};
  double x = 0;
  switch (data) {
    case Data::between: {  // on, halfway and 2^-10ths between neighbours, and next to these
      const double a = some_value(f, random);
      const double step = std::ldexp(a, -f.mantissa_bits - 1);
      x = a + step * std::ldexp(static_cast<double>(random() % 2049), -10);
      break;
    }
    case Data::normal:
      x = normal(random) * some_value(f, random);
      break;
    case Data::wide:
      x = some_value(f, random) * std::ldexp(normal(random), -static_cast<int>(random() % 60));
      break;
    case Data::patterns:
      return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    case Data::special:
      if (random() % 4 == 0) return kSpecials[random() % std::size(kSpecials)];
      x = normal(random);
      break;
  }
  float y = static_cast<float>(x * scale);
  if (!std::isfinite(y)) y = 1;
  if (random() % 3 == 0) y = std::nextafter(y, random() % 2 == 0 ? HUGE_VALF : -HUGE_VALF);
  if (!f.is_signed) return std::abs(y);
  return random() % 2 == 0 ? y : -y;
}

float some_scale(std::mt19937_64& random) {
  std::uniform_real_distribution<float> significand(1, 2);
  const auto power = [&](int from, int to) {
    return std::ldexp(1.0F, from + static_cast<int>(random() % static_cast<unsigned>(to - from)));
  };
  switch (random() % 5) {
    case 0:
      return 1;
    case 1:
      return power(-149, 128);
    case 2:
      return significand(random) * power(-149, 127);
    default:
      return significand(random) * power(-10, 10);
  }
}

// Elements whose bits differ, plus one if counts do.
template <class Out, class Quantize>
std::int64_t differences(Quantize fast, Quantize reference, const Conversion& c,
                         const std::vector<float>& x, float scale, std::int64_t first) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<Out> got(x.size()), want(x.size());
  const FlagCounts counts = fast(c, x.data(), n, scale, got.data(), first);
  const FlagCounts wanted = reference(c, x.data(), n, scale, want.data(), first);
  std::int64_t result = counts == wanted ? 0 : 1;
  for (std::size_t i = 0; i < x.size(); ++i)
    result += std::memcmp(&got[i], &want[i], sizeof(Out)) != 0;
  return result;
}

void check(const Conversion& c, const std::vector<float>& x, float scale, std::int64_t first) {
  using Bytes = FlagCounts (*)(const Conversion&, const float*, std::int64_t, float, std::uint8_t*,
                               std::int64_t);
  using Halves = FlagCounts (*)(const Conversion&, const float*, std::int64_t, float,
                                std::uint16_t*, std::int64_t);
  using Values =
      FlagCounts (*)(const Conversion&, const float*, std::int64_t, float, float*, std::int64_t);
  INFO(c.format->name << " " << to_string(c.rounding) << " " << to_string(c.overflow) << " scale "
                      << scale << " symmetric " << c.symmetric << " first " << first << " words "
                      << (c.random_words != nullptr));
  if (c.format->bits <= 8) {
    CHECK(differences<std::uint8_t, Bytes>(quantize_codes, quantize_codes_reference, c, x, scale,
                                           first) == 0);
  } else {
    CHECK(differences<std::uint16_t, Halves>(quantize_codes, quantize_codes_reference, c, x, scale,
                                             first) == 0);
  }
  if (exact_in_float32(*c.format))
    CHECK(differences<float, Values>(quantize_values, quantize_values_reference, c, x, scale,
                                     first) == 0);
}

// `rounds` conversions of n elements for each format, rounding and kind of data.
void check_all(std::uint64_t seed, int rounds, std::size_t n) {
  std::mt19937_64 random(seed);
  constexpr std::int64_t kFirsts = 100;
  std::vector<std::uint32_t> words(n + kFirsts);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  std::vector<float> x(n);
  for (int round = 0; round < rounds; ++round)
    for (const Format* f : formats())
      for (const char* rounding : kRoundings)
        for (const Data data : kAllData) {
          const float scale = some_scale(random);
          for (float& e : x) e = element(*f, data, scale, random);
          const Conversion c{.format = f,
                             .rounding = parse_rounding(rounding),
                             .overflow = static_cast<Overflow>(random() % 3),
                             .symmetric = random() % 2 == 0,
                             .random = {.seed = random(), .tensor = 3},
                             .random_words = random() % 3 == 0 ? words.data() : nullptr};
          check(c, x, scale, static_cast<std::int64_t>(random() % kFirsts));
        }
}

TEST_CASE("quantize rounding: every mode equals the reference", "[fast]") { check_all(1, 1, 37); }

TEST_CASE("quantize rounding: every mode equals the reference on more data", "[slow]") {
  check_all(2, 6, 300);
}

TEST_CASE("quantize rounding: every instruction set gives the same codes and counts", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    check_all(3, 1, 13);
  }
  hwy::SetSupportedTargetsForTest(0);
}

// All random words of sr(n) meet all of a gap's fractions that n bits and their ties tell apart.
TEST_CASE("quantize rounding: all fractions and all random words of short sr(n)", "[fast]") {
  constexpr int kBits = 3, kParts = 1 << (kBits + 3);
  for (const char* name : {"float8_e4m3fn", "hfp8_e4m3_nosub", "e4m3+ftz", "int8", "e3m0+finite",
                           "bfloat16", "dlfloat16"}) {
    const Format& f = find_format(name);
    std::vector<float> x;
    std::vector<std::uint32_t> words;
    for (const std::uint64_t code : {0, 1, 2, 7, 8, 9, 13, 14})
      for (int part = 0; part < kParts; ++part)
        for (std::uint32_t word = 0; word < (1U << kBits); ++word) {
          const double low = to_double(decode(f, code)), high = to_double(decode(f, code + 1));
          x.push_back(static_cast<float>(low + (high - low) * part / kParts));
          words.push_back(word);
        }
    for (const char* variant : {"sr(3)", "sr(3,a)", "sr(3,b)", "sr(3,odd)"})
      for (const float scale : {1.0F, 0.5F, 0.3F}) {
        std::vector<float> scaled = x;
        for (float& e : scaled) e *= scale;
        check({.format = &f, .rounding = parse_rounding(variant), .random_words = words.data()},
              scaled, scale, 0);
      }
  }
}

// A quotient next to a tie of 32 random bits: x / scale = B (1 + tiny), B odd with 1 + 3 + 32 + 1
// bits, so close that the division in double gives B itself. X 2^37 = B S + r with a small odd r
// solves for B and X.
TEST_CASE("quantize rounding: rests below the last bit of a double decide ties", "[fast]") {
  constexpr int kBits = 37;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
  std::mt19937_64 random(9);
  int close = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t s = (random() & 0x7fffff) | 0x800001, r = 2 * (random() % 32) + 1;
      std::uint64_t inverse = s;  // modulo 2^64, by Newton: each step doubles the right bits
      for (int step = 0; step < 5; ++step) inverse *= 2 - s * inverse;
      const std::uint64_t b = (0 - r * inverse) & kMask;
      if (b >> (kBits - 1) == 0) continue;
      const auto x = static_cast<float>((b * s + r) >> kBits);
      const auto scale = static_cast<float>(s) / 2;
      if (static_cast<double>(x) / scale == std::ldexp(static_cast<double>(b), 1 - kBits)) ++close;
      // The word that lets this fraction's last bit decide.
      const std::uint32_t word = ~static_cast<std::uint32_t>(b >> 1);
      for (const char* variant : {"sr(32)", "sr(32,odd)"})
        check({.format = &find_format("float8_e4m3fn"),
               .rounding = parse_rounding(variant),
               .random_words = &word},
              {x}, scale, 0);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  CHECK(close > 0);
}

TEST_CASE("quantize rounding: values are elements times the scale and may replace their source",
          "[fast]") {
  const Conversion c{.format = &find_format("float8_e4m3fn"), .overflow = Overflow::ieee};
  std::vector<float> x = {1.06F, -0.3F, 1000.0F, -1000.0F, 0.0F, -0.0F, 3.0F};
  const FlagCounts counts = quantize_values(c, x.data(), 7, 0.1F, x.data());
  CHECK(x[0] == 11 * 0.1F);
  CHECK(x[1] == -3 * 0.1F);
  for (const int i : {2, 3}) CHECK(std::bit_cast<std::uint32_t>(x[i]) == 0x7fc00000);
  CHECK((x[4] == 0 && !std::signbit(x[4]) && std::signbit(x[5])));
  CHECK(x[6] == 30 * 0.1F);
  CHECK(counts.overflow == 2);
  CHECK_THROWS(quantize_values({.format = &find_format("float64")}, x.data(), 1, 0.3F, x.data()));
}

}  // namespace
}  // namespace numemu::quantize_rounding_test

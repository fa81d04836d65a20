// Float32Converter against the reference: every format and mode, every instruction set, stochastic
// rounding included.
#include "formats/float32_converter.hpp"

#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/formats/step_function.hpp"

namespace numemu::float32_converter_test {
namespace {

constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};
constexpr const char* kRoundings[] = {
    "rne",     "rna",      "rtz",       "rup",        "rdn",    "rodd",     "sr(1)",  "sr(8)",
    "sr(8,a)", "sr(8,b)",  "sr(8,odd)", "sr(12)",     "sr(18)", "sr(18,a)", "sr(19)", "sr(20,odd)",
    "sr(23)",  "sr(23,a)", "sr(23,b)",  "sr(23,odd)", "sr(24)", "sr(32)"};

std::vector<const Format*> formats() {
  std::vector<const Format*> list;
  for (const Format* f : named_formats())
    if (f->bits <= 16) list.push_back(f);
  for (const char* name :
       {"binary8p3se", "binary8p1se", "binary8p4uf", "binary6p3ue", "binary15p5se", "e2m3+nosub",
        "e4m3+ftz", "e1m6+finite", "e4m3b40+nan1+nosub", "e5m10+ftz", "e3m0", "e4m3+unsigned"})
    list.push_back(&find_format(name));
  return list;
}

// Bit patterns, normal numbers of all sizes, special values, and what lies around and between the
// values of the format.
std::vector<float> probes(const Format& f, std::mt19937& generator) {
  std::vector<float> x;
  std::normal_distribution<float> normal;
  for (int i = 0; i < 700; ++i)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));
  for (int i = 0; i < 300; ++i)
    x.push_back(normal(generator) * std::exp2(static_cast<float>(generator() % 40) - 20.0F));
  for (const std::uint32_t bits :
       {0U, 1U, 0x7f7fffffU, 0x7f800000U, 0x7f800001U, 0x7fc12345U, 0x7fffffffU})
    for (const std::uint32_t sign : {0U, 0x80000000U})
      x.push_back(std::bit_cast<float>(bits | sign));
  const std::vector<double> values = finite_values(f);
  const std::size_t stride = values.size() / 64 + 1;
  for (std::size_t i = 0; i + 1 < values.size(); i += stride)
    for (const double t : {0.0, 0.25, 0.5, 1.0 / 256, 1 - 1.0 / 512}) {
      const auto middle = static_cast<float>(values[i] * (1 - t) + values[i + 1] * t);
      x.insert(x.end(),
               {middle, std::nextafter(middle, HUGE_VALF), std::nextafter(middle, -HUGE_VALF)});
    }
  for (const double edge : {values.front(), values.back()})
    for (const double t : {1.0, 1.03, 1.06, 1.13, 1.5, 3.0})
      x.push_back(static_cast<float>(edge * t));
  return x;
}

// Elements whose value, code or flags differ, with flags and without.
int differences(const Conversion& c, const std::vector<float>& x) {
  constexpr std::int64_t kFirst = 5;  // not the first element of its tensor, nor of a block of bits
  const Float32Converter converter(c);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> y(x.size()), bare(x.size());
  std::vector<std::uint8_t> flags(x.size()), code_flags(x.size()), codes8(x.size()),
      bare8(x.size());
  std::vector<std::uint16_t> codes16(x.size()), bare16(x.size());
  converter.round(x.data(), n, y.data(), flags.data(), kFirst);
  converter.round(x.data(), n, bare.data(), nullptr, kFirst);
  const bool wide = c.format->bits > 8;
  if (wide) {
    converter.encode(x.data(), n, codes16.data(), code_flags.data(), kFirst);
    converter.encode(x.data(), n, bare16.data(), nullptr, kFirst);
  } else {
    converter.encode(x.data(), n, codes8.data(), code_flags.data(), kFirst);
    converter.encode(x.data(), n, bare8.data(), nullptr, kFirst);
  }
  int count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const proof::Outcome want = proof::outcome(c, std::bit_cast<std::uint32_t>(x[i]), i + kFirst);
    const bool same = std::bit_cast<std::uint32_t>(y[i]) == want.value &&
                      std::bit_cast<std::uint32_t>(bare[i]) == want.value &&
                      (wide ? codes16[i] : codes8[i]) == want.code &&
                      (wide ? bare16[i] : bare8[i]) == want.code && flags[i] == want.flags &&
                      code_flags[i] == want.flags;
    if (!same && count++ == 0)
      UNSCOPED_INFO("first difference: x = " << x[i] << " bits " << std::hex
                                             << std::bit_cast<std::uint32_t>(x[i]));
  }
  return count;
}

// Runs body once for each instruction set of this machine.
template <class Body>
void each_target(Body body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("converter: every format and rounding agrees with the reference", "[fast]") {
  std::mt19937 generator(20260611);
  for (const Format* f : formats()) {
    const std::vector<float> x = probes(*f, generator);
    for (const char* rounding : kRoundings)
      for (const Overflow overflow : kOverflows)
        for (const bool symmetric : {true, false}) {
          if (!symmetric && f->kind != Kind::integer) continue;
          Conversion c{.format = f,
                       .rounding = parse_rounding(rounding),
                       .overflow = overflow,
                       .symmetric = symmetric};
          c.random.seed = 42;
          INFO(f->name << " " << rounding << " " << to_string(overflow) << " symmetric "
                       << symmetric);
          CHECK(differences(c, x) == 0);
        }
  }
}

TEST_CASE("converter: every instruction set gives the same bits", "[fast]") {
  std::mt19937 generator(7);
  each_target([&](const char* target) {
    for (const char* name : {"float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn", "int8", "uint4",
                             "hfp8_e4m3_nosub", "float16"})
      for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(23,b)"})
        for (const Overflow overflow : {Overflow::saturate, Overflow::ieee}) {
          Conversion c{.format = &find_format(name),
                       .rounding = parse_rounding(rounding),
                       .overflow = overflow};
          c.random = {.seed = 3, .stream = Stream::quantize, .tensor = 9, .draw = 2};
          INFO(target << " " << name << " " << rounding << " " << to_string(overflow));
          CHECK(differences(c, probes(*c.format, generator)) == 0);
        }
  });
}

TEST_CASE("converter: caller-supplied random bits count in their low bits", "[fast]") {
  std::mt19937 generator(11);
  const Format& f = find_format("float8_e5m2");
  const std::vector<float> x = probes(f, generator);
  std::vector<std::uint32_t> words(x.size() + 5);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(generator());
  for (const char* rounding : {"sr(4)", "sr(16,a)", "sr(24,odd)"}) {
    const Conversion c{
        .format = &f, .rounding = parse_rounding(rounding), .random_words = words.data()};
    INFO(rounding);
    CHECK(differences(c, x) == 0);
  }
}

TEST_CASE("converter: y may be x, and every length ends where it should", "[fast]") {
  std::mt19937 generator(13);
  const Conversion c{.format = &find_format("float8_e4m3fn")};
  const Float32Converter converter(c);
  const std::vector<float> all = probes(*c.format, generator);
  for (std::int64_t n = 0; n < 200; ++n) {
    std::vector<float> x(all.begin(), all.begin() + n), y(x.size() + 1, 1234.5F);
    converter.round(x.data(), n, y.data());
    CHECK(y.back() == 1234.5F);
    converter.round(x.data(), n, x.data());
    CHECK(std::equal(x.begin(), x.end(), y.begin(), [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    }));
  }
}

TEST_CASE("converter: arrays that are written past the caches hold the same", "[fast]") {
  constexpr std::int64_t kLong = (std::int64_t{1} << 22) + 7;
  std::vector<float> x(kLong + 32);
  std::mt19937 generator(17);
  for (float& v : x) v = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
  float* y = x.data();
  while (reinterpret_cast<std::uintptr_t>(y) % 64 != 0) ++y;
  for (const char* rounding : {"rne", "sr(8)"}) {
    const Conversion c{.format = &find_format("float8_e4m3fn"),
                       .rounding = parse_rounding(rounding)};
    const Float32Converter converter(c);
    std::vector<float> z(kLong + 32);
    float* aligned = z.data();
    while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
    std::vector<std::uint8_t> flags(kLong), part_flags(1000);
    converter.round(y, kLong, aligned, flags.data());
    std::int64_t different = 0;
    std::vector<float> part(1000);
    for (std::int64_t first = 0; first + 1000 <= kLong; first += 99'000) {
      converter.round(y + first, 1000, part.data(), part_flags.data(), first);
      for (std::int64_t i = 0; i < 1000; ++i)
        different += std::bit_cast<std::uint32_t>(part[i]) !=
                         std::bit_cast<std::uint32_t>(aligned[first + i]) ||
                     part_flags[i] != flags[first + i];
    }
    CHECK(different == 0);
  }
}

TEST_CASE("converter: the wrong width of codes is refused", "[fast]") {
  const Float32Converter narrow({.format = &find_format("int4")});
  const Float32Converter wide({.format = &find_format("float16")});
  std::uint8_t byte;
  std::uint16_t half;
  const float x = 1;
  CHECK_THROWS_AS(wide.encode(&x, 1, &byte), Error);
  CHECK_THROWS_AS(narrow.encode(&x, 1, &half), Error);
}

TEST_CASE("converter: flags are counted bit by bit", "[fast]") {
  std::vector<std::uint8_t> flags(100'003);
  std::mt19937 generator(19);
  FlagCounts want{.elements = static_cast<std::int64_t>(flags.size())};
  for (std::uint8_t& f : flags) {
    f = static_cast<std::uint8_t>(generator() & (kInexact | kUnderflow | kOverflow | kInvalid));
    want.add(f);
  }
  CHECK(count_flags(flags.data(), want.elements) == want);
}

}  // namespace
}  // namespace numemu::float32_converter_test

// The integer loops of bfloat16, tfloat32 and their kin against the reference, bit for bit.
#include "formats/simd/shared_exponent.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "tests/catch.hpp"
#include "tests/formats/step_function.hpp"

namespace numemu::shared_exponent_test {
namespace {

constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};
constexpr RoundingMode kModes[] = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                   RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd};
constexpr StochasticVariant kVariants[] = {StochasticVariant::a, StochasticVariant::b,
                                           StochasticVariant::c, StochasticVariant::odd};
constexpr std::uint32_t kInfinity = 0x7f800000, kSign = 0x80000000;

const Format& with_mantissa(int bits) {
  if (bits == 7) return find_format("bfloat16");
  if (bits == 10) return find_format("tfloat32");
  return find_format("e8m" + std::to_string(bits));
}

int cut_bits(const Format& f) { return 23 - f.mantissa_bits; }

// Bit patterns with both signs: codes of the format, what lies at, around and between the points
// where rounding changes, both ends of the range, special values, anything.
std::vector<std::uint32_t> probes(const Format& f, int codes, std::mt19937& generator) {
  const int d = cut_bits(f);
  const std::uint32_t step = 1U << d, last = kInfinity >> d;
  std::vector<std::uint32_t> code = {0, 1, 2, last / 2, last - 2, last - 1, last};
  for (int m = f.mantissa_bits - 2; m <= f.mantissa_bits + 1; ++m)  // around the first binades
    for (const int near : {-2, -1, 0, 1}) code.push_back((1U << std::max(m, 0)) + near);
  for (int i = 0; i < codes; ++i) code.push_back(static_cast<std::uint32_t>(generator()) % last);
  std::vector<std::uint32_t> magnitudes;
  for (const std::uint32_t c : code)
    for (const std::uint32_t part :
         {0U, step / 4, step / 2, step - step / 4, static_cast<std::uint32_t>(generator()) % step})
      for (const int near : {-1, 0, 1})
        magnitudes.push_back((c * step + part + static_cast<std::uint32_t>(near)) & ~kSign);
  for (const std::uint32_t bits : {0U, 1U, kInfinity - 1, kInfinity, kInfinity + 1, 0x7fc12345U,
                                   0x7fffffffU, 0x007fffffU, 0x00800000U})
    magnitudes.push_back(bits);
  for (int i = 0; i < codes; ++i)
    magnitudes.push_back(static_cast<std::uint32_t>(generator()) & ~kSign);
  std::vector<std::uint32_t> all = magnitudes;
  for (const std::uint32_t bits : magnitudes) all.push_back(bits | kSign);
  return all;
}

// Calls the converter for values and codes, with flags and without; counts the elements of which
// something differs from the reference.
class Comparison {
 public:
  explicit Comparison(const std::vector<std::uint32_t>& bits) : bits_(bits), x_(bits.size()) {
    std::transform(bits.begin(), bits.end(), x_.begin(),
                   [](std::uint32_t b) { return std::bit_cast<float>(b); });
  }

  int differences(const Conversion& c) {
    if (c.format->bits > 16) return compare<std::uint32_t>(c);
    return compare<std::uint16_t>(c);
  }

 private:
  template <class Code>
  int compare(const Conversion& c) {
    const Float32Converter converter(c);
    if (!converter.fast()) return -1;
    const auto n = static_cast<std::int64_t>(x_.size());
    std::vector<float> y(x_.size()), bare(x_.size());
    std::vector<Code> codes(x_.size()), bare_codes(x_.size());
    std::vector<std::uint8_t> flags(x_.size()), code_flags(x_.size());
    converter.round(x_.data(), n, y.data(), flags.data());
    converter.round(x_.data(), n, bare.data());
    converter.encode(x_.data(), n, codes.data(), code_flags.data());
    converter.encode(x_.data(), n, bare_codes.data());
    int count = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const proof::Outcome want = proof::outcome(c, bits_[i], static_cast<std::int64_t>(i));
      const std::uint32_t code = want.code << c.format->container_shift;
      const bool same = std::bit_cast<std::uint32_t>(y[i]) == want.value &&
                        std::bit_cast<std::uint32_t>(bare[i]) == want.value && codes[i] == code &&
                        bare_codes[i] == code && flags[i] == want.flags &&
                        code_flags[i] == want.flags;
      if (!same && count++ == 0)
        UNSCOPED_INFO("first difference: " << std::hex << bits_[i] << " became "
                                           << std::bit_cast<std::uint32_t>(y[i]) << " flags "
                                           << int{flags[i]} << ", not " << want.value << " flags "
                                           << int{want.flags});
    }
    return count;
  }

  const std::vector<std::uint32_t>& bits_;
  std::vector<float> x_;
};

TEST_CASE("shared exponent: every mode and overflow near every kind of breakpoint", "[fast]") {
  std::mt19937 generator(20260613);
  for (int m = 1; m <= 22; ++m) {
    const Format& f = with_mantissa(m);
    const std::vector<std::uint32_t> bits = probes(f, m == 7 ? 3000 : 300, generator);
    for (const RoundingMode mode : kModes)
      for (const Overflow overflow : kOverflows) {
        const Conversion c{.format = &f, .rounding = {.mode = mode}, .overflow = overflow};
        INFO(f.name << " " << to_string(c.rounding) << " " << to_string(overflow));
        CHECK(Comparison(bits).differences(c) == 0);
      }
  }
}

TEST_CASE("shared exponent: every instruction set gives the same bits", "[fast]") {
  std::mt19937 generator(5);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const int m : {1, 7, 10, 16, 22}) {
      const Format& f = with_mantissa(m);
      const std::vector<std::uint32_t> bits = probes(f, 40, generator);
      for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(3,odd)",
                                   "sr(11,b)", "sr(32,a)"})
        for (const Overflow overflow : kOverflows) {
          Conversion c{.format = &f, .rounding = parse_rounding(rounding), .overflow = overflow};
          c.random.seed = 21;
          INFO(hwy::TargetName(target)
               << " " << f.name << " " << rounding << " " << to_string(overflow));
          CHECK(Comparison(bits).differences(c) == 0);
        }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("shared exponent: all random words of few bits", "[fast]") {
  std::mt19937 generator(29);
  for (const int m : {1, 7, 15, 19, 21, 22}) {
    const Format& f = with_mantissa(m);
    const std::vector<std::uint32_t> some = probes(f, 4, generator);
    for (const int n : {1, 2, 3, 5}) {
      std::vector<std::uint32_t> bits, words;
      for (const std::uint32_t x : some)
        for (std::uint32_t r = 0; r < 1U << n; ++r) {
          bits.push_back(x);
          words.push_back(r | static_cast<std::uint32_t>(generator())
                                  << n);  // whatever stands above r
        }
      for (const StochasticVariant variant : kVariants) {
        const Conversion c{
            .format = &f,
            .rounding = {.mode = RoundingMode::sr, .variant = variant, .random_bits = n},
            .random_words = words.data()};
        INFO(f.name << " " << to_string(c.rounding));
        CHECK(Comparison(bits).differences(c) == 0);
      }
    }
  }
}

// The word decides where it and the fraction, cut to n bits, just reach 1: words on both sides.
TEST_CASE("shared exponent: any number of random bits, words around the deciding one", "[fast]") {
  std::mt19937 generator(31);
  for (const int m : {2, 7, 10, 20, 22}) {
    const Format& f = with_mantissa(m);
    const int d = cut_bits(f);
    const std::vector<std::uint32_t> some = probes(f, 3, generator);
    for (int n = 1; n <= 32; ++n) {
      std::vector<std::uint32_t> bits, words;
      for (const std::uint32_t x : some)
        for (int near = -2; near <= 2; ++near) {
          const std::uint64_t low = x & ((1U << d) - 1), one = std::uint64_t{1} << n;
          bits.push_back(x);
          // Between the first normal number and half of it, tininess looks at one bit less.
          const int bits_cut = (x & ~kSign) < 0x00800000 && generator() % 2 == 0 ? d - 1 : d;
          const std::uint64_t part = low & ((std::uint64_t{1} << bits_cut) - 1);
          words.push_back(static_cast<std::uint32_t>(one - (part << n >> bits_cut) +
                                                     static_cast<std::uint64_t>(near)));
        }
      for (const StochasticVariant variant : kVariants) {
        const Conversion c{
            .format = &f,
            .rounding = {.mode = RoundingMode::sr, .variant = variant, .random_bits = n},
            .overflow = kOverflows[n % 3],
            .random_words = words.data()};
        INFO(f.name << " " << to_string(c.rounding) << " " << to_string(c.overflow));
        CHECK(Comparison(bits).differences(c) == 0);
      }
    }
  }
}

TEST_CASE("shared exponent: y may be x, and every length ends where it should", "[fast]") {
  std::mt19937 generator(37);
  const Format& f = find_format("bfloat16");
  const std::vector<std::uint32_t> bits = probes(f, 10, generator);
  for (const char* rounding : {"rne", "sr(9)"}) {
    const Float32Converter converter({.format = &f, .rounding = parse_rounding(rounding)});
    std::vector<float> all(bits.size()), want(bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) all[i] = std::bit_cast<float>(bits[i]);
    converter.round(all.data(), static_cast<std::int64_t>(all.size()), want.data());
    for (std::int64_t n = 0; n < 150; ++n) {
      std::vector<float> x(all.begin(), all.begin() + n);
      x.push_back(1234.5F);
      std::vector<std::uint16_t> codes(x.size(), 0xabcd);
      std::vector<std::uint8_t> flags(x.size(), 0x77);
      converter.encode(x.data(), n, codes.data(), flags.data());
      converter.round(x.data(), n, x.data());
      const bool untouched = x.back() == 1234.5F && codes.back() == 0xabcd && flags.back() == 0x77;
      CHECK(untouched);
      std::int64_t different = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto y = std::bit_cast<std::uint32_t>(x[i]);
        different += y != std::bit_cast<std::uint32_t>(want[i]) || y >> 16 != codes[i];
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("shared exponent: arrays that are written past the caches hold the same", "[fast]") {
  constexpr std::int64_t kLong = (std::int64_t{1} << 22) + 7, kPart = 1000;
  constexpr std::size_t kLine = 64;
  const auto aligned = [](auto& v) {
    auto* p = v.data();
    while (reinterpret_cast<std::uintptr_t>(p) % kLine != 0) ++p;
    return p;
  };
  std::mt19937 generator(41);
  std::vector<float> x(kLong), y(kLong + kLine), part(kPart);
  std::vector<std::uint32_t> codes(kLong + kLine), part_codes(kPart);
  for (float& v : x) v = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
  for (const char* rounding : {"rne", "sr(8)"}) {
    const Float32Converter converter(
        {.format = &find_format("tfloat32"), .rounding = parse_rounding(rounding)});
    converter.round(x.data(), kLong, aligned(y));
    converter.encode(x.data(), kLong, aligned(codes));
    std::int64_t different = 0;
    for (std::int64_t first = kLong % kPart; first < kLong; first += 50 * kPart) {
      converter.round(x.data() + first, kPart, part.data(), nullptr, first);
      converter.encode(x.data() + first, kPart, part_codes.data(), nullptr, first);
      for (std::int64_t i = 0; i < kPart; ++i) {
        const auto want = std::bit_cast<std::uint32_t>(part[i]);
        different += std::bit_cast<std::uint32_t>(aligned(y)[first + i]) != want ||
                     aligned(codes)[first + i] != want || part_codes[i] != want;
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("shared exponent: only formats that share it are served", "[fast]") {
  const auto served = [](const char* name) {
    return simd::make_shared_exponent_plan({.format = &find_format(name)}).has_value();
  };
  for (const char* name : {"bfloat16", "tfloat32", "e8m1", "e8m22"}) CHECK(served(name));
  for (const char* name :
       {"float32", "float16", "float64", "int8", "float8_e8m0fnu", "e8m7+ftz", "e8m7+finite",
        "e8m7+nosub", "e8m7+unsigned", "e8m7b126", "e7m7", "e9m7", "e8m23"})
    CHECK_FALSE(served(name));
  std::uint16_t half;
  std::uint32_t word;
  const float x = 1;
  CHECK_THROWS_AS(Float32Converter({.format = &find_format("bfloat16")}).encode(&x, 1, &word),
                  Error);
  CHECK_THROWS_AS(Float32Converter({.format = &find_format("tfloat32")}).encode(&x, 1, &half),
                  Error);
}

// The reference's step function has about three steps for each of the 2^16 codes.
TEST_CASE("bfloat16 agrees with the reference on all floats", "[exhaustive]") {
  constexpr std::int64_t kAll = std::int64_t{1} << 32;
  constexpr std::int64_t kMost = 1 << 15;
  for (const RoundingMode mode : kModes)
    for (const Overflow overflow : kOverflows) {
      const Conversion c{
          .format = &find_format("bfloat16"), .rounding = {.mode = mode}, .overflow = overflow};
      const Float32Converter converter(c);
      const std::vector<proof::Step> steps = proof::step_function(c);
      std::int64_t different = 0;
#pragma omp parallel for schedule(static) reduction(+ : different)
      for (std::int64_t first = 0; first < kAll; first += kMost) {
        static thread_local std::vector<float> x(kMost), y(kMost);
        static thread_local std::vector<std::uint32_t> want(kMost);
        static thread_local std::vector<std::uint16_t> codes(kMost);
        static thread_local std::vector<std::uint8_t> flags(kMost), want_flags(kMost);
        auto step = std::upper_bound(steps.begin(), steps.end(), first,
                                     [](std::int64_t at, const auto& s) { return at < s.first; });
        for (std::int64_t i = 0; i < kMost; ++step) {  // the outcome before *step, up to it
          const std::int64_t end =
              step == steps.end() ? kMost : std::min(kMost, std::int64_t{step->first} - first);
          std::fill(want.begin() + i, want.begin() + end, (step - 1)->outcome.value);
          std::fill(want_flags.begin() + i, want_flags.begin() + end, (step - 1)->outcome.flags);
          i = end;
        }
        for (std::int64_t i = 0; i < kMost; ++i)
          x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i));
        const auto compare = [&](std::uint8_t* f) {
          converter.round(x.data(), kMost, y.data(), f);
          for (std::int64_t i = 0; i < kMost; ++i)
            different += std::bit_cast<std::uint32_t>(y[i]) != want[i];
          if (f != nullptr) different += flags != want_flags;
          converter.encode(x.data(), kMost, codes.data(), f);
          for (std::int64_t i = 0; i < kMost; ++i) different += codes[i] != want[i] >> 16;
          if (f != nullptr) different += flags != want_flags;
        };
        compare(flags.data());
        compare(nullptr);
      }
      INFO(to_string(c.rounding) << " " << to_string(overflow));
      CHECK(different == 0);
    }
}

}  // namespace
}  // namespace numemu::shared_exponent_test

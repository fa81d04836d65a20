// Codes above a minimum: every decided code against the exact quotient of integers, on every
// instruction set.
#include "formats/simd/codes_above.hpp"

#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::simd::codes_above_test {
namespace {

/// Elements are minimum + k 2^-14 and the factor is a whole number of 2^-14: floor and remainder of
/// integers say what the code is.
struct Case {
  std::int64_t factor;
  int high, random_bits;
};

struct Exact {
  int code;
  bool open, inexact;
};

Exact exact_code(std::int64_t k, const Case& c, std::uint32_t random) {
  const std::int64_t steps = std::int64_t{1} << c.random_bits, fine = k * steps;
  if (k == 0) return {0, false, false};
  const std::int64_t below = fine / c.factor, rest = fine % c.factor;
  if (k < 0 || k >= c.high * c.factor || k % c.factor == 0 || 2 * rest == c.factor)
    return {0, true, false};
  const std::int64_t nearest = below + (2 * rest > c.factor ? 1 : 0);
  return {static_cast<int>((nearest + random) >> c.random_bits), false, true};
}

TEST_CASE("codes above: decided where the exact quotient is, and equal to it", "[fast]") {
  const RandomSource source{.seed = 7};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const Case& c : {Case{3, 1, 0}, Case{1001, 3, 0}, Case{1000, 3, 16}, Case{64, 255, 0},
                          Case{77, 255, 16}, Case{4096, 3, 8}, Case{333, 15, 24}, Case{5, 7, 1}}) {
      std::vector<float> x;
      std::vector<std::uint32_t> random;
      constexpr float kMinimum = -0.75f;
      const std::int64_t last = c.high * c.factor + 3;
      for (std::int64_t k = -3; k <= last; ++k) {
        x.push_back(kMinimum + std::ldexp(static_cast<float>(k), -14));
        random.push_back(
            c.random_bits == 0 ? 0 : source.bits(static_cast<std::uint64_t>(k + 3), c.random_bits));
      }
      std::vector<std::uint8_t> codes(x.size()), open(x.size());
      const CodesAboveCounts counts = codes_above(
          {.minimum = kMinimum,
           .factor = std::ldexp(static_cast<double>(c.factor), -14),
           .high = c.high,
           .random_bits = c.random_bits},
          x.data(), static_cast<std::int64_t>(x.size()), random.data(), codes.data(), open.data());
      CodesAboveCounts want;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact exact = exact_code(static_cast<std::int64_t>(i) - 3, c, random[i]);
        want.inexact += exact.inexact;
        want.open += exact.open;
        if (open[i] != exact.open || (!exact.open && codes[i] != exact.code)) {
          CAPTURE(target, c.factor, c.high, c.random_bits, i, int{codes[i]}, int{open[i]});
          FAIL("another code");
        }
      }
      CHECK(counts.inexact == want.inexact);
      CHECK(counts.open == want.open);
    }
    const float numbers[] = {INFINITY, -INFINITY, NAN, 1.0f, 0.0f};
    const std::uint32_t words[5] = {};
    std::uint8_t codes[5], open[5];
    const CodesAboveCounts counts =
        codes_above({.minimum = 0, .factor = 0.75, .high = 3, .random_bits = 0}, numbers, 5, words,
                    codes, open);
    CHECK((counts.open == 3 && counts.inexact == 1));
    CHECK((codes[3] == 1 && codes[4] == 0));
  }
  hwy::SetSupportedTargetsForTest(0);
}

// The nearest numbers to every boundary: a quotient is then as near to it as 2^-28, far above the
// distance that leaves a code open.
TEST_CASE("codes above: divisors of 28 bits beside the boundaries of codes", "[fast]") {
  const RandomSource source{.seed = 8};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const Case& c : {Case{0xfffffff, 255, 0}, Case{0x8000001, 255, 0}, Case{0xb504f33, 15, 0},
                          Case{0xfffffff, 255, 8}, Case{0x9249249, 15, 8}, Case{0xc000001, 3, 4}}) {
      std::vector<float> x;
      std::vector<std::uint32_t> random;
      for (std::int64_t half = 1; half <= 2 * c.high; ++half) {
        auto number = static_cast<float>(half * c.factor / 2);
        for (int i = 0; i < 3; ++i) number = std::nextafter(number, 0.0f);
        for (int i = 0; i < 7; ++i, number = std::nextafter(number, HUGE_VALF)) {
          x.push_back(number);
          random.push_back(c.random_bits == 0 ? 0 : source.bits(x.size(), c.random_bits));
        }
      }
      std::vector<std::uint8_t> codes(x.size()), open(x.size());
      codes_above({.minimum = 0,
                   .factor = static_cast<double>(c.factor),
                   .high = c.high,
                   .random_bits = c.random_bits},
                  x.data(), static_cast<std::int64_t>(x.size()), random.data(), codes.data(),
                  open.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact exact = exact_code(static_cast<std::int64_t>(x[i]), c, random[i]);
        if (open[i] != exact.open || (!exact.open && codes[i] != exact.code)) {
          CAPTURE(target, c.factor, c.high, c.random_bits, x[i], int{codes[i]}, int{open[i]});
          FAIL("another code");
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace numemu::simd::codes_above_test

// Combined sums against 128-bit integers that the compiler's library rounds.
#include "emu/unit/exact/exact_combine.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/float_guard.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace exact_combine_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

__extension__ typedef __int128 Integer;

constexpr int kLow = -60;
constexpr std::int64_t kOutputs = 4099;

/// Terms of `count` arrays, as integers in units of 2^kLow and as doubles.
struct Terms {
  std::vector<std::vector<Integer>> integers;
  std::vector<std::vector<double>> doubles;
  std::vector<const double*> sums;

  /// Every term has at most 53 bits and ends somewhere below 2^(kLow + width).
  Terms(int count, int width, const RandomSource& random) {
    integers.resize(count);
    doubles.resize(count);
    for (int p = 0; p < count; ++p) {
      RandomSource own = random;
      own.draw = static_cast<std::uint16_t>(p);
      for (std::int64_t i = 0; i < kOutputs; ++i) {
        const std::uint64_t word =
            std::uint64_t{own.bits(2 * i, 32)} << 32 | own.bits(2 * i + 1, 32);
        const int bits = static_cast<int>(word % 54), shift = static_cast<int>(word / 64 % width);
        const auto magnitude = static_cast<Integer>(word >> 11 & ((std::uint64_t{1} << bits) - 1));
        Integer term = magnitude << std::max(0, std::min(shift, width - bits));
        if ((word >> 63) != 0) term = -term;
        // Cancellation leaves what is far below.
        if (p > 0 && p == count - 1 && i % 4 == 0) term = -integers[0][i];
        integers[p].push_back(term);
        doubles[p].push_back(std::ldexp(static_cast<double>(term), kLow));
      }
      doubles[p].resize(kOutputs + kCombineSlack);
      sums.push_back(doubles[p].data());
    }
  }
};

std::int64_t differing(int count, int width, bool with_c) {
  const FloatGuard guard;
  const Terms terms(count, width, {.seed = static_cast<std::uint64_t>(100 * count + width)});
  const Exponents range{kLow, kLow + width};
  REQUIRE(can_combine(count, range));
  std::vector<float> c(kOutputs), d(kOutputs);
  for (std::int64_t i = 0; i < kOutputs; ++i)
    c[i] =
        static_cast<float>(std::ldexp(static_cast<double>(i % 257 - 128), kLow + i % (width - 9)));
  combine_sums({terms.sums.data(), count, nullptr, range}, kOutputs, with_c ? c.data() : nullptr,
               d.data());
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < kOutputs; ++i) {
    Integer total = with_c ? static_cast<Integer>(std::ldexp(static_cast<double>(c[i]), -kLow)) : 0;
    for (const auto& integers : terms.integers) total += integers[i];
    bad += d[i] != std::ldexp(static_cast<float>(total), kLow);
  }
  return bad;
}

}  // namespace

TEST_CASE("exact_combine: totals of every width rounded once", "[fast]") {
  for (const int count : {1, 2, 3, 6, 9, 15}) {
    for (const int width : {54, 60, 73, 97}) {
      INFO(count << " terms of " << width << " bits");
      CHECK(differing(count, width, false) == 0);
      CHECK(differing(count, width, true) == 0);
    }
  }
}

TEST_CASE("exact_combine: halves of a float32 and one far below them", "[fast]") {
  const FloatGuard guard;
  const double large[1 + kCombineSlack] = {0x1p37 + 0x1p13};
  for (const double tiny : {0x1p-60, -0x1p-60, 0.0}) {
    const double small[1 + kCombineSlack] = {tiny};
    const double* sums[] = {large, small};
    float d = 0;
    combine_sums({sums, 2, nullptr, {-60, 37}}, 1, nullptr, &d);
    CHECK(d == (tiny > 0 ? 0x1.000002p37f : 0x1p37f));
  }
}

TEST_CASE("exact_combine: zeros, NaN and infinity", "[fast]") {
  const FloatGuard guard;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double x[5 + kCombineSlack] = {-0.0, -0.0, 0.0, 3.0, -0.0};
  const double y[5 + kCombineSlack] = {-0.0, 0.0, -0.0, -3.0, -0.0};
  const double special[5 + kCombineSlack] = {0, kInfinity, -kInfinity, kNan, 2.0};
  const float c[] = {-0.0f, -0.0f, 0.0f, -0.0f, -std::numeric_limits<float>::infinity()};
  const double* sums[] = {x, y};
  const auto bits = [&](const double* specials, const float* from, int i) {
    float d[5];
    combine_sums({sums, 2, specials, {-10, 10}}, 5, from, d);
    return std::bit_cast<std::uint32_t>(d[i]);
  };
  CHECK(bits(nullptr, c, 0) == 0x80000000);
  CHECK(bits(nullptr, nullptr, 0) == 0);
  for (const int i : {1, 2, 3}) CHECK(bits(nullptr, c, i) == 0);
  CHECK(bits(nullptr, c, 4) == 0xff800000);
  CHECK(bits(special, c, 1) == 0x7f800000);
  CHECK(bits(special, nullptr, 2) == 0xff800000);
  CHECK(bits(special, c, 3) == 0x7fc00000);
  CHECK(bits(special, c, 4) == 0xff800000);
}

TEST_CASE("exact_combine: what two doubles do not hold is refused", "[fast]") {
  CHECK(can_combine(15, {0, 97}));
  CHECK_FALSE(can_combine(16, {0, 97}));
  CHECK_FALSE(can_combine(15, {0, 98}));
  CHECK_FALSE(can_combine(2, {-901, -890}));
  CHECK_FALSE(can_combine(2, {790, 801}));
}

}  // namespace exact_combine_test

// Pairs: the exact comparison, the published vectors, vectors of every width against integers.
#include "policies/mask/kernels/mvue.hpp"

#include <cstring>

#include "formats/error.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/unbiased_draws.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace mvue_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr double kErrors = 4;  // standard errors that a mean may be off by
constexpr unit::Sparsity kOneOfTwo{1, 2};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> pair_of(float x1, float x2, std::uint32_t r) {
  const float x[2] = {x1, x2};
  std::vector<float> y(2);
  mvue_pair(x, r, y.data());
  return y;
}

}  // namespace

TEST_CASE("a draw is compared exactly, over all exponents", "[fast]") {
  CHECK(draws_below(0xbfffffff, 4, 3));
  CHECK_FALSE(draws_below(0xc0000000, 4, 3));
  CHECK(draws_below(0, 1, 0x1p-149F));
  CHECK_FALSE(draws_below(1, 1, 0x1p-149F));
  CHECK_FALSE(draws_below(0, 1, 0));
  CHECK_FALSE(draws_below(0, 0, 0));
  // 2^-32 of total 1 is exactly 2^-32.
  CHECK_FALSE(draws_below(1, 1, 0x1p-32F));
  CHECK(draws_below(1, 1, 0x1.000002p-32F));
  CHECK(draws_below(0xffffffff, 0x1p-149F, 0x1p-149F));
  RandomSource random;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    // Significands of 20 bits, so that long double holds every product.
    const float total =
        std::ldexp(static_cast<float>(1 + random.bits(3 * i, 20)), static_cast<int>(i % 60));
    const float part = total * static_cast<float>(random.bits(3 * i + 1, 4)) / 16;
    const std::uint32_t r = random.bits(3 * i + 2, 32);
    const long double drawn = static_cast<long double>(r) * total;
    CHECK(draws_below(r, total, part) == (drawn < static_cast<long double>(part) * 0x1p32L));
  }
}

TEST_CASE("(3, 1) becomes (4, 0) with probability 3/4 exactly", "[fast]") {
  CHECK(pair_of(3, 1, 0xbfffffff) == std::vector<float>{4, 0});
  CHECK(pair_of(3, 1, 0xc0000000) == std::vector<float>{0, 4});
  CHECK(pair_of(-3, 1, 0) == std::vector<float>{-4, 0});
  CHECK(pair_of(3, -1, 0xffffffff) == std::vector<float>{0, -4});
  const float x[2] = {3, 1};
  CHECK(estimator_variance(Estimator::exact, kOneOfTwo, x) == 6);
  const Moments m = moments(mvue_pairs, {3, 1}, 100000, mask_source(1));
  for (int i = 0; i < 2; ++i)
    CHECK(std::fabs(m.mean[i] - x[i]) <= kErrors * std::sqrt(3.0 / 100000));
}

TEST_CASE("zeros, subnormals, overflow, infinities and NaN", "[fast]") {
  for (const std::uint32_t r : {0U, 1U, 0x7fffffffU, 0xffffffffU}) {
    const auto zeros = pair_of(0, -0.0F, r);
    CHECK_FALSE(std::signbit(zeros[1]));
    CHECK(zeros == std::vector<float>{0, 0});
    CHECK(pair_of(-0.0F, 5, r) == std::vector<float>{0, 5});
    CHECK_FALSE(std::signbit(pair_of(-0.0F, 5, r)[0]));
    CHECK(pair_of(-5, 0, r) == std::vector<float>{-5, 0});
    CHECK(pair_of(0x1p-149F, 0, r) == std::vector<float>{0x1p-149F, 0});
    for (const float odd : {INFINITY, -INFINITY, NAN}) {
      for (const auto& y : {pair_of(odd, 1, r), pair_of(1, odd, r)}) {
        CHECK(std::isnan(y[0]));
        CHECK(y[1] == 0);
      }
    }
  }
  CHECK(pair_of(0x1p-149F, 0x3p-149F, 0x3fffffff) == std::vector<float>{0x1p-147F, 0});
  CHECK(pair_of(0x1p-149F, 0x3p-149F, 0x40000000) == std::vector<float>{0, 0x1p-147F});
  CHECK(pair_of(0x1p127F, -0x1p127F, 0x7fffffff) == std::vector<float>{INFINITY, 0});
  CHECK(pair_of(0x1p127F, -0x1p127F, 0x80000000) == std::vector<float>{0, -INFINITY});
}

TEST_CASE("vectors give the bits of the integers", "[fast]") {
  constexpr std::int64_t kCount = 1 << 18;
  const std::vector<float> x = mixed(kCount, true);
  std::vector<float> fast(x.size()), slow(x.size());
  std::vector<std::uint8_t> keep(x.size());
  on_every_target([&] {
    for (const std::int64_t pairs :
         {kCount / 2, std::int64_t{1}, std::int64_t{7}, std::int64_t{515}}) {
      const std::uint64_t first = pairs == 7 ? (std::uint64_t{1} << 34) + 3 : 5;
      mvue_pairs(mask_source(9), MaskRun{x.data(), fast.data(), keep.data(), pairs, first});
      mvue_pairs_reference(mask_source(9), MaskRun{x.data(), slow.data(), nullptr, pairs, first});
      CHECK(same_bits(fast, slow));
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < 2 * pairs; ++i) wrong += keep[i] != (slow[i] != 0 ? 1 : 0);
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("vectors give the bits of the integers where a draw is next to its limit", "[fast]") {
  // a1 is u S up to a few units in the last place: float32 cannot decide.
  constexpr std::int64_t kPairs = 1 << 14;
  const RandomSource random = mask_source(10);
  std::vector<float> x, fast(2 * kPairs), slow(2 * kPairs);
  for (std::int64_t i = 0; i < kPairs; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    const auto first = static_cast<float>(u + static_cast<double>(i % 9 - 4) * 0x1p-25);
    x.push_back(std::fabs(first));
    x.push_back(1 - std::fabs(first));
  }
  for (const float scale : {0x1p-130F, 0x1p-95F, 0x1p127F, 1.0F}) {
    std::vector<float> scaled = x;
    for (float& value : scaled) value *= scale;
    // Sums that overflow: a1 is u (a1 + a2) / 2 there.
    if (scale > 1)
      for (float& value : scaled) value = std::min(value * 1.5F, 0x1.fffffep127F);
    mvue_pairs_reference(random, MaskRun{scaled.data(), slow.data(), nullptr, kPairs, 0});
    on_every_target([&] {
      mvue_pairs(random, MaskRun{scaled.data(), fast.data(), nullptr, kPairs, 0});
      CHECK(same_bits(fast, slow));
    });
  }
  // In place, and the mask alone.
  std::vector<float> here = x;
  mvue_pairs(random, MaskRun{here.data(), here.data(), nullptr, kPairs, 0});
  CHECK(same_bits(here, slow));
  std::vector<std::uint8_t> keep(x.size());
  mvue_pairs(random, MaskRun{x.data(), nullptr, keep.data(), kPairs, 0});
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += keep[i] != (slow[i] != 0 ? 1 : 0);
  CHECK(wrong == 0);
}

TEST_CASE("every pair of a sample is unbiased, and its variance 2 a1 a2", "[fast]") {
  constexpr std::int64_t kDraws = 100000;
  for (const char* law : {"normal", "laplace", "lognormal:0.5", "lognormal:1", "lognormal:2"}) {
    INFO(law);
    const std::vector<float> x = sample(law, 6);
    for (std::size_t p = 0; p < x.size(); p += 2) {
      const std::vector<float> pair(x.begin() + p, x.begin() + p + 2);
      const Moments m = moments(mvue_pairs, pair, kDraws, mask_source(20 + p));
      const double expected = estimator_variance(Estimator::exact, kOneOfTwo, pair.data());
      CHECK(expected == 2 * std::fabs(double{pair[0]} * pair[1]));
      for (int i = 0; i < 2; ++i)
        CHECK(std::fabs(m.mean[i] - pair[i]) <= kErrors * std::sqrt(expected / 2 / kDraws));
      CHECK(std::fabs(m.error - expected) <= kErrors * std::sqrt(m.error_variance / kDraws));
    }
  }
}

}  // namespace mvue_test

// Absorb mean: the published example, sums that stay, the order of additions, and what is not
// finite.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "policies/mask/mask_tensor.hpp"
#include "tests/catch.hpp"

namespace mask_tensor_absorb_test {

using namespace numemu::policies;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> absorbed(std::int64_t size, const std::vector<float>& x,
                            const std::vector<std::uint8_t>& keep) {
  std::vector<float> y(x.size(), -7.0F), over = x;
  const auto groups = static_cast<std::int64_t>(x.size()) / size;
  absorb_pruned(groups, size, x.data(), keep.data(), y.data());
  absorb_pruned(groups, size, over.data(), keep.data(), over.data());
  REQUIRE(std::memcmp(y.data(), over.data(), y.size() * sizeof(float)) == 0);
  return y;
}

std::uint32_t bits(float x) {
  std::uint32_t result = 0;
  std::memcpy(&result, &x, sizeof x);
  return result;
}

}  // namespace

TEST_CASE("absorb: the published example", "[fast]") {
  // sparsity.md, 2f, vector 5.
  const std::vector<float> y = absorbed(4, {4, 1, -3, 0.5F, 2, 2, -1, 8}, {1, 0, 1, 0, 1, 0, 0, 1});
  CHECK(y == std::vector<float>{4.75F, 0, -2.25F, 0, 2.5F, 0, 0, 8.5F});
}

TEST_CASE("absorb: group sums stay, whatever the mask", "[fast]") {
  // Whole numbers and one, two, four or eight kept: nothing is rounded.
  std::mt19937 generator(2);
  constexpr std::int64_t kSize = 8, kGroups = 500;
  std::vector<float> x(kSize * kGroups);
  std::vector<std::uint8_t> keep(x.size());
  for (float& v : x) v = static_cast<float>(generator() % 2001) - 1000;
  for (std::size_t g = 0; g < kGroups; ++g) {
    std::uint32_t left = 1U << generator() % 4;
    while (left > 0) {
      std::uint8_t& k = keep[g * kSize + generator() % kSize];
      left -= k == 0 ? 1 : 0;
      k = 1;
    }
  }
  const std::vector<float> y = absorbed(kSize, x, keep);
  for (std::size_t g = 0; g < kGroups; ++g) {
    double before = 0, after = 0;
    for (std::size_t i = g * kSize; i < (g + 1) * kSize; ++i) {
      before += x[i];
      after += y[i];
      REQUIRE((keep[i] != 0 || bits(y[i]) == 0));
    }
    REQUIRE(after == before);
  }
}

TEST_CASE("absorb: the rows of a tile share their own sums only", "[fast]") {
  const std::vector<float> y = absorbed(2, {1, 10, 100, 1000}, {1, 0, 0, 1});
  CHECK(y == std::vector<float>{11, 0, 0, 1100});
}

TEST_CASE("absorb: additions ascend in float64, and one rounding follows", "[fast]") {
  CHECK(absorbed(4, {1, 0x1p60F, 1, -0x1p60F}, {1, 0, 0, 0})[0] == 1);  // 2^60 + 1 is 2^60
  CHECK(absorbed(4, {1, 0x1p60F, -0x1p60F, 1}, {1, 0, 0, 0})[0] == 2);
  // 1 + 2^-24 + 2^-50 is above the middle; its two terms one after the other would be below.
  CHECK(absorbed(3, {1, 0x1p-24F, 0x1p-50F}, {1, 0, 0})[0] == 1 + 0x1p-23F);
}

TEST_CASE("absorb: nothing to share leaves every bit; nothing kept leaves zeros", "[fast]") {
  const std::vector<float> y = absorbed(2, {-0.0F, 0.0F, 3, 5, -1, 1}, {1, 0, 0, 0, 1, 1});
  CHECK(bits(y[0]) == 0x80000000U);
  CHECK(bits(y[1]) == 0);
  CHECK(y == std::vector<float>{0, 0, 0, 0, -1, 1});
}

TEST_CASE("absorb: overflow stays seen", "[fast]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), large = 3e38F;
  CHECK(absorbed(2, {1, -kInfinity}, {1, 0}) == std::vector<float>{-kInfinity, 0});
  CHECK(absorbed(2, {kInfinity, 1}, {1, 0}) == std::vector<float>{kInfinity, 0});
  CHECK(absorbed(2, {large, large}, {1, 0}) == std::vector<float>{kInfinity, 0});
  const std::vector<float> y =
      absorbed(3, {1, 1, -nan, 1, kInfinity, -kInfinity}, {1, 1, 0, 1, 0, 0});
  for (const std::size_t i : {0, 1, 3}) CHECK(bits(y[i]) == 0x7fc00000U);
  for (const std::size_t i : {2, 4, 5}) CHECK(bits(y[i]) == 0);
}

}  // namespace mask_tensor_absorb_test

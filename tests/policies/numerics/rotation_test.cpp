// Rotations against the reference, and the norm that they keep.
#include "policies/numerics/rotation.hpp"

#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/catch.hpp"

namespace numemu::policies::rotation_test {
namespace {

std::vector<float> noise(std::int64_t n, bool special) {
  std::mt19937 generator(static_cast<unsigned>(n));
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = normal(generator);
  if (!special || n < 4) return x;
  x[0] = -std::nanf("");
  x[static_cast<std::size_t>(n / 2)] = std::numeric_limits<float>::infinity();
  x[static_cast<std::size_t>(n - 1)] = -std::numeric_limits<float>::infinity();
  return x;
}

std::int64_t differences(const std::vector<float>& a, const std::vector<float>& b) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    n += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  return n;
}

TEST_CASE("rotations have the bits of the reference on every instruction set", "[fast]") {
  for (const std::int64_t block : {2, 4, 8, 16, 32, 64, 128, 8192}) {
    for (const std::int64_t beyond : {0, 3}) {  // positions after the last whole block
      const std::int64_t length = (block > 1000 ? 1 : 2) * block + beyond % block;
      const std::vector<float> signs = random_signs({.seed = 9}, length);
      for (const std::int64_t outer : {1, 2, 37}) {
        for (const std::int64_t inner : {1, 5, 16, 140}) {
          if (block > 1000 && outer * inner > 40) continue;
          for (const bool special : {false, true}) {
            const std::vector<float> numbers = noise(outer * length * inner, special);
            std::vector<float> want = numbers;
            const bool left = outer == 2;
            rotate_reference(want.data(), outer, inner, signs, block, left);
            for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
              hwy::SetSupportedTargetsForTest(target);
              std::vector<float> x = numbers, y(numbers.size());
              rotate(x.data(), y.data(), outer, inner, signs, block, left);
              rotate(x.data(), x.data(), outer, inner, signs, block, left);
              INFO(hwy::TargetName(target)
                   << ", block " << block << ", " << outer << " x " << length << " x " << inner);
              CHECK(differences(x, want) == 0);
              CHECK(differences(y, want) == 0);
            }
          }
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("left and right rotations of one vector have the product of the vector with itself",
          "[fast]") {
  const std::vector<float> signs = random_signs({.seed = 2}, 128);
  std::vector<float> a = noise(128, false), b = a;
  double before = 0, after = 0;
  for (const float v : a) before += double{v} * v;
  rotate(a.data(), a.data(), 1, 1, signs, 64, true);
  rotate(b.data(), b.data(), 1, 1, signs, 64, false);
  for (std::size_t i = 0; i < a.size(); ++i) after += double{a[i]} * b[i];
  // 7 roundings of at most 2^-24 each in either factor.
  CHECK(std::fabs(after - before) < 14 * 0x1p-24 * before);
}

}  // namespace
}  // namespace numemu::policies::rotation_test

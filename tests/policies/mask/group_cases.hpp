// Groups to prune: all over a small set, random ones with ties and specials, and their results.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Outcome {
  std::vector<float> y;
  std::vector<std::uint8_t> keep;
  friend bool operator==(const Outcome& a, const Outcome& b) {
    if (a.keep != b.keep || a.y.size() != b.y.size()) return false;
    return a.y.empty() || std::memcmp(a.y.data(), b.y.data(), a.y.size() * sizeof(float)) == 0;
  }
};

using Prune = std::function<void(const MaskRun&)>;

/// Both results of `count` decisions about x, numbered from `first`.
inline Outcome pruned(const Prune& prune, const std::vector<float>& x, std::int64_t count,
                      std::uint64_t first = 0) {
  Outcome out{std::vector<float>(x.size(), -7.0F), std::vector<std::uint8_t>(x.size(), 9)};
  prune(
      {.x = x.data(), .y = out.y.data(), .keep = out.keep.data(), .count = count, .first = first});
  return out;
}

/// Values alone, masks alone and in-place results equal those computed together.
inline bool same_asked_apart(const Prune& prune, const std::vector<float>& x, std::int64_t count,
                             const Outcome& want) {
  Outcome values{std::vector<float>(x.size()), want.keep}, mask{want.y, want.keep};
  prune({.x = x.data(), .y = values.y.data(), .count = count});
  mask.keep.assign(x.size(), 9);
  prune({.x = x.data(), .keep = mask.keep.data(), .count = count});
  Outcome over{x, std::vector<std::uint8_t>(x.size(), 9)};
  prune({.x = over.y.data(), .y = over.y.data(), .keep = over.keep.data(), .count = count});
  return values == want && mask == want && over == want;
}

/// The group of number `index` among all whose elements are of `set`.
inline std::vector<float> group_of(const std::vector<float>& set, int group, std::int64_t index) {
  std::vector<float> x;
  const auto size = static_cast<std::int64_t>(set.size());
  for (int i = 0; i < group; ++i, index /= size)
    x.push_back(set[static_cast<std::size_t>(index % size)]);
  return x;
}

inline std::int64_t power(std::int64_t base, int exponent) {
  std::int64_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// Few values and many ties, signs, specials, now and then any bit pattern.
inline std::vector<float> mixed_elements(std::int64_t n, std::uint32_t seed) {
  std::mt19937 generator(seed);
  const float some[] = {0.0F, -0.0F, 1.0F,      -1.0F,      0x1p-149F, -0x1p-149F,
                        2.0F, -3.0F, kInfinity, -kInfinity, kNaN,      -kNaN};
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) {
    const std::uint32_t bits = generator();
    const std::uint32_t kind = generator() % 16;
    v = kind < 12 ? some[kind] : static_cast<float>(static_cast<std::int32_t>(bits % 9) - 4);
    if (kind == 15) std::memcpy(&v, &bits, sizeof v);
  }
  return x;
}

/// The mask as the bit string that tells which of two comes first: position 0 is the top bit.
inline std::uint32_t bit_string(std::uint32_t kept, int group) {
  std::uint32_t string = 0;
  for (int i = 0; i < group; ++i) string = string << 1 | (kept >> i & 1U);
  return string;
}

}  // namespace numemu::policies::test

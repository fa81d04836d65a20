// Every N:M pattern up to a group size, and groups by brute force, for the tests of sparse
// operands.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit::test {

/// Every pattern whose group is at least `from` and at most `to`, pairwise ones last.
inline std::vector<Pattern> patterns(int from, int to) {
  std::vector<Pattern> all;
  for (const bool pairwise : {false, true}) {
    const int step = pairwise ? 2 : 1;
    for (int m = step; m <= to; m += step) {
      if (m < from) continue;
      for (int n = step; n <= m; n += step) all.push_back({{n, m}, pairwise});
    }
  }
  return all;
}

inline bool has_bit(std::uint32_t bits, int i) { return (bits >> i & 1) != 0; }

/// Whether `bits` is a mask of the pattern: exactly N of M, in whole pairs where pairwise.
inline bool is_mask(const Pattern& p, std::uint32_t bits) {
  int count = 0;
  for (int i = 0; i < p.group; ++i) count += has_bit(bits, i);
  if (count != p.kept) return false;
  for (int i = 0; p.pairwise && i < p.group; i += 2) {
    const std::uint32_t pair = bits >> i & 3;
    if (pair == 1 || pair == 2) return false;
  }
  return true;
}

/// Every mask of the pattern, ascending.
inline std::vector<std::uint32_t> masks(const Pattern& p) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t bits = 0; bits < 1u << p.group; ++bits)
    if (is_mask(p, bits)) all.push_back(bits);
  return all;
}

/// The indices of a mask, appended.
inline void append_index(const Pattern& p, std::uint32_t mask, std::vector<std::uint8_t>& index) {
  for (int i = 0; i < p.group; ++i)
    if (has_bit(mask, i)) index.push_back(static_cast<std::uint8_t>(i));
}

}  // namespace numemu::unit::test

// Slow, independent ways to the best transposable mask: every mask, and a table over rows.
#pragma once
#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "policies/mask/tile_mask.hpp"

namespace numemu::policies::testing {

/// Whether a's row-major string of bits is the larger one: the earlier positions are kept.
inline bool keeps_earlier(const TileMask& a, const TileMask& b) {
  for (int i = 0; i < a.size; ++i) {
    const std::uint32_t differ = a.rows[i] ^ b.rows[i];
    if (differ != 0) return a(i, std::countr_zero(differ));
  }
  return false;
}

/// Rows of `size` bits with `kept` set, those that keep earlier columns first.
inline std::vector<std::uint32_t> rows_of(int size, int kept) {
  std::vector<std::uint32_t> rows;
  // The first column is the highest bit here, so that larger numbers keep earlier columns.
  for (std::uint32_t string = (1U << size) - 1; string + 1 != 0; --string) {
    if (std::popcount(string) != kept) continue;
    std::uint32_t row = 0;
    for (int j = 0; j < size; ++j) row |= (string >> (size - 1 - j) & 1U) << j;
    rows.push_back(row);
  }
  return rows;
}

/// All masks with exactly `kept` in every row and column, the largest bit string first.
inline std::vector<TileMask> all_masks(int size, int kept) {
  std::vector<TileMask> masks, parts{TileMask{size}};
  const std::vector<std::uint32_t> rows = rows_of(size, kept);
  for (int i = 0; i < size; ++i) {
    std::vector<TileMask> longer;
    for (const TileMask& part : parts)
      for (const std::uint32_t row : rows) {
        longer.push_back(part);
        longer.back().rows[static_cast<std::size_t>(i)] = row;
        if (!keeps_at_most(longer.back(), kept)) longer.pop_back();
      }
    parts.swap(longer);
  }
  for (const TileMask& mask : parts)
    if (keeps_exactly(mask, kept)) masks.push_back(mask);
  return masks;
}

/// The first of the masks whose sum is largest.
inline TileMask best_of(const std::vector<TileMask>& masks, const std::int64_t* costs) {
  const TileMask* best = &masks[0];
  for (const TileMask& mask : masks)
    if (kept_sum(mask, costs) > kept_sum(*best, costs)) best = &mask;
  return *best;
}

/// The same without all masks: for what the last rows may still keep of every column, the best way
/// (largest sum, then largest bit string).
inline TileMask best_by_table(const std::int64_t* costs, int size, int kept) {
  struct Way {
    std::int64_t sum;
    TileMask mask;
  };
  using Left = std::vector<int>;  // of every column, for rows i and on
  const std::vector<std::uint32_t> rows = rows_of(size, kept);
  std::map<Left, Way> ways{{Left(static_cast<std::size_t>(size), 0), {0, TileMask{size}}}};
  for (int i = size - 1; i >= 0; --i) {
    std::map<Left, Way> longer;
    for (const auto& [left, way] : ways)
      for (const std::uint32_t row : rows) {
        Left more = left;
        Way next = way;
        bool fits = true;
        for (int j = 0; j < size; ++j) {
          if ((row >> j & 1U) == 0) continue;
          next.sum += costs[i * size + j];
          fits = fits && ++more[static_cast<std::size_t>(j)] <= kept;
        }
        if (!fits) continue;
        next.mask.rows[static_cast<std::size_t>(i)] = row;
        const auto [at, fresh] = longer.try_emplace(more, next);
        if (!fresh && (next.sum > at->second.sum ||
                       (next.sum == at->second.sum && keeps_earlier(next.mask, at->second.mask))))
          at->second = next;
      }
    ways.swap(longer);
  }
  return ways.at(Left(static_cast<std::size_t>(size), kept)).mask;
}

}  // namespace numemu::policies::testing

#include "policies/mask/tile_mask.hpp"

#include <bit>
#include <string>

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

std::array<int, kMostTile> column_counts(const TileMask& mask) {
  std::array<int, kMostTile> counts = {};
  for (int i = 0; i < mask.size; ++i)
    for (int j = 0; j < mask.size; ++j) counts[j] += mask(i, j);
  return counts;
}

}  // namespace

int kept_count(const TileMask& mask) {
  int count = 0;
  for (int i = 0; i < mask.size; ++i) count += std::popcount(mask.rows[i]);
  return count;
}

bool keeps_at_most(const TileMask& mask, int most) {
  const std::array<int, kMostTile> columns = column_counts(mask);
  bool held = true;
  for (int i = 0; i < mask.size; ++i)
    held &= std::popcount(mask.rows[i]) <= most && columns[i] <= most;
  return held;
}

bool keeps_exactly(const TileMask& mask, int count) {
  return keeps_at_most(mask, count) && kept_count(mask) == mask.size * count;
}

bool keeps_earlier(const TileMask& a, const TileMask& b) {
  for (int i = 0; i < a.size; ++i) {
    const std::uint32_t differ = a.rows[i] ^ b.rows[i];
    if (differ != 0) return a(i, std::countr_zero(differ));
  }
  return false;
}

template <class Cost>
Cost kept_sum(const TileMask& mask, const Cost* costs) {
  Cost sum = 0;
  for (int i = 0; i < mask.size; ++i)
    for (std::uint32_t left = mask.rows[i]; left != 0; left &= left - 1)
      sum += costs[i * mask.size + std::countr_zero(left)];
  return sum;
}

template std::int64_t kept_sum<std::int64_t>(const TileMask&, const std::int64_t*);
template Wide kept_sum<Wide>(const TileMask&, const Wide*);

TileMask tile_mask(const std::uint8_t* keep, int size) {
  TileMask mask{size};
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      mask.rows[i] |= static_cast<std::uint32_t>(keep[i * size + j] != 0) << j;
  return mask;
}

void write_tile(const TileMask& mask, const float* x, float* y, std::uint8_t* keep) {
  for (int i = 0, at = 0; i < mask.size; ++i)
    for (int j = 0; j < mask.size; ++j, ++at) {
      const bool kept = mask(i, j);
      if (y != nullptr) y[at] = kept ? x[at] : 0.0F;
      if (keep != nullptr) keep[at] = static_cast<std::uint8_t>(kept);
    }
}

double pruned_squares(const TileMask& mask, const float* x) {
  double sum = 0;
  for (int i = 0; i < mask.size; ++i)
    for (int j = 0; j < mask.size; ++j, ++x)
      if (!mask(i, j)) sum += double{*x} * *x;
  return sum;
}

void require_tile(const char* rule, const unit::Pattern& p) {
  const std::string text = std::to_string(p.kept) + ":" + std::to_string(p.group);
  if (p.pairwise)
    throw Error(std::string(rule) + ": expected a pattern of single elements, not " + text +
                " of pairs");
  if (p.kept < 1 || p.kept > p.group || p.group > kMostTile)
    throw Error(std::string(rule) + ": expected N:M with 1 <= N <= M <= " +
                std::to_string(kMostTile) + ", not " + text);
}

}  // namespace numemu::policies

#include "policies/mask/tile_mask.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
constexpr int kFraction = 23, kBias = 127 + kFraction;

// A sum has at most 1024 terms (10 bits), and potentials are sums of at most 64 differences.
constexpr int kSumBits = 10;
constexpr int kNarrowBits = 62, kWideBits = 126;

std::uint32_t magnitude_of(float x) { return std::bit_cast<std::uint32_t>(x) & kMagnitude; }

// |x| = significand 2^(exponent - kBias).
int exponent_of(std::uint32_t magnitude) {
  return std::max(1, static_cast<int>(magnitude >> kFraction));
}
std::uint32_t significand_of(std::uint32_t magnitude) {
  const std::uint32_t fraction = magnitude & ((1U << kFraction) - 1);
  return magnitude >> kFraction == 0 ? fraction : fraction | 1U << kFraction;
}

int lowest_bit(const float* x, int elements, int otherwise) {
  int lowest = otherwise;
  for (int i = 0; i < elements; ++i) {
    const std::uint32_t magnitude = magnitude_of(x[i]);
    if (magnitude == 0 || magnitude >= kInfinity) continue;
    lowest = std::min(lowest, exponent_of(magnitude) + std::countr_zero(significand_of(magnitude)));
  }
  return lowest;
}

}  // namespace

TileUnit tile_unit(const float* x, int elements) {
  std::uint32_t largest = 0, smallest = kInfinity;  // of the finite ones that are not zero
  bool finite = true;
  for (int i = 0; i < elements; ++i) {
    const std::uint32_t magnitude = magnitude_of(x[i]);
    finite &= magnitude < kInfinity;
    largest = std::max(largest, magnitude < kInfinity ? magnitude : 0);
    smallest = std::min(smallest, magnitude != 0 ? magnitude : kInfinity);
  }
  if (largest == 0) return {};
  const int top = exponent_of(largest) + kFraction + 1;
  // The integer for an infinity is itself a sum.
  const int spare = finite ? kSumBits : 2 * kSumBits;
  const auto fits = [&](int lowest, int bits) { return top - lowest + spare <= bits; };
  int lowest = exponent_of(smallest);  // at least as low as the lowest set bit
  bool exact = true;
  if (!fits(lowest, kNarrowBits)) {
    lowest = lowest_bit(x, elements, top);
    exact = fits(lowest, kWideBits);
    if (!exact) lowest = top + spare - kWideBits;
  }
  return {lowest - kBias, fits(lowest, kNarrowBits), exact};
}

template <class Cost>
void tile_costs(const TileUnit& unit, const float* x, int elements, Cost* costs) {
  const int lowest = unit.lowest + kBias;
  Cost sum = 0;
  bool finite = true;
  for (int i = 0; i < elements; ++i) {
    const std::uint32_t magnitude = magnitude_of(x[i]);
    if (magnitude >= kInfinity) {
      finite = false;
      continue;
    }
    const int shift = exponent_of(magnitude) - lowest;
    const Cost significand = significand_of(magnitude);
    costs[i] = shift >= 0 || magnitude == 0 ? significand << std::max(shift, 0)
                                            : significand >> std::min(-shift, kFraction + 1);
    sum += costs[i];
  }
  if (finite) return;
  for (int i = 0; i < elements; ++i)
    if (magnitude_of(x[i]) >= kInfinity) costs[i] = sum + 1;
}

template void tile_costs<std::int64_t>(const TileUnit&, const float*, int, std::int64_t*);
template void tile_costs<Wide>(const TileUnit&, const float*, int, Wide*);

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

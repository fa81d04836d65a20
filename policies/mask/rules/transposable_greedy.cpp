// Mask rule transposable-greedy: the heaviest elements of a tile first, then rows and columns
// filled up. Both greedy masks walk one sorted list of a tile's elements.
#include "policies/mask/rules/transposable_greedy.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace numemu::policies {
namespace {

constexpr int kMostElements = kMostTile * kMostTile;
constexpr int kPlaceBits = std::bit_width(unsigned{kMostElements - 1});

// Places of a tile's elements, the heaviest first.
class Order {
 public:
  Order(const float* x, int elements) : count_(elements) {
    constexpr std::uint32_t kInfinity = 0x7f800000;
    for (int i = 0; i < elements; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff;
      // The magnitude above, so that one comparison of integers settles ties, too.
      keys_[i] = std::uint64_t{std::min(magnitude, kInfinity)} << kPlaceBits |
                 static_cast<unsigned>(kMostElements - 1 - i);
    }
    std::sort(keys_, keys_ + count_, std::greater<>());
  }

  int operator[](int rank) const {
    return kMostElements - 1 - static_cast<int>(keys_[rank] & (kMostElements - 1));
  }

 private:
  int count_;
  std::uint64_t keys_[kMostElements];
};

// One more for `row` and for `column`: (row, to) and (of, column) in place of (of, to), or where
// these are (row, column) itself just that.
struct Exchange {
  int row = 0, column = 0;
  int to = 0, of = 0;
};

// Offers every way to give row i and column j one more.
template <class Offer>
void for_each_exchange(const TileMask& mask, int i, int j, Offer&& offer) {
  if (!mask(i, j)) offer(Exchange{i, j, j, i});
  for (int c = 0; c < mask.size; ++c) {
    if (c == j || mask(i, c)) continue;
    for (int r = 0; r < mask.size; ++r)
      if (r != i && mask(r, c) && !mask(r, j)) offer(Exchange{i, j, c, r});
  }
}

void flip(TileMask& mask, int i, int j) { mask.rows[i] ^= std::uint32_t{1} << j; }

template <class Cost>
TileMask filled_in(const TileUnit& unit, const float* x, const TileMask& mask, int kept) {
  Cost costs[kMostElements];
  tile_costs(unit, x, mask.size * mask.size, costs);
  return fill_tile(mask, costs, kept);
}

}  // namespace

TileMask keep_heaviest(const float* x, int size, int kept) {
  const Order order(x, size * size);
  TileMask mask{size};
  int rows[kMostTile] = {}, columns[kMostTile] = {};  // kept so far
  for (int rank = 0; rank < size * size; ++rank) {
    const int i = order[rank] / size, j = order[rank] % size;
    if (rows[i] == kept || columns[j] == kept) continue;
    flip(mask, i, j);
    ++rows[i];
    ++columns[j];
  }
  return mask;
}

TileMask prune_lightest(const float* x, int size, int kept) {
  const Order order(x, size * size);
  TileMask mask{size};
  for (int i = 0; i < size; ++i) mask.rows[i] = ~std::uint32_t{0} >> (kMostTile - size);
  int rows[kMostTile] = {}, columns[kMostTile] = {};  // pruned so far
  for (int rank = size * size - 1; rank >= 0; --rank) {
    const int i = order[rank] / size, j = order[rank] % size;
    if (rows[i] >= size - kept && columns[j] >= size - kept) continue;
    flip(mask, i, j);
    ++rows[i];
    ++columns[j];
  }
  return mask;
}

template <class Cost>
TileMask fill_tile(TileMask mask, const Cost* costs, int kept) {
  int rows[kMostTile] = {}, columns[kMostTile] = {};
  for (int i = 0; i < mask.size; ++i)
    for (int j = 0; j < mask.size; ++j) {
      rows[i] += mask(i, j);
      columns[j] += mask(i, j);
    }
  const auto cost = [&](int i, int j) { return costs[i * mask.size + j]; };
  for (;;) {
    Cost best_gain = -1;
    Exchange best;
    for (int i = 0; i < mask.size; ++i) {
      if (rows[i] >= kept) continue;
      for (int j = 0; j < mask.size; ++j) {
        if (columns[j] >= kept) continue;
        for_each_exchange(mask, i, j, [&](const Exchange& e) {
          const Cost gain =
              e.of == i ? cost(i, j) : cost(i, e.to) + cost(e.of, j) - cost(e.of, e.to);
          if (gain <= best_gain) return;
          best_gain = gain;
          best = e;
        });
      }
    }
    if (best_gain < 0) return mask;
    flip(mask, best.row, best.to);
    if (best.of != best.row) {
      flip(mask, best.of, best.to);
      flip(mask, best.of, best.column);
    }
    ++rows[best.row];
    ++columns[best.column];
  }
}

template TileMask fill_tile<std::int64_t>(TileMask, const std::int64_t*, int);
template TileMask fill_tile<Wide>(TileMask, const Wide*, int);

TileMask keep_heaviest_filled(const float* x, int size, int kept) {
  const TileMask mask = keep_heaviest(x, size, kept);
  if (keeps_exactly(mask, kept)) return mask;
  const TileUnit unit = tile_unit(x, size * size);
  return unit.narrow ? filled_in<std::int64_t>(unit, x, mask, kept)
                     : filled_in<Wide>(unit, x, mask, kept);
}

extern const MaskRule mask_transposable_greedy{
    .name = "transposable-greedy",
    .summary =
        "tiles with at most N of M in rows and columns, the heaviest first; at least half "
        "the best sum",
    .source = "greedy b-matching; Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::tile,
    .random = false,
    .unbiased = false,
    .options = {"layout", "repair", "refresh"},
    .prune = prune_tiles<keep_heaviest_filled>,
    .error = tile_error<keep_heaviest_filled>,
    .check = [](const MaskPolicy& policy) { require_tile("transposable-greedy", policy.pattern); }};

}  // namespace numemu::policies

// Chains over a whole product: gives each side its role and runs the tiles.
#include "emu/unit/chain/chain.hpp"

#include "emu/unit/chain/chain_tile.hpp"

namespace numemu::unit {
namespace {

/// Lanes a panel of the widest target takes; a shorter last panel wastes the rest.
constexpr std::int64_t kChainPanel = 16;

/// Whether each row of A is best read in place: the columns of B fill vectors, they are so few that
/// packing A would cost as much as multiplying, and a row is a few runs of neighbours.
template <class T, class Out>
bool rows_in_place(const Chain<T, Out>& chain) {
  constexpr std::int64_t kMostColumns = 64, kShortestRun = 8;
  if (chain.n % kChainPanel != 0 || chain.n > kMostColumns || chain.m <= chain.n) return false;
  std::int64_t runs = 1;
  for (std::int64_t k = 1; k < chain.k; ++k) runs += chain.a.depth[k] != chain.a.depth[k - 1] + 1;
  return runs * kShortestRun <= chain.k;
}

template <class T, class Out>
void run(const Chain<T, Out>& chain) {
  ChainTile<T, Out> whole;
  whole.k = chain.k;
  whole.c = chain.c;
  whole.d = chain.d;
  whole.rows_in_place = rows_in_place(chain);
  const bool swap = !whole.rows_in_place && lanes_are_a(chain.m, chain.n, kChainPanel);
  whole.rows = swap ? chain.b : chain.a;
  whole.lanes = swap ? chain.a : chain.b;
  whole.row_stride = swap ? 1 : chain.n;
  whole.lane_stride = swap ? chain.n : 1;
  const std::int64_t rows = swap ? chain.n : chain.m, lanes = swap ? chain.m : chain.n;
  const TileShape shape{.granule = lanes >= 256 ? 2 * kChainPanel : kChainPanel};
  for_each_part(whole, rows, lanes, chain.k, shape,
                [](const ChainTile<T, Out>& part) { run_chain_tile(part); });
}

}  // namespace

void run_chain(const Chain<float, float>& chain) { run(chain); }
void run_chain(const Chain<double, float>& chain) { run(chain); }
void run_chain(const Chain<double, double>& chain) { run(chain); }

}  // namespace numemu::unit

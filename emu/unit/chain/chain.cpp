// Chains over a whole product: gives each side its role and runs the tiles.
#include "emu/unit/chain/chain.hpp"

#include <bit>
#include <cmath>
#include <string_view>

#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"

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

namespace {

/// The register, C and D are all this format.
bool all_of(const UnitDescription& u, std::string_view format) {
  const auto is = [&](const Format* f) { return f != nullptr && f->name == format; };
  return is(u.accumulator.format) && is(c_format(u)) && is(result_format(u));
}

bool multiply_float32(const Gemm& g) {
  if (!fits_float32(*g.a.format) || !fits_float32(*g.b.format)) return false;
  const Source<float> a = decode_floats(g.a, g.m, g.k), b = decode_floats(g.b, g.n, g.k);
  Chain<float, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
  return true;
}

/// NaN is made canonical at the end: which one it is on the way changes nothing else.
bool multiply_float64(const Gemm& g, std::uint64_t nan_code) {
  if (!chain_fuses()) return false;
  const auto a = decode_numbers<double>(g.a, g.m, g.k), b = decode_numbers<double>(g.b, g.n, g.k);
  auto* d = static_cast<double*>(g.d);
  Chain<double, double> chain{
      g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const double*>(g.c);
  chain.d = d;
  run_chain(chain);
  const double nan = std::bit_cast<double>(nan_code);
  for (std::int64_t i = 0; i < g.m * g.n; ++i) d[i] = std::isnan(d[i]) ? nan : d[i];
  return true;
}

}  // namespace

bool multiply_float_chain(const UnitDescription& u, const Gemm& g) {
  if (u.core != CoreKind::chain) return false;
  if (all_of(u, "float32") && u.nan_code == 0x7fc00000) return multiply_float32(g);
  return all_of(u, "float64") && multiply_float64(g, u.nan_code);
}

}  // namespace numemu::unit

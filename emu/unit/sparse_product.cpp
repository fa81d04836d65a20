// The sparse product, row by row, over threads.
#include "emu/unit/sparse_product.hpp"

#include <atomic>

#include "emu/unit/fast_paths.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

bool multiply_sparse(const UnitDescription& u, const Gemm& g) {
  if (u.accumulator.rounding.stochastic() || u.scaling.block != 0) return false;
  UnitDescription dense = u;
  dense.sparsity = {};
  const std::int64_t kept = kept_depth(u.sparsity, g.k);
  const int c_bytes = bytes_of(u.c != nullptr ? u.c : u.accumulator.format, u.accumulator);
  const int d_bytes = bytes_of(u.d != nullptr ? u.d : u.accumulator.format, u.accumulator);
  const auto offset = [&](const void* array, std::int64_t row, int bytes) {
    return static_cast<const std::byte*>(array) + row * g.n * bytes;
  };
  const auto run_row = [&](std::int64_t row) {
    Gather a = *g.a.gather, b = *g.b.gather;
    a.row = {g.a.gather->row[static_cast<std::size_t>(row)]};
    b.depth.resize(static_cast<std::size_t>(kept));
    gather_kept(u.sparsity, g.kept + row * kept, kept, g.b.gather->depth.data(), b.depth.data());
    Gemm one = g;
    one.m = 1;
    one.k = kept;
    one.a.gather = &a;
    one.b.gather = &b;
    one.kept = nullptr;
    one.a.prepared = one.b.prepared = nullptr;  // of other gathers
    if (g.c != nullptr) one.c = offset(g.c, row, c_bytes);
    one.d = const_cast<std::byte*>(offset(g.d, row, d_bytes));
    return multiply_fast(dense, one);
  };
  // The first row shows whether the dense unit has a fast path for such a product.
  if (!run_row(0)) return false;
  std::atomic<bool> covered = true;
  for_each_tile(g.m - 1, 1, g.n * kept, {.rows = 1, .lanes = 1, .granule = 1},
                [&](const Tile& tile) {
                  for (std::int64_t i = tile.row_begin; i < tile.row_end && covered; ++i) {
                    if (!run_row(i + 1)) covered = false;
                  }
                });
  return covered;
}

}  // namespace numemu::unit

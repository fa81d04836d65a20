// A rectangle of outputs of rounded multiply-adds, with its two sides in the roles of the
// registers.
#pragma once
#include <cstdint>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/mac/plan.hpp"
#include "formats/random.hpp"

namespace numemu::unit::mac {

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. C(i, j) = c[i * row_stride + j * lane_stride]; result (i, j) goes to
/// d[(i - row_begin) * d_row_stride + (j - lane_begin) * d_lane_stride].
template <class T>
struct MacTile {
  const Plan* plan = nullptr;
  int chunk = 0;
  ChainSide<T> rows, lanes;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0, k = 0;
  const T* c = nullptr;  ///< null: +0
  std::int64_t row_stride = 0, lane_stride = 1;
  T* d = nullptr;
  std::int64_t d_row_stride = 0, d_lane_stride = 1;
  /// Stochastic plans; their rows are those of the product, and their lanes its columns.
  RandomSource random = {};
  std::int64_t columns = 0;
};

/// One tile on the calling thread, which must hold a FloatGuard. The best target of this CPU is
/// chosen at run time.
void run_mac_tile(const MacTile<float>&);
void run_mac_tile(const MacTile<double>&);

}  // namespace numemu::unit::mac

// A rectangle of outputs of a two-stage fused unit, with the unit reduced to numbers.
#pragma once
#include <cstdint>

#include "emu/unit/chain/chain.hpp"

namespace numemu::unit {

/// C vanishes at no distance.
constexpr int kNeverDropped = 1000;

/// The two alignments. Exponents as in Alignment and SecondAlignment; all cuts of the second one
/// are downwards.
struct StagedRule {
  int group = 0;          ///< products of one step
  int parts = 1;          ///< 2: products of even and of odd k are summed apart
  int fraction_bits = 0;  ///< F
  int zero_exponent = 0;  ///< of a zero operand
  int floor = 0;          ///< of the largest exponent; -1000 or less: none
  int sum_bits = 0;       ///< kept of the products' sum where it meets C
  int c_bits = 0;         ///< kept of C there
  int c_dropped = 0;      ///< C vanishes when its exponent is further below

  /// Whether doubles hold every intermediate number exactly; multiply_staged() explains.
  bool fits_double() const;
};

/// Products packed at a time; every group must divide it. A panel of 32 lanes is then 36 KiB, which
/// stays in the first-level cache.
constexpr std::int64_t kStagedSlice = 64;

/// Exponent of the smallest number of float32 that is not subnormal; C counts at least this.
constexpr int kStagedSmallest = -126;

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. Output (i, j) is d[i * row_stride + j * lane_stride].
struct StagedTile {
  StagedRule rule;
  ChainSide<float> rows, lanes;
  int row_emin = 0, lane_emin = 0;  ///< exponents of the smallest normal numbers of the formats
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0;
  std::int64_t k = 0;         ///< products
  std::int64_t padded_k = 0;  ///< the same in whole instructions, the rest is +0 times +0
  std::int64_t row_stride = 0, lane_stride = 0;
  const float* c = nullptr;
  float* d = nullptr;
};

/// One tile on the calling thread, which must hold a FloatGuard.
void run_staged_tile(const StagedTile&);

}  // namespace numemu::unit

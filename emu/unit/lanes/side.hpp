// One operand of a product as float32 lanes: decoded fast, flushed, and padded to whole
// instructions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The source as decode_floats() gives it, without a table for 16-bit formats.
Source<float> decode_lanes(const Operand&, std::int64_t rows, std::int64_t depth);

/// The bits of the magnitudes an operand of rows x depth elements can read: the largest, and the
/// smallest that is not zero (all ones: there is none).
struct Magnitudes {
  std::uint32_t least = 0, most = 0;
};
Magnitudes magnitudes(const Operand&, const Source<float>&, std::int64_t rows, std::int64_t depth);
/// Every value is a multiple of 2^lowest_bit(); 0 where all are zero.
int lowest_bit(const Operand&, const Magnitudes&);
/// The smallest t with |x| < 2^t, for the bits of a magnitude; 129 for NaN and infinity.
int top_of(std::uint32_t magnitude);
/// Smallest t with n <= 2^t.
int log2_ceil(std::int64_t n);

/// How a unit reads its operands.
struct LaneRule {
  std::int64_t instruction = 1;  ///< K is padded with +0 to a multiple of this
  bool flush = false;            ///< subnormal numbers of the format become zeros of their sign
  bool to_plus_zero = false;     ///< and these, as -0, become +0
};

/// Whether copies of both operands, padded to `instruction`, have 32-bit offsets.
bool dense_copies_fit(const Gemm&, std::int64_t instruction);

/// An operand ready for run_chain_tile() and its like: element (r, k) = values[row[r] + depth[k]].
class LaneSide {
 public:
  /// `source` must outlive this; it is read in place where it can be. The rule must follow from the
  /// unit and the operand.
  LaneSide(const Operand&, const Source<float>& source, std::int64_t rows, std::int64_t depth,
           const LaneRule&);
  ChainSide<float> side() const { return {values_, row_, depth_}; }
  /// Offsets of the depths, padding included.
  const std::int32_t* depth() const { return depth_; }

 private:
  struct Dense {
    std::vector<float> values;
    std::vector<std::int32_t> row, depth;
  };
  static Dense dense_copy(const Operand&, const Source<float>& source, std::int64_t rows,
                          std::int64_t depth, std::int64_t padded, const LaneRule&);

  std::shared_ptr<const Dense> dense_;
  const float* values_;
  const std::int32_t *row_, *depth_;
};

/// The parts of a product of float32 whose longer side lies along the lanes; K is padded to whole
/// instructions.
template <class Run>
void for_each_lane_part(const Gemm& g, const LaneSide& a, const LaneSide& b,
                        std::int64_t instruction, const float* c, const Run& run) {
  const bool swap = g.m > g.n;
  ChainTile<float, float> whole;
  whole.rows = swap ? b.side() : a.side();
  whole.lanes = swap ? a.side() : b.side();
  whole.row_stride = swap ? 1 : g.n;
  whole.lane_stride = swap ? g.n : 1;
  whole.k = (g.k + instruction - 1) / instruction * instruction;
  whole.c = c;
  whole.d = static_cast<float*>(g.d);
  for_each_part(whole, std::min(g.m, g.n), std::max(g.m, g.n), g.k, {.rows = 256, .granule = 16},
                run);
}

}  // namespace numemu::unit

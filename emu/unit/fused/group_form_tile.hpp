// A rectangle of outputs of a block-scaled FP4 unit.
#pragma once
#include <cstdint>
#include <memory>

#include "emu/unit/operand.hpp"

namespace numemu::unit {

/// One side of the product. `exponents` and `significands` are rows x groups: of the scale of each
/// group of 16 elements, groups beyond K included.
struct GroupSide {
  Source<float> values;
  std::unique_ptr<std::int32_t[]> exponents;
  std::unique_ptr<float[]> significands;
};

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end).
struct GroupTile {
  const GroupSide *a = nullptr, *b = nullptr;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0;
  std::int64_t k = 0;       ///< elements present
  std::int64_t groups = 0;  ///< of 16, a multiple of those of an instruction
  int groups_per_step = 4;
  int fraction_bits = 35;
  std::int64_t stride = 0;  ///< of C and D
  const float* c = nullptr;
  float* d = nullptr;
};

/// On the calling thread, whose rounding must be toward zero. The best target of this CPU.
void run_group_tile(const GroupTile&);
/// Whether that target is any faster than the reference needs to be: it has vectors.
bool group_tiles_exist();

}  // namespace numemu::unit

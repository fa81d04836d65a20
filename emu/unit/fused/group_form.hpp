// Block-scaled FP4 fast: exact group sums in float32, scaled and cut in float64 lanes.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kFusedGroupFields[] = {"core",
                                                         "k",
                                                         "group",
                                                         "accumulator.format",
                                                         "accumulator.rounding",
                                                         "accumulator.overflow_to_infinity",
                                                         "c",
                                                         "d",
                                                         "alignment.fraction_bits",
                                                         "nan_code",
                                                         "scaling.point",
                                                         "scaling.format",
                                                         "scaling.block"};

/// Covers fused units whose addends are scaled sums of 16 products (Scaling::Point::groups) of FP4
/// operands, with a float32 register rounded toward zero. False, with nothing written, where it
/// does not apply: where a sum could leave float32, or the CPU has no fused multiply-add.
bool multiply_fused_groups(const UnitDescription&, const Gemm&);

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

}  // namespace numemu::unit

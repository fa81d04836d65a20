// Fast path of fused units whose products meet C in a second alignment (CDNA3's MFMA).
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kStagedFields[] = {"core",
                                                     "k",
                                                     "group",
                                                     "accumulator.format",
                                                     "c",
                                                     "d",
                                                     "c_entry",
                                                     "alignment.fraction_bits",
                                                     "alignment.zero_exponent",
                                                     "alignment.floor",
                                                     "alignment.parts",
                                                     "second.fraction_bits",
                                                     "second.c_fraction_bits",
                                                     "second.c_dropped",
                                                     "products_overflow",
                                                     "nan_code"};

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the description or the formats: everything but float32 registers rounded to nearest even, dense
/// unscaled floating operands, addends cut toward zero, zeros of exponent -126 and a second
/// alignment. Throws Error as Unit::multiply does.
bool multiply_staged(const UnitDescription&, const Gemm&);

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

}  // namespace numemu::unit

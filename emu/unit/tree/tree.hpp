// Fast paths of units that add a few products by a tree of rounded sums, then C, and of units that
// add them and C exactly.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kTreeFields[] = {"core",
                                                   "k",
                                                   "group",
                                                   "accumulator.format",
                                                   "accumulator.rounding",
                                                   "accumulator.overflow_to_infinity",
                                                   "c",
                                                   "d",
                                                   "tree.leaf",
                                                   "tree.round_products",
                                                   "tree.plus_zero_products",
                                                   "subnormals.flush_inputs",
                                                   "subnormals.inputs_to_plus_zero",
                                                   "subnormals.flush_c",
                                                   "subnormals.flush_results",
                                                   "subnormals.tiny_before_rounding",
                                                   "nan_code"};

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the case. It covers steps of 2 or 4 products into float32: pairwise trees rounded to nearest
/// even (CDNA1, CDNA2), pairs rounded to odd (Arm BFDOT), pairs of exact products rounded once (Arm
/// BFDOT with EBF = 1). Throws Error as Unit::multiply does.
bool multiply_tree(const UnitDescription&, const Gemm&);

/// What happens to the products of a group before C joins.
enum class TreeKind : std::uint8_t {
  pairwise,  ///< rounded, then pairwise sums rounded, to nearest even
  to_odd,    ///< the same, to odd
  fused,     ///< two products added exactly and rounded once
};

struct TreeRule {
  TreeKind kind = TreeKind::pairwise;
  int group = 2;           ///< 2 or 4; `fused`: 2
  bool plus_zero = false;  ///< a product that is zero is +0
  bool flush = false;      ///< tiny results can occur; they become zeros of their sign
};

}  // namespace numemu::unit

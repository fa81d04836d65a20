// Fast path of units that add a few products and C exactly and round once, group after group.
#pragma once
#include <string_view>

#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kExactGroupFields[] = {
    "core",          "k",       "group", "accumulator.format", "c", "d", "scaling.point",
    "scaling.shift", "nan_code"};

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the case: it covers groups of 1, 2, 4 or 8 products into float32, rounded to nearest even,
/// subnormals kept (CDNA1 after the Leeds model, Arm's FP8 dot products), where the values present
/// span no more bits than two doubles hold. Throws Error as Unit::multiply does.
bool multiply_exact_groups(const UnitDescription&, const Gemm&);

struct ExactGroupRule {
  int group = 1;     ///< 1, 2, 4 or 8
  double scale = 1;  ///< a power of two, times the sum of the products
  /// 0: a group's products add up exactly in one double. Else 1.5 * 2^(52 + m): it rounds a product
  /// to a multiple of 2^m, and both the multiples of a group and the rests add up exactly. Groups
  /// of two need no such number: anything but 0.
  double splitter = 0;
};

}  // namespace numemu::unit

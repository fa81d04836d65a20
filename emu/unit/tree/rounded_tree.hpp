// Fast path of trees of rounded sums with any group, leaf and small floating register.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kRoundedTreeFields[] = {"core",
                                                          "k",
                                                          "group",
                                                          "accumulator.format",
                                                          "accumulator.rounding",
                                                          "accumulator.overflow",
                                                          "accumulator.overflow_to_infinity",
                                                          "c",
                                                          "d",
                                                          "tree.leaf",
                                                          "tree.round_products",
                                                          "tree.plus_zero_products",
                                                          "nan_code"};

/// D = A x B + C as ReferenceDot computes it, over OpenMP threads, in float64 lanes. False, with
/// nothing written, where it does not cover the case:
/// - operands, C or D that are not formats of float32 values; a register that is unsigned, has no
///   mantissa bits or no subnormals, or does not fit float32;
/// - steps of more than 4096 products;
/// - leaves of three products and more whose values span more than about 100 bits.
bool multiply_rounded_tree(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit

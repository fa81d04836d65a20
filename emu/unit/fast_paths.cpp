// The fast paths, most specific first.
#include "emu/unit/fast_paths.hpp"

#include "emu/unit/exact.hpp"
#include "emu/unit/float_chain.hpp"
#include "emu/unit/fused/double_form.hpp"
#include "emu/unit/fused/float_form.hpp"
#include "emu/unit/fused/group_form.hpp"
#include "emu/unit/fused/half_form.hpp"
#include "emu/unit/fused/integer_form.hpp"
#include "emu/unit/integer/integer.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/mac/mac.hpp"
#include "emu/unit/sparse_product.hpp"
#include "emu/unit/staged/staged.hpp"
#include "emu/unit/tree/exact_groups.hpp"
#include "emu/unit/tree/tree.hpp"

namespace numemu::unit {
namespace {

using FastPath = bool (*)(const UnitDescription&, const Gemm&);

/// A path may assume a dense product of operands that enter as they are: the rest is the
/// reference's.
constexpr FastPath kPaths[] = {
    // Definitions.
    multiply_float_chain,
    multiply_exact,
    // Fused steps: FP4 groups; F up to 15 in float16 or float32; int32; float64 for the rest.
    multiply_fused_groups,
    multiply_fused_half,
    multiply_fused_float,
    multiply_fused_integer,
    multiply_fused_double,
    // AMD, Intel and Arm.
    multiply_staged,
    multiply_tree,
    multiply_exact_groups,
    multiply_lanes,
    multiply_halves,
    // Small registers, rounded at every multiply-add; integers.
    multiply_mac,
    multiply_integer,
};

}  // namespace

bool multiply_fast(const UnitDescription& unit, const Gemm& gemm) {
  if (!unit.sparsity.dense()) return multiply_sparse(unit, gemm);
  const bool reads_rounded =  // which paths of fused steps without groups of scales do
      unit.core == CoreKind::fused && unit.scaling.point != Scaling::Point::groups;
  if (unit.input.format != nullptr && !reads_rounded) return false;
  for (const FastPath path : kPaths) {
    if (path(unit, gemm)) return true;
  }
  return false;
}

}  // namespace numemu::unit

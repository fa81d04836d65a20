#include "emu/unit/fast_paths.hpp"

#include <iterator>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/described_unit.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/exact/exact.hpp"
#include "emu/unit/fused/double_form.hpp"
#include "emu/unit/fused/few_form.hpp"
#include "emu/unit/fused/float_form.hpp"
#include "emu/unit/fused/group_form.hpp"
#include "emu/unit/fused/integer_form.hpp"
#include "emu/unit/integer/integer.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/mac/mac.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/row_slices.hpp"
#include "emu/unit/sparse_product.hpp"
#include "emu/unit/staged/staged.hpp"
#include "emu/unit/tree/exact_groups.hpp"
#include "emu/unit/tree/rounded_tree.hpp"
#include "emu/unit/tree/tree.hpp"
#include "emu/unit/two_levels.hpp"

namespace numemu::unit {
namespace {

// The names of fields that all paths understand: which operands a unit takes has been checked, and
// paths read the formats of the product.
constexpr std::string_view kAlways[] = {"name", "a", "b"};

constexpr FastPath kPaths[] = {
    // Definitions.
    {"float chain", kFloatChainFields, multiply_float_chain},
    {"exact", kExactFields, multiply_exact},
    // Fused steps: few outputs; FP4 groups; F up to 15 in float16 or float32; int32; float64 for
    // the rest.
    {"fused few", kFusedFields, multiply_fused_few},
    {"fused groups", kFusedGroupFields, multiply_fused_groups},
    {"fused half", kFusedFields, multiply_fused_half},
    {"fused float", kFusedFields, multiply_fused_float},
    {"fused integer", kFusedFields, multiply_fused_integer},
    {"fused double", kFusedDoubleFields, multiply_fused_double},
    // AMD, Intel and Arm.
    {"staged", kStagedFields, multiply_staged},
    {"tree", kTreeFields, multiply_tree},
    {"rounded tree", kRoundedTreeFields, multiply_rounded_tree},
    {"exact groups", kExactGroupFields, multiply_exact_groups},
    {"lanes", kLaneFields, multiply_lanes},
    {"halves", kHalfLaneFields, multiply_halves},
    // Small registers, rounded at every multiply-add; integers.
    {"multiply-adds", kMacFields, multiply_mac},
    {"integer", kIntegerFields, multiply_integer},
};

/// The fields of each path, in their order.
const std::vector<FieldSet>& understood() {
  static const std::vector<FieldSet> kSets = [] {
    std::vector<FieldSet> sets;
    for (const FastPath& path : kPaths) sets.push_back(field_set(path.fields) | field_set(kAlways));
    return sets;
  }();
  return kSets;
}

/// By the first path that covers it; `changed` of the description.
const FastPath* multiply_by_path(const UnitDescription& unit, const FieldSet& changed,
                                 const Gemm& gemm) {
  // A path that declines leaves what it has read to the next ones.
  constexpr auto kProduct = PreparedOperand::Lifetime::product;
  const PreparedOperand a(gemm.a, gemm.m, gemm.k, gemm.scale_a, kProduct);
  const PreparedOperand b(gemm.b, gemm.n, gemm.k, gemm.scale_b, kProduct);
  Gemm shared = gemm;
  if (shared.a.prepared == nullptr) shared.a.prepared = &a;
  if (shared.b.prepared == nullptr) shared.b.prepared = &b;
  for (std::size_t i = 0; i < std::size(kPaths); ++i) {
    if ((changed & ~understood()[i]).none() && kPaths[i].multiply(unit, shared)) return &kPaths[i];
  }
  return nullptr;
}

/// A product slice by slice; what the paths read of B is read once.
bool multiply_slices(const UnitDescription& unit, const FieldSet& changed, const Gemm& gemm,
                     const std::vector<RowSlice>& slices) {
  const PreparedOperand b(gemm.b, gemm.n, gemm.k, nullptr, PreparedOperand::Lifetime::product);
  Gemm shared = gemm;
  if (shared.b.prepared == nullptr) shared.b.prepared = &b;
  for (const RowSlice& slice : slices) {
    const Gemm one = gemm_of(unit, shared, slice);
    if (multiply_by_path(unit, changed, one) != nullptr) continue;
    if (slice.begin == 0) return false;
    multiply_by_reference(unit, one);  // its numbers are none that a path takes
  }
  return true;
}

}  // namespace

std::span<const FastPath> fast_paths() { return kPaths; }

bool multiply_fast(const UnitDescription& unit, const Gemm& gemm) {
  return multiply_fast(unit, changed_field_set(unit), gemm);
}

bool multiply_fast(const UnitDescription& unit, const FieldSet& changed, const Gemm& gemm) {
  if (unit.outer.every != 0) return multiply_two_levels(unit, gemm);
  if (!unit.sparsity.dense()) return multiply_sparse(unit, gemm);
  if (!unit.accumulator.rounding.stochastic() && unit.scaling.block == 0) {
    const std::vector<RowSlice> slices = slice_rows(gemm.a, gemm.m);
    if (!slices.empty()) return multiply_slices(unit, changed, gemm, slices);
  }
  return multiply_by_path(unit, changed, gemm) != nullptr;
}

const FastPath* multiply_by_path(const UnitDescription& unit, const Gemm& gemm) {
  return multiply_by_path(unit, changed_field_set(unit), gemm);
}

}  // namespace numemu::unit

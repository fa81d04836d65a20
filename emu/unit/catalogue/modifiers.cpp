// The rivals and variants that a unit's name can end with.
#include "emu/unit/catalogue/modifiers.hpp"

#include "emu/unit/catalogue/models.hpp"

namespace numemu::unit {
namespace {

void as_leeds(UnitDescription& u) {
  u.alignment.zero_exponent.reset();
  u.alignment.zero_c_counts = true;  // zeros of both kinds drop out
  u.alignment.floor = leeds_floor(u);
}

void as_sparse(UnitDescription& u) {
  if (u.a->name == "tfloat32") {
    u.sparsity = {1, 2};
  } else if (u.a->kind == Kind::integer && u.a->bits == 4) {
    u.sparsity = {4, 8};
  } else {
    u.sparsity = {2, 4};
  }
}

void as_satfinite(UnitDescription& u) { u.accumulator.integer = IntegerOverflow::saturate_once; }

void as_pairwise(UnitDescription& u) {
  u.core = CoreKind::tree;
  u.tree.plus_zero_products = true;
}

void as_ebf1(UnitDescription& u) {
  u.tree = {.leaf = 2, .round_products = true};
  u.accumulator.rounding = {};
  u.accumulator.overflow_to_infinity = false;
  u.subnormals = {};
}

}  // namespace

const std::vector<Modifier>& all_modifiers() {
  static const std::vector<Modifier> modifiers = {
#define NUMEMU_MODIFIER(name, function, grade, what) {#name, function, Grade::grade, what},
#include "emu/unit/catalogue/modifiers.def"
#undef NUMEMU_MODIFIER
  };
  return modifiers;
}

const Modifier* find_modifier(std::string_view name) {
  for (const Modifier& modifier : all_modifiers()) {
    if (modifier.name == name) return &modifier;
  }
  return nullptr;
}

}  // namespace numemu::unit

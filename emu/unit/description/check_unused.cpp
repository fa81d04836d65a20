// Fields that only some units use; they must keep their defaults in all others.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>

#include "emu/unit/description/check.hpp"

namespace numemu::unit {
namespace {

using Unit = UnitDescription;

/// A field, or an object of fields, that means something only in some units.
struct Rule {
  std::string_view key;
  bool (*used)(const Unit&);
  std::string_view needs;
};

template <CoreKind kCore>
bool has_core(const Unit& u) {
  return u.core == kCore;
}

bool two_levels(const Unit& u) { return u.outer.every != 0; }

/// The roundings of sums that IEEE 754 defines: not those of fused steps.
bool sums_round_down(const Unit& u) {
  const auto down = [](const Rounding& r) { return r.mode == RoundingMode::rdn; };
  return floating_register(u) && ((u.core != CoreKind::fused && down(u.accumulator.rounding)) ||
                                  down(u.c_rounding) || down(u.outer.accumulator.rounding));
}

constexpr std::string_view kFloatingRegister = "together with a floating accumulator.format";
constexpr std::string_view kTwosComplement = "together with accumulator.format null";
constexpr std::string_view kRounds = "together with core fused, chain, tree or exact";
constexpr std::string_view kTwoLevels = "together with outer.every";
constexpr std::string_view kBlockScaled = "together with scaling.point exponents or groups";

const Rule kRules[] = {
    {"c", floating_register, kFloatingRegister},
    {"d", floating_register, kFloatingRegister},
    {"c_rounding",
     [](const Unit& u) { return u.c_entry == CEntry::after_rounding && floating_register(u); },
     "together with c_entry after_rounding and a floating accumulator.format"},
    {"plus_zero_sums", sums_round_down, "together with a floating register or C added with rdn"},
    {"accumulator.rounding", rounds, kRounds},
    {"accumulator.overflow", floating_register, kFloatingRegister},
    {"accumulator.bits", twos_complement, kTwosComplement},
    {"accumulator.fraction", twos_complement, kTwosComplement},
    {"accumulator.fraction", rounds, kRounds},
    {"accumulator.integer_overflow", twos_complement, kTwosComplement},
    {"alignment", has_core<CoreKind::fused>, "together with core fused"},
    {"alignment.zero_c_counts", [](const Unit& u) { return u.alignment.zero_exponent.has_value(); },
     "together with an alignment.zero_exponent"},
    {"alignment.parts", meets_later, "together with c_entry after_alignment"},
    {"second", meets_later, "together with c_entry after_alignment"},
    {"chain", has_core<CoreKind::chain>, "together with core chain"},
    {"tree", has_core<CoreKind::tree>, "together with core tree"},
    {"tree.round_products", [](const Unit& u) { return u.tree.leaf == 1; },
     "together with tree.leaf 1"},
    {"tree.plus_zero_products", [](const Unit& u) { return u.tree.leaf == 1; },
     "together with tree.leaf 1"},
    {"subnormals", rounds, kRounds},
    {"subnormals.inputs_to_plus_zero", [](const Unit& u) { return u.subnormals.flush_inputs; },
     "together with subnormals.flush_inputs true"},
    {"subnormals.flush_c", floating_register, kFloatingRegister},
    {"subnormals.flush_results", floating_register, kFloatingRegister},
    {"subnormals.tiny_before_rounding", [](const Unit& u) { return u.subnormals.flush_results; },
     "together with subnormals.flush_results true"},
    {"products_overflow",
     [](const Unit& u) {
       return u.core == CoreKind::fused && u.scaling.point != Scaling::Point::groups;
     },
     "together with core fused, without scaling groups"},
    {"nan", [](const Unit& u) { return u.core == CoreKind::chain && floating_register(u); },
     "together with core chain and a floating accumulator.format"},
    {"scaling.format", block_scaled, kBlockScaled},
    {"scaling.block", block_scaled, kBlockScaled},
    {"scaling.shift", [](const Unit& u) { return u.scaling.point == Scaling::Point::after_sum; },
     "together with scaling.point after_sum"},
    {"input", rounds, kRounds},
    {"input.rounding", [](const Unit& u) { return u.input.format != nullptr; },
     "together with input.format"},
    {"outer.format", two_levels, kTwoLevels},
    {"outer.rounding", two_levels, kTwoLevels},
    {"outer.overflow", two_levels, kTwoLevels},
    {"outer.overflow_to_infinity", two_levels, kTwoLevels},
    {"outer.bits", two_levels, kTwoLevels},
    {"outer.fraction", two_levels, kTwoLevels},
    {"outer.integer_overflow", two_levels, kTwoLevels},
    {"outer.rounding", rounds, kRounds},
    {"outer.overflow", floating_register, kFloatingRegister},
    {"outer.bits", twos_complement, kTwosComplement},
    {"outer.fraction", twos_complement, kTwosComplement},
    {"outer.fraction", rounds, kRounds},
    {"outer.integer_overflow", twos_complement, kTwosComplement},
};

bool under(std::string_view key, std::string_view rule) {
  return key == rule || (key.starts_with(rule) && key[rule.size()] == '.');
}

}  // namespace

bool applies(const UnitDescription& u, std::string_view key) {
  return std::ranges::all_of(
      kRules, [&](const Rule& rule) { return !under(key, rule.key) || rule.used(u); });
}

void DescriptionCheck::unused_fields() {
  for (const std::string& key : changed_fields(u_)) {
    for (const Rule& rule : kRules) {
      if (!require(!under(key, rule.key) || rule.used(u_), key, rule.needs)) break;
    }
  }
}

}  // namespace numemu::unit

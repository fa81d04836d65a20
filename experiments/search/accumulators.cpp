#include "experiments/search/accumulators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/unit/description/fields.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::experiments {
namespace {

constexpr double kFloat32Bits = 32, kExactBits = 64;
/// Exponents of 8 bits hold the sums of codes of any element format.
constexpr int kWideExponent = 8;
constexpr int kAdditionsOfKahan = 4;

bool holds_any_size(const Format* format) {
  return format != nullptr && format->kind == Kind::floating &&
         format->exponent_bits >= kWideExponent;
}

int bits_of(const unit::Register& r) { return r.format != nullptr ? r.format->bits : r.bits; }

std::vector<bool> taken(const unit::Unit& unit, const std::vector<SearchOption>& options,
                        policies::Side side) {
  std::vector<bool> out;
  for (const SearchOption& option : options) {
    bool takes = true;
    try {
      policies::require_operand(unit, option.policy, side);
    } catch (const Error&) {  // is what is asked
      takes = false;
    }
    out.push_back(takes);
  }
  return out;
}

}  // namespace

double adder_bits(const unit::Unit& unit) {
  const unit::UnitDescription* const u = unit.description();
  if (u == nullptr) return kFloat32Bits;
  if (u->core == unit::CoreKind::exact) return kExactBits;
  double bits = bits_of(u->accumulator);
  if (u->core == unit::CoreKind::fused) {
    const int step = std::max(1, unit::products_of_step(*u));
    bits = u->alignment.fraction_bits + bits / step;
  } else if (u->chain.kahan) {
    bits *= kAdditionsOfKahan;
  } else if (u->chain.chunk > 0) {
    bits += bits / u->chain.chunk;
  }
  if (u->outer.every > 0) bits += double(bits_of(u->outer.accumulator)) / u->outer.every;
  return bits;
}

double multiply_add_cost(int weight_bits, int activation_bits, double adder_bits) {
  return (weight_bits * activation_bits + adder_bits) /
         (kFloat32Bits * kFloat32Bits + kFloat32Bits);
}

int RankedUnit::size_of(const SearchOption& weight, const SearchOption& activation) const {
  constexpr int kBlocks = 1 << 12;  // above every exponent
  if (any_size) return 0;
  int size = 0;
  for (const auto& [option, blocks] : {std::pair(&weight, kBlocks), {&activation, 2 * kBlocks}})
    size += option->policy.block != nullptr ? blocks
                                            : std::ilogb(largest_value(*option->policy.format));
  return size;
}

std::vector<RankedUnit> ranked_units(const std::vector<std::string>& names,
                                     const std::vector<SearchOption>& weights,
                                     const std::vector<SearchOption>& activations,
                                     const std::string& where) {
  if (names.empty()) return {RankedUnit{}};
  std::vector<RankedUnit> out;
  for (const std::string& name : names) {
    const unit::Unit& unit = unit::find_unit(name);
    const unit::UnitDescription* const u = unit.description();
    RankedUnit ranked{.name = name,
                      .adder_bits = adder_bits(unit),
                      .weights = taken(unit, weights, policies::Side::b),
                      .activations = taken(unit, activations, policies::Side::a)};
    if (u != nullptr && unit_adds_noise(unit.row().name))
      ranked.any_size = !unit::is_integer_core(*u) && holds_any_size(u->accumulator.format) &&
                        holds_any_size(unit::result_format(*u));
    for (const auto& [options, role] :
         {std::pair(&ranked.weights, "weights"), {&ranked.activations, "activations"}}) {
      if (std::ranges::find(*options, true) == options->end())
        throw usage_error(fmt::format("{}: {} takes none of the {} options of {} (it takes {})",
                                      where, name, options->size(), role, unit.operand_rule()));
    }
    out.push_back(std::move(ranked));
  }
  return out;
}

double least_cost(const std::vector<SearchOption>& weights,
                  const std::vector<SearchOption>& activations,
                  const std::vector<RankedUnit>& units) {
  const auto least = [](const std::vector<SearchOption>& options, const std::vector<bool>& taken) {
    int bits = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < options.size(); ++i)
      if (taken.empty() || taken[i]) bits = std::min(bits, options[i].policy.format->bits);
    return bits;
  };
  double cost = HUGE_VAL;
  for (const RankedUnit& unit : units)
    cost = std::min(cost, multiply_add_cost(least(weights, unit.weights),
                                            least(activations, unit.activations), unit.adder_bits));
  return cost;
}

}  // namespace numemu::experiments

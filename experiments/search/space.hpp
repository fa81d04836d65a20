// What a search chooses from: options of weights, activations and units, with the accumulators that
// they need.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/format.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::experiments {

/// What a space consists of.
struct SpacePlan {
  /// Element formats by name; none: signed ones of least_bits to most_bits bits: every eXmY without
  /// infinity and NaN, every integer, every other named format.
  std::vector<std::string> formats = {};
  int least_bits = 2, most_bits = 8;
  double most_stored = HUGE_VAL;  ///< bits of an element with the scale of a full block
  std::vector<std::int64_t> blocks = {8, 16, 32, 64, 128};  ///< sizes; none: no blocks
  std::vector<std::string> scales = {"float16", "float8_e4m3fn", "float8_e5m2"};  ///< of groups
  /// Scale rules; each is tried on everything. Weights without blocks are also tried under mse.
  std::vector<std::string> rules = {"absmax", "pow2(absmax,up)", "floor", "ceil",
                                    "even",   "nearest"};
  /// Besides: four-over-six in groups, of activations in those with a scale of the tensor, and mse
  /// of weights in blocks (SearchOption::searched).
  bool more_rules = true;
  std::string named = "formats";  ///< what messages call the list of formats
};

/// A role as a recipe has it.
struct SearchOption {
  std::string name;  ///< "e2m3+finite, blocks of 32, e8m0, floor"
  Json role;
  policies::RolePolicy policy;
  /// Options with the same scaling differ in the element format alone, those of a form in the rule.
  std::size_t scaling = 0, form = 0;
  std::string rule = {};  ///< as the name has it
  /// The rule tries scales block by block: only the best forms under the other rules are ranked
  /// with it (chosen_forms() of ranking.hpp).
  bool searched = false;
};

/// The element formats of a plan; of several with the same values up to a power of two the first.
/// Throws Error naming a format that cannot be an element.
std::vector<const Format*> space_elements(const SpacePlan&);

/// Of an element in a full block, with its scale; without blocks those of the element.
double stored_bits_of(const policies::RolePolicy&);

/// Of a role ("weight", "activation"): granularities, power-of-two blocks, groups with every scale
/// format, of 8 bits or fewer also under a scale of the tensor, each under every rule. What a
/// recipe refuses is left out. Ordered by scaling.
std::vector<SearchOption> space_of(const SpacePlan&, const std::string& role);
/// The rules of some options, which sentences name: "absmax, floor, mse without blocks".
std::string rules_text(const std::vector<SearchOption>&);

/// Bits that adders of a unit take in for each product: those of the register, of both levels where
/// there are two, and of the aligned sum of a fused step. Of exact sums 64; 32 without a
/// description, as of f32.sequential.
double adder_bits(const unit::Unit&);

/// The cost of a multiply-add in full adders, over that of float32: bits times bits of the
/// elements, and the adders' bits.
double multiply_add_cost(int weight_bits, int activation_bits, double adder_bits);

/// A unit with what it reads. By default f32.sequential, which takes everything and adds nothing.
struct RankedUnit {
  std::string name = {};                             ///< of the recipe; "": the recipe names none
  double adder_bits = 32;                            ///< for each product
  std::vector<bool> weights = {}, activations = {};  ///< options that it takes; empty: all
  /// Registers with exponents of 8 bits or more round numbers of any size alike. Else noise is that
  /// of the options' number sizes.
  bool any_size = true;
  /// Over the signal at the output, by size_of(); infinite where sums overflow or nothing is known.
  std::map<int, double> noise = {};

  bool takes(std::size_t weight, std::size_t activation) const {
    return (weights.empty() || weights[weight]) && (activations.empty() || activations[activation]);
  }
  /// Of the numbers that it multiplies: the exponent of the largest product of codes; in blocks,
  /// whose scales are part of the numbers, only that they are. 0 where any size does.
  int size_of(const SearchOption& weight, const SearchOption& activation) const;
  double noise_of(const SearchOption& weight, const SearchOption& activation) const {
    const auto found = noise.find(size_of(weight, activation));
    return found == noise.end() ? 0 : found->second;
  }
};

/// The units of those names with the options that they take; without names f32.sequential alone.
/// Throws Error, `where` first, naming a unit that takes no option of a role.
std::vector<RankedUnit> ranked_units(const std::vector<std::string>& names,
                                     const std::vector<SearchOption>& weights,
                                     const std::vector<SearchOption>& activations,
                                     const std::string& where);

/// Of the cheapest multiply-add.
double least_cost(const std::vector<SearchOption>& weights,
                  const std::vector<SearchOption>& activations, const std::vector<RankedUnit>&);

}  // namespace numemu::experiments

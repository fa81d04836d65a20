// Units of a search: what their adders cost, which options they multiply, and what they add to the
// noise at the output.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "experiments/search/space.hpp"

namespace numemu::experiments {

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

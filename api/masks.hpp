// Masks of arrays: which elements a rule keeps, and how many masks its pattern admits.
//
// All functions throw numemu::Error: one line that names the rule, the array or the axis, and what
// was expected. Rules: docs/masks.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/storage/array.hpp"
#include "policies/mask/mask_count.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::api {

/// A mask rule, "greedy(2:4)" or "transposable(2:4,remainder=pad)". Throws Error for one that needs
/// a network.
policies::MaskPolicy parse_array_mask(const std::string& rule);
/// x, which is float32, under the rule. `values` (float32, +0 where pruned) and `keep` (1 where
/// kept) have the shape of x; either may be null. Groups run along `axis`, which counts from the
/// end where it is negative; without one along the last, or the first of a rule with axis=batch.
/// Tiles lie in the matrices of the last two axes.
void mask_into(const policies::MaskPolicy&, const RandomSource&, const Array& x,
               std::optional<int> axis, float* values, std::uint8_t* keep);

struct MaskOptions {
  std::string rule;
  std::optional<int> axis = {};
  std::uint64_t seed = 0;  ///< of rules that draw
};

struct MaskedArray {
  policies::MaskPolicy policy;
  Array values;           ///< float32, of the shape of x: +0 where pruned
  Array keep;             ///< uint8, of the shape of x: 1 where kept
  std::int64_t kept = 0;  ///< elements
};
/// The same into arrays of its own.
MaskedArray mask(const Array& x, const MaskOptions&);

/// How many masks a pattern admits (docs/masks.md): of one group or tile, or of `elements` of them.
struct MaskCounts {
  policies::MaskFamily family;
  unit::Pattern pattern;
  std::int64_t elements = 0;  ///< that the count is about
  policies::MaskCount count;
  double log10_per_block = 0;  ///< of the diversity per 64 elements
};
/// `family` and pattern: "transposable", "2:4".
MaskCounts count_masks(const std::string& family, const std::string& pattern,
                       std::optional<std::int64_t> elements = {});

}  // namespace numemu::api

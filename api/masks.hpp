// Masks of arrays: which elements a rule keeps, and how many masks its pattern admits.
//
// All functions throw numemu::Error: one line that names the rule, the array or the axis, and what
// was expected. Rules: docs/masks.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/mask_diversity/mask_count.hpp"
#include "formats/storage/array.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::api {

struct MaskOptions {
  std::string rule;              ///< "greedy(2:4)", "transposable(2:4,remainder=pad)"
  std::optional<int> axis = {};  ///< of groups; negative counts from the end; else the last
  std::uint64_t seed = 0;        ///< of rules that draw
};

struct MaskedArray {
  policies::MaskPolicy policy;
  Array values;           ///< float32, of the shape of x: +0 where pruned
  Array keep;             ///< uint8, of the shape of x: 1 where kept
  std::int64_t kept = 0;  ///< elements
};
/// x is float32. Groups run along the axis; tiles lie in the matrices of the last two axes.
MaskedArray mask(const Array& x, const MaskOptions&);

/// How many masks a pattern admits (docs/masks.md): of one group or tile, or of `elements` of them.
struct MaskCounts {
  experiments::MaskFamily family;
  unit::Pattern pattern;
  std::int64_t elements = 0;  ///< that the count is about
  experiments::MaskCount count;
  double log10_per_block = 0;  ///< of the diversity per 64 elements
};
/// `family` and pattern: "transposable", "2:4".
MaskCounts count_masks(const std::string& family, const std::string& pattern,
                       std::optional<std::int64_t> elements = {});

}  // namespace numemu::api

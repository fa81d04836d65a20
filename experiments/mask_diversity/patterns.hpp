// The patterns of density 50 % whose diversity is compared, and how many masks each admits.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/mask_diversity/mask_count.hpp"

namespace numemu::experiments {

struct DiversityPattern {
  std::string name;  ///< "4:8", "4:8-T" (transposable), "4:8 seq" (sequential), "unstructured"
  MaskFamily family = MaskFamily::unstructured;
  unit::Pattern pattern;
  std::string mask;  ///< the rule that gives such masks from magnitudes, for recipes

  bool structured() const { return family != MaskFamily::unstructured; }
  /// Elements and masks of the smallest piece that carries the constraint.
  std::int64_t piece() const { return piece_size(family, pattern); }
  const MaskCount& masks() const { return masks_; }
  /// log10 of the diversity of 8 x 8 elements: counted exactly, and with the published upper bound
  /// where masks are transposable.
  double log10_exact() const { return log10_exact_; }
  double log10_bound() const { return log10_bound_; }

  DiversityPattern(std::string name, MaskFamily family, int kept, int group, std::string mask);

 private:
  MaskCount masks_;
  double log10_exact_, log10_bound_;
};

/// The largest group among them: layers whose channels it divides are masked to 50 % by all.
inline constexpr std::int64_t kLargestGroup = 16;

/// From the most diverse (unstructured) on, counted exactly.
const std::vector<DiversityPattern>& half_density_patterns();
/// Throws Error for a name that none has.
const DiversityPattern& diversity_pattern(std::string_view name);

}  // namespace numemu::experiments

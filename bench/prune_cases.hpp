// The pruning rules that are timed, each with its check against a reference and its aim.
#pragma once
#include <string>
#include <vector>

#include "bench/format_cases.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::bench {

struct PruneCase {
  std::string text;  ///< of the policy
  double aim = 0;    ///< elements per second at 4K elements on one thread; 0: none
  /// Gives the bits that the rule must give; null: the rule itself, one decision at a time.
  void (*reference)(const policies::MaskPolicy&, const RandomSource&,
                    const policies::MaskRun&) = nullptr;
  policies::MaskPolicy policy = {};
};

std::vector<PruneCase> prune_cases();

/// What a.x needs before it is pruned; 0 where the rule has no threshold. Not part of what is
/// timed.
double threshold_of(const PruneCase&, const Arrays& a);
/// Prunes a.x into a.y.
void prune(const PruneCase&, Arrays& a, double threshold);
/// Throws Error where a bit of the values or of the mask differs from the reference.
void require_equal(const PruneCase&, Arrays& a);

}  // namespace numemu::bench

// A tensor pruned many times by one rule, beside the closed forms.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "formats/random.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::experiments::mvue {

/// A measured figure and its standard error.
struct Estimate {
  double value = 0, error = 0;
};

/// Sums over the groups of a tensor x, y its pruned form, e = y - x. Standard errors come from the
/// spread over groups, which are pruned independently.
struct PrunedSample {
  Estimate projection;  ///< <mean y, x> / <x, x>: 1 without bias
  Estimate variance;    ///< mean of |e|^2 over its closed form
  Estimate mean;  ///< D times |mean e|^2 of D draws over the closed form of |e|^2: 1 without bias,
                  ///< else it grows with D
  Estimate nsr;   ///< mean of |e|^2 over |x|^2, as an estimate for the law that x is of
  Estimate shrink;             ///< sum of |y| over sum of |x|, the same
  double closed_nsr = 0;       ///< closed form of |e|^2 over |x|^2
  double effective = 0;        ///< groups that carry |x|^2: (sum s)^2 / sum s^2
  double effective_error = 0;  ///< groups that carry the closed form of |e|^2, the same
};

/// x[0..count) in whole groups, all finite, pruned `draws` times (rules without chance: once).
PrunedSample prune_and_measure(const policies::MaskPolicy&, const std::vector<float>& x,
                               std::int64_t draws, const RandomSource&);

/// With fewer groups the error of a figure cannot be estimated.
inline constexpr double kFewestGroups = 200;

/// A closed form (engine/judge.hpp), undecided below kFewestGroups.
Finding judged(std::string what, double predicted, const Estimate& measured, double effective);

/// "0.9987 +- 0.0004": with the 95 % half-width.
std::string shown(const Estimate&);

}  // namespace numemu::experiments::mvue

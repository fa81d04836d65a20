// Any two configurations compared sample by sample, and the best of each width with what is not
// told apart from it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/findings.hpp"

namespace numemu::experiments {

/// By how much more a than b is right, as a share of the samples.
struct PairedLead {
  double difference = 0, low = 0, high = 0;
  /// Whether the interval is on one side of 0.
  bool told_apart() const { return low > 0 || high < 0; }
};
/// Nothing where the rows of either hold no answers (those of earlier programs, of other tasks than
/// one class per sample), have several seeds or were measured on other samples. The interval is the
/// score test's (Tango 1998), at 95 % for all of `comparisons` together (Bonferroni).
std::optional<PairedLead> paired_lead(const Configuration& a, const Configuration& b,
                                      std::size_t comparisons = 1);

/// A sentence for every width of elements that weights and activations share and several
/// configurations have, the narrowest first: the best one, what is not told apart from it, by how
/// much it is better than the next, and what cannot be paired with it.
std::vector<std::string> best_of_widths(const std::vector<Configuration>&);

}  // namespace numemu::experiments

// Any two configurations compared sample by sample, and the best of each width with what is not
// told apart from it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/configurations.hpp"

namespace numemu::experiments {

/// By how much less a loses than b, as Configuration::loss() counts: a share of the samples of
/// top-1, else in the measure's unit or as a share of float32's figure.
struct PairedLead {
  double difference = 0, low = 0, high = 0;
  /// Whether the interval is on one side of 0.
  bool told_apart() const { return low > 0 || high < 0; }
};

struct Pairing {
  std::optional<PairedLead> lead;
  /// Where there is no lead: what of `b` (or of both) cannot be paired, in words.
  std::string why_not;
};

/// Pairs rows of the same seed, sample by sample: by their right answers (losses_file.hpp), else by
/// their files of losses (losses_file.hpp). The interval is at 95 % for all of `comparisons`
/// together (Bonferroni). Of samples it is the score test's (Tango 1998) for right answers, and the
/// jackknife's over blocks of block_length() or more consecutive samples for losses. Several seeds
/// add Student's interval of the differences of seeds: the squares of the lengths on either side
/// are added, as samples and seeds are drawn independently (Zou and Donner 2008).
Pairing paired(const Configuration& a, const Configuration& b, std::size_t comparisons = 1);

/// A sentence for every width of elements that weights and activations share and several
/// configurations have, the narrowest first: the one that loses least, named by its measure
/// ("Highest top-1 at 6 bits"), from how many it is told apart and by how much from the next of
/// them, what is not told apart from it, and what cannot be paired with it and why. It is chosen by
/// the same samples: the intervals hold at 95 % for all pairs of the width together, so that they
/// hold for whichever is chosen.
std::vector<std::string> best_of_widths(const std::vector<Configuration>&);
/// The same of all quantized configurations, of whatever width; "" for fewer than two, and where no
/// row has answers or losses.
std::string best_of_all(const std::vector<Configuration>&);

}  // namespace numemu::experiments

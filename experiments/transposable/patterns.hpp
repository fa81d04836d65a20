// The patterns of density one half that are compared: their theory, layers that they can mask,
// networks pruned once.
#pragma once
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

struct HalfPattern {
  std::string name;  ///< "2:4", "2:4-T" (transposable), "unstructured"
  std::string mask;  ///< the rule, for recipes; what fills no group or tile is padded
  bool repairs;      ///< the rule takes repair=
  /// Expected share of the sum of magnitudes of 8 x 8 normal elements that is pruned: a closed
  /// form, or the figure of an earlier independent run where there is none.
  double loss = NAN;
  double loss_error = 0;  ///< about the standard error of such a figure; 0: a closed form
};

/// From the least loss on.
const std::vector<HalfPattern>& half_patterns();
/// Throws Error with the nearest known name.
const HalfPattern& half_pattern(std::string_view name);

// The loss of pruning to N:M, as integrals and binomial sums (docs/experiments/transposable.md).

/// Of independent standard normal elements, the expected share of the sum of magnitudes that is
/// pruned when each group of `group` keeps its `kept` largest: an integral over the distribution of
/// order statistics, relative error below 1e-9. 1:2: 1 - 1 / sqrt 2.
double group_loss(int kept, int group);
/// The loss of one group without end: 1 - exp(-q^2 / 2), q the quantile that half the magnitudes
/// are below, for a share of one half.
double half_loss();
/// The loss of 2 x 2 tiles that keep a diagonal: P(|a| + |b| <= s) = erf(s / 2)^2.
double diagonal_loss();

/// With each element zero with probability `zeros`, independently: the probability that a group
/// holds more than `kept` others, and the expected share of all elements that has to be pruned
/// besides.
double violation_share(int kept, int group, double zeros);
double extra_share(int kept, int group, double zeros);

// Layers whose weights every pattern can mask.

/// The largest M among the patterns compared.
inline constexpr std::int64_t kMostGroup = 8;

/// Layers with one weight whose input channels are a multiple of 8, so that every pattern keeps
/// half of it. Throws Error where the network has none.
std::vector<std::string> even_layers(const net::Graph&);

// A trained network pruned once under every pattern, with and without repair.

/// A pattern and what is done to the weights it keeps.
struct Variant {
  const HalfPattern* pattern = nullptr;
  std::string repair;  ///< "none", "absorb", "adaprune"
  /// The rule's text for recipes.
  std::string mask() const;
};

/// Every pattern with every repair that its rule takes.
std::vector<Variant> variants(const std::vector<std::string>& patterns);

/// The recipe that masks these layers' weights.
Json recipe_of(const std::vector<std::string>& layers, const std::string& mask,
               std::int64_t calibration);

/// A network under a variant.
struct PrunedNetwork {
  double kept = 0, pruned = 0;  ///< shares of the layers' elements, and of their sum of magnitudes
  Named<double> outputs = {};   ///< by layer: squared error on test images, over the squares
  Named<double> fitted = {};    ///< on the calibration images that AdaPrune solves for
  double loss = 0;
  std::string right = {};  ///< answer_text() of the test targets

  static void fields(auto& self, const auto& visit) {
    visit("kept", self.kept);
    visit("pruned", self.pruned);
    visit("outputs", self.outputs);
    visit("fitted", self.fitted);
    visit("loss", self.loss);
    visit("right", self.right);
  }
};

/// One for each variant, the unpruned network first. Layers: even_layers().
std::vector<PrunedNetwork> prune_network(const net::Graph&, const net::Dataset&,
                                         const std::vector<Variant>&, std::int64_t images);

/// What each pattern prunes of normal deviates (setting blocks), beside closed forms; how near the
/// greedy masks come to the best.
void add_losses(const ExperimentRun&, Conclusion&);

/// Trained networks pruned once under each pattern (setting patterns), with and without repair:
/// magnitude, outputs of layers, accuracy.
void add_networks(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments

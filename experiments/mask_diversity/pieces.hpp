// The patterns of density 50 %, masks of the smallest pieces that carry a constraint, and networks
// pruned once under every pattern.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/mask_diversity/mask_count.hpp"
#include "formats/storage/json.hpp"

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

/// A network whose weights are looked at.
struct LabelledNet {
  std::string label;
  const net::Graph* graph = nullptr;
};

/// How many masks each pattern admits, per 8 x 8 elements and for the masked weights of each
/// network.
void add_counts(const std::vector<LabelledNet>&, Conclusion&);

/// Which masks magnitudes really give: of normal deviates (settings blocks, tiles), and of trained
/// weights.
void add_censuses(const ExperimentRun&, const std::vector<LabelledNet>&, Conclusion&);

/// What add_training trains, but for the masks. Throws Error for settings that cannot be served.
TrainTrial training_under_masks(const ExperimentRun&, const net::Dataset&);
/// How masks change while the network trains under them (settings train_net, train_samples, epochs,
/// refresh).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Whether one-shot accuracy rises with diversity, on shipped networks (setting nets) and on
/// networks trained afresh (trained).
void add_one_shot(const ExperimentRun&, const net::Dataset&, Conclusion&);

// Masks of the smallest pieces that carry a constraint: of normal deviates and of weights.

/// Layers with one weight whose channels are a multiple of kLargestGroup, in order: every pattern
/// keeps exactly half of it. Throws Error where the network has none.
std::vector<std::string> evenly_masked_layers(const net::Graph&);

/// The whole pieces of a weight [out, ..., in], one after the other: groups along the channels, or
/// M x M tiles of outputs and channels of one tap. Outputs that fill no tile are left out.
std::vector<float> pieces_of(const net::Tensor& weight, const DiversityPattern&);

/// 1 where the pattern's rule keeps an element of these pieces.
std::vector<std::uint8_t> masks_of(const std::vector<float>& pieces, const DiversityPattern&);

/// The masks of `pieces` pieces of independent standard normal deviates: stream probe, tensor
/// "mask-diversity/" and the pattern's name, element i the quantile of u + 2^-33.
MaskCensus normal_census(const DiversityPattern&, std::int64_t pieces, std::uint64_t seed);

/// A census as the result of a trial: pieces, distinct, kept; plug_in, corrected, low, high (bits),
/// coverage; collisions, collision_low, collision_bits, collision_high. `p` of the chi-square test
/// that all masks are equally likely, null where fewer than 5 pieces per mask were seen.
///
/// Of transposable masks up to 8 x 8 and `exchangeable` elements also `kinds` (mask_kinds.hpp): how
/// many are distinct, their coverage, the entropy of masks that follows with low and high, `p` that
/// kinds are as likely as they are large, `within_p` that masks of one kind are equally likely.
Json to_json(const MaskCensus&, const DiversityPattern&, bool exchangeable);

// Networks pruned once by magnitude, without retraining, under every pattern of density 50 %.

/// A network under one pattern, on the test images.
struct Pruned {
  std::vector<std::uint8_t> right;  ///< one entry per target
  double loss = 0;                  ///< mean cross-entropy
  double kept = 0;                  ///< share of the masked weights
  double retained = 0;              ///< share of the sum of their magnitudes

  std::int64_t correct() const;
  double top1() const;
};

struct PrunedNet {
  std::string label;
  Pruned dense;                  ///< nothing pruned
  std::vector<Pruned> patterns;  ///< in the order of half_density_patterns()
};

/// The networks of setting `nets` as shipped, and `trained` more of each from other seeds. The same
/// layers are masked under every pattern: evenly_masked_layers().
std::vector<PrunedNet> pruned_nets(const ExperimentRun&, const net::Dataset&);

}  // namespace numemu::experiments

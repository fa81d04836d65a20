// The patterns of density 50 %, masks of the smallest pieces that carry a constraint and how often
// each kind occurs, and networks pruned once under every pattern.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/stats/entropy.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/storage/fields.hpp"
#include "policies/mask/mask_count.hpp"

namespace numemu::experiments {

using policies::kReferenceBlock, policies::log10_per_block, policies::mask_diversity,
    policies::piece_count, policies::piece_size;
using policies::MaskCount, policies::MaskFamily;

// Kinds of masks of a tile: those that permuting rows and columns turns into each other.

/// The largest tile whose kinds are distinguished: 8 x 8, one word.
inline constexpr int kMostKindTile = 8;

/// Where the elements of a tile are independent and equally distributed, without ties, the best
/// masks of one kind are equally likely: exchanging rows or columns of the tile does the same to
/// its mask. So the entropy of masks is that of kinds and the mean of log2 of their size.
struct MaskKind {
  std::uint64_t canonical = 0;  ///< the same for masks of one kind, and for no others
  std::int64_t size = 0;        ///< masks of this kind
};

/// Of a mask of m x m elements, row-major, element 0 in the lowest bit. Throws Error unless
/// 1 <= m <= kMostKindTile.
MaskKind kind_of(std::uint64_t mask, int m);

// Empirical mask diversity: which masks a rule really gives, how often, and how they change.

/// Counts keys of `width` 64-bit words: an open-addressing hash set with a count per key.
class KeyCounter {
 public:
  explicit KeyCounter(int width);
  void add(const std::uint64_t* key);
  std::int64_t distinct() const { return static_cast<std::int64_t>(counts_.size()); }
  /// Of the keys in the order they first came.
  const std::vector<std::int64_t>& counts() const { return counts_; }
  /// Key i, `width` words.
  const std::uint64_t* key(std::int64_t i) const { return keys_.data() + i * width_; }

 private:
  void grow();
  std::size_t slot_of(const std::uint64_t* key) const;

  int width_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int64_t> counts_;
  std::vector<std::uint32_t> slots_;  ///< 1 + the number of a key; 0: free
};

/// The largest piece: a tile of 32 x 32.
inline constexpr std::int64_t kMostPiece = 1024;

/// The masks of pieces that each carry a constraint alone (1 x M or M x M; see piece_size in
/// policies/mask/mask_count.hpp), as bit sets.
class MaskCensus {
 public:
  /// Throws Error unless 1 <= piece <= kMostPiece.
  explicit MaskCensus(std::int64_t piece);
  /// `keep`: 0 or 1 for each element of `pieces` pieces, one after the other.
  void add(const std::uint8_t* keep, std::int64_t pieces);

  std::int64_t piece() const { return piece_; }
  std::int64_t pieces() const { return pieces_; }
  /// Support seen: masks that came at least once.
  std::int64_t distinct() const { return masks_.distinct(); }
  /// How often each came, in the order they first came.
  const std::vector<std::int64_t>& counts() const { return masks_.counts(); }
  /// Mask i as one word; for pieces of at most 64 elements, element 0 in the lowest bit.
  std::uint64_t mask(std::int64_t i) const { return *masks_.key(i); }
  /// Share of the elements kept; 0 before any came.
  double kept() const;
  /// Of the mask of one piece, in bits. Throws Error before any came.
  stats::Entropy entropy() const { return stats::entropy(counts()); }
  stats::CollisionEntropy collision_entropy() const { return stats::collision_entropy(counts()); }
  /// entropy().corrected for each element.
  double bits_per_element() const;

 private:
  std::int64_t piece_, pieces_ = 0, kept_ = 0;
  KeyCounter masks_;
};

/// Elements whose decision differs between two masks of n elements, as a share; 0 for n = 0.
double flip_rate(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n);

/// The masks of one tensor as they are renewed during training.
class MaskHistory {
 public:
  /// Throws Error unless pieces of 1 to kMostPiece elements fill the tensor.
  MaskHistory(std::int64_t piece, std::int64_t elements);
  /// The next mask, all elements of the tensor.
  void add(const std::uint8_t* keep);

  std::int64_t pieces() const { return elements_ / piece_; }
  std::int64_t masks() const { return masks_; }
  /// Between each mask and the one before it; one fewer than masks().
  const std::vector<double>& flip_rates() const { return flips_; }
  /// Mean number of different masks that a piece had; 0 before any came.
  double distinct_per_piece() const;

 private:
  std::int64_t piece_, elements_, masks_ = 0;
  std::vector<std::uint8_t> last_;
  std::vector<double> flips_;
  KeyCounter seen_;  ///< the piece's number and its mask
};

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

/// What is trained of a network, but for the masks.
TrainTrial training_of_masks(const ExperimentRun&, const net::Dataset&, const std::string& net);
/// Of setting train_net. Throws Error for settings that cannot be served.
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

/// A census by kinds of masks (MaskKind): the entropy of masks that follows, in bits.
struct KindFigures {
  std::size_t distinct = 0;
  double coverage = 0, entropy = 0, low = 0, high = 0;
  double p = NAN;         ///< that kinds are as likely as they are large
  double within_p = NAN;  ///< that masks of one kind are equally likely

  static void fields(auto& self, const auto& visit) {
    visit("distinct", self.distinct);
    visit("coverage", self.coverage);
    visit("entropy", self.entropy);
    visit("low", self.low);
    visit("high", self.high);
    visit("p", self.p);
    visit("within_p", self.within_p);
  }
};

/// A census as a trial measures it; entropies in bits. NaN where it does not tell.
struct CensusFigures {
  std::int64_t pieces = 0, distinct = 0;
  double kept = 0, plug_in = 0, corrected = 0, low = 0, high = 0, coverage = 0;
  std::int64_t collisions = 0;
  double collision_low = NAN, collision_bits = NAN, collision_high = NAN;
  /// Of the chi-square test that all masks are equally likely, of 5 pieces per mask and more.
  double p = NAN;
  /// Of transposable masks up to 8 x 8 and exchangeable elements.
  Member<KindFigures> kinds = Member<KindFigures>::null();

  static void fields(auto& self, const auto& visit) {
    visit("pieces", self.pieces);
    visit("distinct", self.distinct);
    visit("kept", self.kept);
    visit("plug_in", self.plug_in);
    visit("corrected", self.corrected);
    visit("low", self.low);
    visit("high", self.high);
    visit("coverage", self.coverage);
    visit("collisions", self.collisions);
    visit("collision_low", self.collision_low);
    visit("collision_bits", self.collision_bits);
    visit("collision_high", self.collision_high);
    visit("p", self.p);
    visit("kinds", self.kinds);
  }
};
CensusFigures figures_of(const MaskCensus&, const DiversityPattern&, bool exchangeable);

// Networks pruned once by magnitude, without retraining, under every pattern of density 50 %.

/// A network under one pattern, on the test images.
struct Pruned {
  double kept = 0;      ///< share of the masked weights
  double retained = 0;  ///< share of the sum of their magnitudes
  double loss = 0;      ///< mean cross-entropy
  std::string right;    ///< answer_text() of the test targets

  std::int64_t correct() const;
  double top1() const;
  static void fields(auto& self, const auto& visit) {
    visit("kept", self.kept);
    visit("retained", self.retained);
    visit("loss", self.loss);
    visit("right", self.right);
  }
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

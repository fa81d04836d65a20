// A mask rule chooses which elements of a tensor are kept, or puts unbiased estimates in their
// place; one file each in policies/mask/rules/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/sparse/pattern.hpp"
#include "formats/analysis/magnitude_law.hpp"
#include "formats/random.hpp"

namespace numemu::policies {

/// What a rule decides over at a time.
enum class MaskSpan : std::uint8_t {
  group,   ///< M neighbours along one axis
  tile,    ///< M x M elements
  tensor,  ///< all of it, element by element
};

/// What happens where M does not divide an axis.
enum class Remainder : std::uint8_t {
  error,  ///< the tensor is refused
  pad,    ///< as if zeros followed
  dense,  ///< the tail stays as it is
};

/// Along which axis groups run.
enum class MaskAxis : std::uint8_t {
  channel,    ///< of the channels inside one tap or pixel; in wgrad: batch
  reduction,  ///< weights: the flattened depth of fprop
  batch,      ///< gradients: over batch and space, whichever product reads them
};

/// Which elements of a weight [out, taps, in] form a tile.
enum class TileLayout : std::uint8_t {
  tile,     ///< M outputs x M inputs of one tap: both products that read the weight see N:M
  channel,  ///< M M neighbours of one output channel
};

/// What is done to the weights kept.
enum class Repair : std::uint8_t {
  none,
  absorb,    ///< each group's or tile row's pruned sum is shared by what it keeps
  adaprune,  ///< least squares on calibration inputs, layer by layer (inference)
};

struct MaskRule;

/// The fields of a text like "greedy(2:4,remainder=pad)".
struct MaskPolicy {
  const MaskRule* rule = nullptr;
  unit::Pattern pattern = {};  ///< span group and tile: N kept of M
  double share = 0;            ///< span tensor: the rule's argument, in (0, 1)
  Remainder remainder = Remainder::error;
  MaskAxis axis = MaskAxis::channel;
  TileLayout layout = TileLayout::tile;
  Repair repair = Repair::none;
  std::int64_t refresh = 1;  ///< weights in training: steps that a mask serves; 0: all of them;
                             ///< default for tiles: 40
  ThresholdLaw law = ThresholdLaw::normal;
  std::int64_t history = 0;  ///< thresholds averaged for the next one; 0: that of the tensor
  bool propagated = false;   ///< gradients: prunes what dgrad gives, not what it reads
};

/// `count` groups of M neighbours, tiles of M M row-major elements, or single elements (span
/// tensor), one after the other; the first is number `first` of its tensor, which counts the random
/// draws: group g draws random.uniform(first + g), its d-th draw with random.draw = d.
struct MaskRun {
  const float* x = nullptr;
  float* y = nullptr;            ///< +0 where pruned; null: only `keep` is written
  std::uint8_t* keep = nullptr;  ///< 1 where kept, else 0; may be null
  std::int64_t count = 0;
  std::uint64_t first = 0;
  double threshold = 0;  ///< span tensor with a threshold
};

/// Magnitudes decide; ties go to the earlier element. A NaN or infinite element ranks above every
/// finite one. Rules that change values give NaN for what they keep of a group with such an element
/// (its first N elements), so that overflow stays seen. Zeros (-0 too) that are pruned become +0.
struct MaskRule {
  const char* name;
  const char* summary;  ///< one line for --help and docs
  const char* source;   ///< publication
  MaskSpan span;
  bool random;    ///< draws
  bool unbiased;  ///< the expectation of y is x
  /// Names of the options it takes beside remainder and axis: layout, repair, refresh, law,
  /// history, at.
  std::vector<std::string_view> options;
  /// Span tensor without a threshold: called once with the whole tensor. Else runs are independent.
  void (*prune)(const MaskPolicy&, const RandomSource&, const MaskRun&);
  /// Expected sum of (y - x)^2 over one group, tile, or (span tensor) `n` elements under
  /// `threshold`; closed form, cancellation-safe.
  double (*error)(const MaskPolicy&, const float* x, std::int64_t n, double threshold) = nullptr;
  /// Span tensor: the threshold of this tensor; null: the rule has none.
  double (*threshold)(const MaskPolicy&, const float* x, std::int64_t n) = nullptr;
  /// Throws Error where the pattern or argument is not one the rule can serve; may be null.
  void (*check)(const MaskPolicy&) = nullptr;
};

std::vector<const MaskRule*> all_mask_rules();
/// Throws Error with the nearest known name.
const MaskRule& find_mask_rule(std::string_view name);

/// "NAME(N:M)", "NAME(SHARE)" with options ",key=value". Throws Error saying what was expected.
MaskPolicy parse_mask(std::string_view text);
/// The canonical text: options in a fixed order, defaults left out.
std::string to_string(const MaskPolicy&);

/// For rules that judge single elements: throws Error for a pairwise pattern, naming the rule.
void require_single_elements(const char* rule, const unit::Pattern&);

/// Share of the elements that is kept (at most); 1 where it depends on the data.
double kept_share(const MaskPolicy&);
/// Elements that one decision is about: M, M M, or 1.
std::int64_t decision_size(const MaskPolicy&);

}  // namespace numemu::policies

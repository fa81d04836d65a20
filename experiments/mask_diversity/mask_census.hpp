// Kinds of masks, and which masks of the smallest pieces occur and how often.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/stats/entropy.hpp"
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

}  // namespace numemu::experiments

// How many masks a pattern admits, of which kinds, and which of them occur.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/stats/entropy.hpp"
#include "emu/unit/sparse/pattern.hpp"

namespace numemu::experiments {

/// n! in any type of whole numbers: 1 for n <= 1. The type must hold it: 64 bits do up to 20!.
template <class Integer>
Integer factorial(int n) {
  Integer result = 1;
  for (int i = 2; i <= n; ++i) result *= i;
  return result;
}

/// A number of masks. Sparsity specification, section 2b.
struct MaskCount {
  std::string decimal;  ///< every digit; empty where there are more than kMostDigits
  double log10 = 0, log2 = 0;

  static constexpr int kMostDigits = 2000;
};

/// What a mask must keep to.
enum class MaskFamily : std::uint8_t {
  unstructured,        ///< N / M of all elements, anywhere
  group,               ///< N of every M neighbours
  transposable,        ///< N of every row and column of every M x M tile: counted exactly
  transposable_bound,  ///< the same as Hubara et al. (2021) count it: an upper bound
  sequential,          ///< N of every M neighbours, those pruned contiguous
};
/// "unstructured", "group", "transposable", "transposable upper bound", "sequential".
std::string_view to_string(MaskFamily);

/// C(elements, kept). Throws Error unless 0 <= kept <= elements.
MaskCount unstructured_count(std::int64_t elements, std::int64_t kept);
/// C(M, N); pairs are what is chosen in a pairwise pattern.
MaskCount group_count(const unit::Pattern&);
/// R(M, N): the 0/1 matrices M x M with every row and column sum N, by dynamic programming over the
/// multisets of column sums. Throws Error unless 1 <= N <= M <= 16.
MaskCount transposable_count(const unit::Pattern&);
/// M! (M-1)! ... (M-N+1)!, as published: R(M, 1) for N = 1, else above R(M, N) but for N = 2 from
/// M = 10 on, where it falls below and bounds nothing.
MaskCount transposable_bound(const unit::Pattern&);
/// The M - N contiguous zeros start in N + 1 places (published as M - N + 1, N then the zeros); 1
/// for N = M.
MaskCount sequential_count(const unit::Pattern&);

/// Elements of the smallest piece that carries the constraint: M, M^2 for transposable masks, 1
/// where only all elements together carry it.
std::int64_t piece_size(MaskFamily, const unit::Pattern&);
/// Masks of one such piece; unstructured has none (Error).
MaskCount piece_count(MaskFamily, const unit::Pattern&);

/// Mask diversity of a tensor of `elements`: piece_count to the number of pieces; C(T, T N / M)
/// where unstructured. Throws Error unless pieces of M (M^2) elements fill it.
MaskCount mask_diversity(MaskFamily, const unit::Pattern&, std::int64_t elements);

/// Diversity is published per 8 x 8 elements.
inline constexpr std::int64_t kReferenceBlock = 64;

/// log10 of the diversity per kReferenceBlock elements: C(64, 64 N / M) where unstructured, else
/// 64 / piece_size times that of the piece.
double log10_per_block(MaskFamily, const unit::Pattern&);

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
/// mask_count.hpp), as bit sets.
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

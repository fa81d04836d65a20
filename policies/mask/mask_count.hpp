// How many masks a pattern admits.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::policies {

/// n! in any type of whole numbers: 1 for n <= 1. The type must hold it: 64 bits do up to 20!.
template <class Integer>
Integer factorial(int n) {
  Integer result = 1;
  for (int i = 2; i <= n; ++i) result *= i;
  return result;
}

/// A number of masks.
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

}  // namespace numemu::policies

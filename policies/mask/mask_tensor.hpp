// A mask rule applied to a tensor: its groups or tiles cut out, tails by the explicit rule, over
// threads.
#pragma once
#include <cstdint>

#include "policies/mask/mask_rule.hpp"

namespace numemu::policies {

/// A tensor [outer, rows, inner, width], row-major: outer x inner matrices of rows x width. Groups
/// run along `width` or along `rows`; tiles lie in the matrices. A weight [out, taps, in] is {1,
/// out, taps, in}, the gradient of its outputs {1, batch x space, 1, out}.
struct MaskLayout {
  std::int64_t outer = 1, rows = 1, inner = 1, width = 1;
  bool along_rows = false;

  std::int64_t size() const { return outer * rows * inner * width; }
};

/// Throws Error naming the axis, its length and M where the remainder rule is `error` and M does
/// not divide it (M M for tiles of layout `channel`).
void require_layout(const MaskPolicy&, const MaskLayout&);

/// Decisions in the tensor: random draws of the next one begin there. Groups, tiles or elements are
/// numbered row-major, those of tails counted where the remainder rule is `pad`.
std::uint64_t decision_count(const MaskPolicy&, const MaskLayout&);

/// Elements that such a mask keeps at most: `positions` of them among groups that drop some, whose
/// places are stored; the others lie in tails.
struct KeptElements {
  double positions = 0, others = 0;
};
KeptElements kept_elements(const MaskPolicy&, const MaskLayout&);

/// y of size() elements, may be null; keep likewise; the first decision is number `first`. The
/// same bits for any number of threads. `repair=absorb` is applied to y. `threshold` serves rules
/// that have one. Throws as require_layout().
void mask_tensor(const MaskPolicy&, const RandomSource&, const MaskLayout&, std::uint64_t first,
                 double threshold, const float* x, float* y, std::uint8_t* keep);

/// Absorb mean: what a group loses is shared by what it keeps, so that its sum stays (AdaPrune,
/// Hubara et al., NeurIPS 2021).
///
/// `groups` groups of `size` neighbours one after the other; the rows of row-major tiles are
/// groups, too. keep: 1 where kept, else 0; any mask. y[i] = x[i] + (sum of pruned) / (number kept)
/// where kept, +0 elsewhere; y may be x.
///
/// The sum ascends in float64, share and result are computed there, and one rounding to float32
/// follows. Where the sum is zero, kept elements keep their bits; where it or one of them is not
/// finite, what follows from it is not either, a NaN always 0x7fc00000. A group that keeps nothing
/// becomes zeros: its sum is lost.
void absorb_pruned(std::int64_t groups, std::int64_t size, const float* x, const std::uint8_t* keep,
                   float* y);

/// y = x where kept, else +0, and repaired as the policy says; for masks made before.
void apply_mask(const MaskPolicy&, const MaskLayout&, const float* x, const std::uint8_t* keep,
                float* y);

}  // namespace numemu::policies

// Mask rule greedy: the N largest magnitudes of each group of M.
//
// By vectors: an element is pruned if at least N of its group beat it, which is counted by
// comparing it with every neighbour. One set of loops per instruction set, dispatched at run time.
#include "policies/mask/rules/greedy.hpp"

#include <algorithm>
#include <numeric>

#include "policies/mask/kept_bits.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/rules/greedy.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void keep_largest(const unit::Sparsity& pattern, const policies::MaskRun& run) {
  policies::keep_largest_reference(pattern, run);
}

#else

namespace {

using Integers = hn::RebindToSigned<Floats>;
using IntegerVector = hn::Vec<Integers>;
constexpr Integers kIntegers;

HWY_INLINE IntegerVector integer(std::int32_t x) { return hn::Set(kIntegers, x); }
HWY_INLINE IntegerVector magnitudes(const float* x) {
  return hn::And(hn::BitCast(kIntegers, hn::LoadU(kFloats, x)), integer(0x7fffffff));
}
HWY_INLINE IntegerVector position_in(std::int32_t group) {
  return hn::And(hn::Iota(kIntegers, 0), integer(group - 1));
}
HWY_INLINE IntegerVector one_from(IntegerVector position, std::int32_t first) {
  return hn::IfThenElseZero(hn::Gt(position, integer(first - 1)), integer(1));
}

// Below, m - n of two magnitudes is negative where n beats m. The neighbour that is earlier in the
// group wins ties: one is taken off as well, and -2^31 is the least that can come out. All bits of
// a result are set where an element is pruned.

class OneOfTwo {
 public:
  HWY_INLINE OneOfTwo() : odd_(one_from(position_in(2), 1)) {}

  HWY_INLINE IntegerVector operator()(const float* x, std::int64_t) const {
    const IntegerVector m = magnitudes(x);
    return hn::BroadcastSignBit(hn::Sub(hn::Sub(m, odd_), hn::Shuffle2301(m)));
  }

 private:
  IntegerVector odd_;
};

// Two comparisons are enough for three neighbours: an element's comparison with its predecessor is
// the predecessor's comparison with its successor.
class TwoOfFour {
 public:
  HWY_INLINE TwoOfFour() : last_(one_from(position_in(4), 3)), late_(one_from(position_in(4), 2)) {}

  HWY_INLINE IntegerVector operator()(const float* x, std::int64_t) const {
    const IntegerVector m = magnitudes(x);
    const IntegerVector next = hn::Sub(hn::Sub(m, last_), hn::Shuffle0321(m));
    const IntegerVector across = hn::Sub(hn::Sub(m, late_), hn::Shuffle1032(m));
    const IntegerVector beats_before = hn::Shuffle2103(next);
    // Negative where at least two of (next, across, not beats_before) are.
#if NUMEMU_AVX512
    const IntegerVector two{
        _mm512_ternarylogic_epi32(next.raw, across.raw, beats_before.raw, 0xd4)};
#else
    const IntegerVector two =
        hn::Or(hn::And(next, across), hn::AndNot(beats_before, hn::Or(next, across)));
#endif
    return hn::BroadcastSignBit(two);
  }

 private:
  IntegerVector last_, late_;
};

/// y and keep of n elements, a multiple of four vectors; pruned(x + i, first + i) prunes one.
template <class Pruned>
HWY_INLINE void write(const Pruned& pruned, std::int64_t first, const float* x, std::int64_t n,
                      float* y, std::uint8_t* keep) {
  const std::int64_t k = lanes();
  const auto put = [&](IntegerVector p, std::int64_t at) HWY_ATTR {
    const IntegerVector bits = hn::BitCast(kIntegers, hn::LoadU(kFloats, x + at));
    hn::StoreU(hn::BitCast(kFloats, hn::AndNot(p, bits)), kFloats, y + at);
  };
  const auto byte = [](IntegerVector p)
                        HWY_ATTR { return hn::BitCast(kWords, hn::Add(p, integer(1))); };
  for (std::int64_t i = 0; i < n; i += 4 * k) {
    const IntegerVector a = pruned(x + i, first + i);
    const IntegerVector b = pruned(x + i + k, first + i + k);
    const IntegerVector c = pruned(x + i + 2 * k, first + i + 2 * k);
    const IntegerVector d = pruned(x + i + 3 * k, first + i + 3 * k);
    if (keep != nullptr) store_bytes(byte(a), byte(b), byte(c), byte(d), keep + i);
    if (y == nullptr) continue;
    put(a, i);
    put(b, i + k);
    put(c, i + 2 * k);
    put(d, i + 3 * k);
  }
}

/// write() for any n: what is left of the last step goes through arrays of a step's size.
template <class Pruned>
void write_all(const Pruned& pruned, const float* x, std::int64_t n, float* y, std::uint8_t* keep) {
  const std::int64_t step = 4 * lanes(), whole = n / step * step, rest = n - whole;
  write(pruned, 0, x, whole, y, keep);
  if (rest == 0) return;
  constexpr std::size_t kStep = 4 * hn::MaxLanes(Floats());
  alignas(64) float from[kStep] = {}, to[kStep];
  alignas(64) std::uint8_t bytes[kStep];
  std::copy_n(x + whole, rest, from);
  write(pruned, whole, from, step, to, bytes);
  if (y != nullptr) std::copy_n(to, rest, y + whole);
  if (keep != nullptr) std::copy_n(bytes, rest, keep + whole);
}

/// Any N:M: magnitudes are compared with themselves, shifted by 1, 2... M - 1 both ways.
class AnyPattern {
 public:
  /// At most so many elements are loaded at a time.
  static constexpr std::int64_t kBatch = 1024;

  explicit AnyPattern(const unit::Sparsity& pattern)
      : group_(pattern.group),
        most_(pattern.kept - 1),
        phases_(std::lcm(group_, lanes()) / lanes()) {
    std::int32_t* next = inside_;
    for (std::int64_t first = 0; first < phases_ * lanes(); first += lanes()) {
      std::int64_t position[kLanes];
      for (std::int64_t lane = 0; lane < lanes(); ++lane) position[lane] = (first + lane) % group_;
      for (std::int64_t shift = 1; shift < group_; ++shift) {
        for (const std::int64_t distance : {shift, -shift}) {
          for (std::int64_t lane = 0; lane < lanes(); ++lane) {
            const std::int64_t neighbour = position[lane] + distance;
            *next++ = neighbour >= 0 && neighbour < group_ ? 1 : 0;
          }
        }
      }
    }
  }

  /// The elements of whole groups for the next calls of operator().
  void load(const float* x, std::int64_t n) {
    std::int32_t* to = magnitudes_ + kMargin;
    std::int64_t i = 0;
    for (; i + lanes() <= n; i += lanes()) hn::StoreU(magnitudes(x + i), kIntegers, to + i);
    for (; i < n; ++i) to[i] = static_cast<std::int32_t>(policies::magnitude_bits(x[i]));
  }

  HWY_INLINE IntegerVector operator()(const float*, std::int64_t i) const {
    const std::int32_t* at = magnitudes_ + kMargin + i;
    const auto phase =
        static_cast<std::uint32_t>(i / lanes()) % static_cast<std::uint32_t>(phases_);
    const std::int32_t* inside = inside_ + phase * 2 * (group_ - 1) * lanes();
    const IntegerVector m = hn::LoadU(kIntegers, at), less = hn::Sub(m, integer(1));
    IntegerVector rank = hn::Zero(kIntegers);
    const auto count = [&](auto beaten) HWY_ATTR {
      rank = hn::Add(rank, hn::IfThenElseZero(beaten, hn::LoadU(kIntegers, inside)));
      inside += lanes();
    };
    for (std::int64_t shift = 1; shift < group_; ++shift) {
      count(hn::Gt(hn::LoadU(kIntegers, at + shift), m));
      count(hn::Gt(hn::LoadU(kIntegers, at - shift), less));
    }
    return hn::VecFromMask(kIntegers, hn::Gt(rank, integer(most_)));
  }

 private:
  static constexpr std::int64_t kMargin = unit::kMostGroup, kLanes = hn::MaxLanes(Integers());

  std::int64_t group_;
  std::int32_t most_;    ///< that may beat an element which is kept
  std::int64_t phases_;  ///< vectors until one starts with a group again
  /// By phase, shift, and direction: 1 where the neighbour is of the same group.
  std::int32_t inside_[unit::kMostGroup * 2 * (unit::kMostGroup - 1) * kLanes];
  /// With room for the neighbours and for the rest of the last step.
  alignas(64) std::int32_t magnitudes_[kMargin + kBatch + 4 * kLanes + kMargin] = {};
};

}  // namespace

void keep_largest(const unit::Sparsity& pattern, const policies::MaskRun& run) {
  const std::int64_t n = run.count * pattern.group;
  if (pattern.kept == 1 && pattern.group == 2)
    return write_all(OneOfTwo(), run.x, n, run.y, run.keep);
  if (pattern.kept == 2 && pattern.group == 4)
    return write_all(TwoOfFour(), run.x, n, run.y, run.keep);
  AnyPattern any(pattern);
  const std::int64_t batch = AnyPattern::kBatch / pattern.group * pattern.group;
  for (std::int64_t i = 0; i < n; i += batch) {
    const std::int64_t size = std::min(batch, n - i);
    any.load(run.x + i, size);
    write_all(any, run.x + i, size, run.y == nullptr ? nullptr : run.y + i,
              run.keep == nullptr ? nullptr : run.keep + i);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu {
namespace simd {
HWY_EXPORT(keep_largest);
}  // namespace simd

namespace policies {

std::uint32_t largest_of_group(const unit::Sparsity& pattern, const float* x) {
  std::uint32_t kept = 0;
  for (int i = 0; i < pattern.group; ++i) {
    int beaten_by = 0;
    for (int j = 0; j < pattern.group; ++j) {
      const std::uint32_t mine = magnitude_bits(x[i]), other = magnitude_bits(x[j]);
      beaten_by += other > mine || (other == mine && j < i) ? 1 : 0;
    }
    if (beaten_by < pattern.kept) kept |= 1U << i;
  }
  return kept;
}

void keep_largest_reference(const unit::Sparsity& pattern, const MaskRun& run) {
  for (std::int64_t g = 0; g < run.count; ++g)
    write_group(run, g, pattern.group, largest_of_group(pattern, run.x + g * pattern.group));
}

void keep_largest(const unit::Sparsity& pattern, const MaskRun& run) {
  using namespace simd;  // with one target Highway's macro takes no qualified name
  HWY_DYNAMIC_DISPATCH(keep_largest)(pattern, run);
}

extern const MaskRule mask_greedy{
    .name = "greedy",
    .summary = "the N largest magnitudes of each group; the least squared error, biased",
    .source = "magnitude pruning; Hubara et al., NeurIPS 2021 (arXiv 2102.08124)",
    .span = MaskSpan::group,
    .random = false,
    .unbiased = false,
    .options = {"repair", "refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_largest(policy.pattern, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t, double) {
          return pruned_squares(x, policy.pattern.group, largest_of_group(policy.pattern, x));
        },
    .check = [](const MaskPolicy& policy) { require_single_elements("greedy", policy.pattern); }};

}  // namespace policies
}  // namespace numemu
#endif

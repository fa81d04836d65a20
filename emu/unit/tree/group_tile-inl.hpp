// Tiles of units that go from group to group of products: packs, steps, stores; per Highway target.
#if defined(NUMEMU_GROUP_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_GROUP_TILE_INL
#undef NUMEMU_GROUP_TILE_INL
#else
#define NUMEMU_GROUP_TILE_INL
#endif

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/lanes/narrow-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows and vectors of a block; with a group's lanes they fill the registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kGroupRows = 8;
#else
constexpr int kGroupRows = 4;
#endif

/// registers[i][j] <- Rule::Step over `groups` groups of Rule::kGroup products, for kGroupRows rows
/// [k][kGroupRows] of float32 and one vector of lanes, [k][Lanes] of Rule::Number.
template <class Rule>
HWY_NOINLINE void StepGroups(const Rule& rule, const typename Rule::Number* HWY_RESTRICT rows,
                             const typename Rule::Number* HWY_RESTRICT lanes, std::int64_t groups,
                             typename Rule::Number* HWY_RESTRICT registers) {
  const hn::ScalableTag<typename Rule::Number> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kGroup = Rule::kGroup;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kGroupRows];
  ForConstants<kGroupRows>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    sums[i] = hn::Load(d, registers + i * width);
  });
  for (std::int64_t g = 0; g < groups; ++g) {
    V b[kGroup];
    ForConstants<kGroup>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
      b[k] = hn::Load(d, lanes + (g * kGroup + k) * width);
    });
    ForConstants<kGroupRows>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      V a[kGroup];
      ForConstants<kGroup>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
        a[k] = hn::Set(d, rows[(g * kGroup + k) * kGroupRows + i]);
      });
      sums[i] = rule.Step(d, a, b, sums[i]);
    });
  }
  ForConstants<kGroupRows>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::Store(sums[i], d, registers + i * width);
  });
}

/// StepGroups of a rule: (rows, lanes, groups, registers).
template <class T>
using GroupSteps = std::function<void(const T*, const T*, std::int64_t, T*)>;

/// One tile, slice by slice of k, whose steps take `group` products. Sums stay in T between the
/// slices. It is compiled once for all rules of a T.
template <class T>
class GroupTile {
 public:
  GroupTile(std::int64_t group, GroupSteps<T> steps, const ChainTile<float, float>& tile)
      : group_(group),
        depth_(std::max<std::int64_t>(kDepth / group, 1) * group),
        steps_(std::move(steps)),
        t_(tile),
        width_(static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()))),
        blocks_((tile.row_end - tile.row_begin + kGroupRows - 1) / kGroupRows),
        panels_((tile.lane_end - tile.lane_begin + width_ - 1) / width_),
        rows_(Room<T>(blocks_ * kGroupRows * depth_)),
        lanes_(Room<T>(width_ * depth_)),
        floats_(Room<float>(std::max<std::int64_t>(kGroupRows, width_) * depth_)),
        runs_(Room<Run>(depth_)),
        registers_(Room<T>(panels_ * blocks_ * kGroupRows * width_)) {}

  void Compute() {
    Exchange(false);
    for (std::int64_t k = 0; k < t_.k; k += depth_) {
      const std::int64_t depth = std::min(depth_, t_.k - k);
      for (std::int64_t b = 0; b < blocks_; ++b) {
        const std::int64_t row = t_.row_begin + b * kGroupRows;
        PackInto(t_.rows, row, std::min<std::int64_t>(kGroupRows, t_.row_end - row), kGroupRows, k,
                 depth, rows_.get() + b * kGroupRows * depth);
      }
      for (std::int64_t p = 0; p < panels_; ++p) {
        const std::int64_t lane = t_.lane_begin + p * width_;
        PackInto(t_.lanes, lane, std::min(width_, t_.lane_end - lane), width_, k, depth,
                 lanes_.get());
        for (std::int64_t b = 0; b < blocks_; ++b)
          steps_(rows_.get() + b * kGroupRows * depth, lanes_.get(), depth / group_,
                 Registers(p, b));
      }
    }
    Exchange(true);
  }

 private:
  /// Products packed at a time, cut to whole groups.
  static constexpr std::int64_t kDepth = 256;

  template <class U>
  static hwy::AlignedFreeUniquePtr<U[]> Room(std::int64_t count) {
    return hwy::AllocateAligned<U>(static_cast<std::size_t>(count));
  }
  T* Registers(std::int64_t p, std::int64_t b) {
    return registers_.get() + (p * blocks_ + b) * kGroupRows * width_;
  }

  /// Registers from C, or D from registers.
  void Exchange(bool out) {
    if (!out) std::fill_n(registers_.get(), panels_ * blocks_ * kGroupRows * width_, T{0});
    if (!out && t_.c == nullptr) return;
    for (std::int64_t i = t_.row_begin; i < t_.row_end; ++i) {
      for (std::int64_t j = t_.lane_begin; j < t_.lane_end; ++j) {
        const std::int64_t row = i - t_.row_begin, lane = j - t_.lane_begin;
        T& held =
            Registers(lane / width_, row / kGroupRows)[row % kGroupRows * width_ + lane % width_];
        const std::int64_t at = i * t_.row_stride + j * t_.lane_stride;
        if (out) {
          t_.d[at] = static_cast<float>(held);
        } else {
          held = static_cast<T>(t_.c[at]);
        }
      }
    }
  }

  void PackInto(const ChainSide<float>& side, std::int64_t first, std::int64_t count,
                std::int64_t width, std::int64_t k, std::int64_t depth, T* packed) {
    const std::int64_t runs = FindRuns(side.depth + k, depth, runs_.get());
    const PackedSlice<float> slice{side,           first, count,       width,
                                   side.depth + k, depth, runs_.get(), runs};
    if constexpr (std::is_same_v<T, float>) {
      Pack<float>(slice, packed);
    } else {
      Pack<float>(slice, floats_.get());
      for (std::int64_t i = 0; i < depth * width; ++i) packed[i] = static_cast<T>(floats_[i]);
    }
  }

  std::int64_t group_, depth_;
  GroupSteps<T> steps_;
  const ChainTile<float, float>& t_;
  std::int64_t width_, blocks_, panels_;
  hwy::AlignedFreeUniquePtr<T[]> rows_, lanes_;
  hwy::AlignedFreeUniquePtr<float[]> floats_;
  hwy::AlignedFreeUniquePtr<Run[]> runs_;
  hwy::AlignedFreeUniquePtr<T[]> registers_;
};

template <class Rule>
void RunGroupTile(const Rule& rule, const ChainTile<float, float>& tile) {
  using T = typename Rule::Number;
  const auto steps = [&](const T* rows, const T* lanes, std::int64_t groups, T* registers) {
    StepGroups(rule, rows, lanes, groups, registers);
  };
  GroupTile<T>(Rule::kGroup, steps, tile).Compute();
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_GROUP_TILE_INL

// One tile of two-stage fused products: packs slices of k and runs both stages; per Highway target.
#include "emu/unit/staged/staged_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/staged/staged_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/staged/staged_kernel-inl.hpp"
#include "formats/float_guard.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Both sides of one slice of k, packed, and the room that takes.
class StagedSlices {
 public:
  explicit StagedSlices(const StagedTile& tile)
      : t_(tile),
        width_(static_cast<std::int64_t>(hn::Lanes(Exponents16()))),
        blocks_((tile.row_end - tile.row_begin + kBlockRows - 1) / kBlockRows),
        panels_((tile.lane_end - tile.lane_begin + width_ - 1) / width_),
        rows_(Room<RowElement>(blocks_ * kBlockRows * kStagedSlice)),
        floats_(Room<float>(std::max<std::int64_t>(kBlockRows, width_) * kStagedSlice)),
        numbers_(Room<double>(2 * width_ * kStagedSlice)),
        exponents_(Room<std::int16_t>(width_ * kStagedSlice)),
        sums_(Room<double>(kBlockRows * width_ * kStagedSlice)),
        cuts_(Room<double>(kBlockRows * width_ * kStagedSlice)),
        runs_(Room<Run>(kStagedSlice)),
        registers_(Room<float>(panels_ * blocks_ * kBlockRows * width_)) {}

  void Compute() {
    ForEachBlock([&](std::int64_t p, std::int64_t b) { Exchange(p, b, false); });
    for (std::int64_t k = 0; k < t_.padded_k; k += kStagedSlice) {
      PackRows(k);
      for (std::int64_t p = 0; p < panels_; ++p) {
        PackLanes(k, p);
        for (std::int64_t b = 0; b < blocks_; ++b) Multiply(k, p, b);
      }
    }
    ForEachBlock([&](std::int64_t p, std::int64_t b) { Exchange(p, b, true); });
  }

 private:
  template <class T>
  static hwy::AlignedFreeUniquePtr<T[]> Room(std::int64_t count) {
    return hwy::AllocateAligned<T>(static_cast<std::size_t>(count));
  }
  template <class Visit>
  void ForEachBlock(const Visit& visit) {
    for (std::int64_t p = 0; p < panels_; ++p) {
      for (std::int64_t b = 0; b < blocks_; ++b) visit(p, b);
    }
  }
  std::int64_t Depth(std::int64_t k) const { return std::min(kStagedSlice, t_.padded_k - k); }
  float* Registers(std::int64_t p, std::int64_t b) {
    return registers_.get() + (p * blocks_ + b) * kBlockRows * width_;
  }

  /// Registers from C, or D from registers.
  void Exchange(std::int64_t p, std::int64_t b, bool out) {
    float* registers = Registers(p, b);
    const std::int64_t row = t_.row_begin + b * kBlockRows, lane = t_.lane_begin + p * width_;
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, t_.row_end - row);
    const std::int64_t lanes = std::min(width_, t_.lane_end - lane);
    if (!out) std::fill_n(registers, kBlockRows * width_, 0.0f);
    if (!out && t_.c == nullptr) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        const std::int64_t at = (row + i) * t_.row_stride + (lane + j) * t_.lane_stride;
        if (out) {
          t_.d[at] = registers[i * width_ + j];
        } else {
          registers[i * width_ + j] = t_.c[at];
        }
      }
    }
  }

  /// Floats [depth][width] of one block or panel; products beyond K are zeros.
  void PackFloats(const ChainSide<float>& side, std::int64_t first, std::int64_t count,
                  std::int64_t width, std::int64_t k) {
    const std::int64_t depth = Depth(k), held = std::clamp<std::int64_t>(t_.k - k, 0, depth);
    const std::int64_t runs = FindRuns(side.depth + k, held, runs_.get());
    Pack<float>({side, first, count, width, side.depth + k, held, runs_.get(), runs},
                floats_.get());
    std::fill(floats_.get() + held * width, floats_.get() + depth * width, 0.0f);
  }
  void PackRows(std::int64_t k) {
    for (std::int64_t b = 0; b < blocks_; ++b) {
      const std::int64_t row = t_.row_begin + b * kBlockRows;
      PackFloats(t_.rows, row, std::min<std::int64_t>(kBlockRows, t_.row_end - row), kBlockRows, k);
      SplitRows(floats_.get(), Depth(k) * kBlockRows, t_.row_emin, t_.rule.zero_exponent, width_,
                rows_.get() + b * kBlockRows * kStagedSlice);
    }
  }
  void PackLanes(std::int64_t k, std::int64_t p) {
    const std::int64_t lane = t_.lane_begin + p * width_;
    PackFloats(t_.lanes, lane, std::min(width_, t_.lane_end - lane), width_, k);
    SplitPanel(floats_.get(), Depth(k), t_.lane_emin, t_.rule.zero_exponent, Panel());
  }
  LanePanel Panel() const { return {numbers_.get(), exponents_.get(), width_}; }

  void Multiply(std::int64_t k, std::int64_t p, std::int64_t b) {
    const std::int64_t steps = Depth(k) / t_.rule.group;
    const StepSums sums{sums_.get(), cuts_.get()};
    {
      const FloatGuard toward_zero(HostRounding::toward_zero);
      const auto run = t_.rule.group == 4 ? FirstStage<kBlockRows, 4> : FirstStage<kBlockRows, 0>;
      run(t_.rule, rows_.get() + b * kBlockRows * kStagedSlice, Panel(), steps, sums);
    }
    t_.rule.c_dropped < kNeverDropped
        ? SecondStage<kBlockRows, true>(t_.rule, sums, steps, Registers(p, b))
        : SecondStage<kBlockRows, false>(t_.rule, sums, steps, Registers(p, b));
  }

  const StagedTile& t_;
  std::int64_t width_, blocks_, panels_;
  hwy::AlignedFreeUniquePtr<RowElement[]> rows_;
  hwy::AlignedFreeUniquePtr<float[]> floats_;
  hwy::AlignedFreeUniquePtr<double[]> numbers_;
  hwy::AlignedFreeUniquePtr<std::int16_t[]> exponents_;
  hwy::AlignedFreeUniquePtr<double[]> sums_, cuts_;
  hwy::AlignedFreeUniquePtr<Run[]> runs_;
  hwy::AlignedFreeUniquePtr<float[]> registers_;
};

void RunStagedTile(const StagedTile& tile) { StagedSlices(tile).Compute(); }

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunStagedTile);

void run_staged_tile(const StagedTile& tile) { HWY_DYNAMIC_DISPATCH(RunStagedTile)(tile); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

// The float64 form of fused steps: two accumulators per output; per Highway target.
#include "emu/unit/fused/double_form_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/double_form_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <bit>

#include "emu/unit/fused/double_form_rows-inl.hpp"
#include "emu/unit/fused/prepare_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
struct DoubleForm {
  using Value = double;
  /// 3 rows x 4 vectors x 2 accumulators of 32 registers, or a third of it of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
  static constexpr int kRows = 3;
#else
  static constexpr int kRows = 1;
#endif
  /// Per depth: the positive values, the negative values, and all of them.
  static constexpr std::int64_t kCopies = 3;
  /// Depths packed at a time: the panels of a block then stay in the first-level cache.
  static constexpr std::int64_t kSlice = 32;
  static constexpr bool kReadsFloats = false;

  static double PowerOfTwo(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
  }

  static void PackRows(const PanelSlice& p, const FusedRule& rule, const float* values,
                       double* packed) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> d_float;
    const auto step = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = p.depth * p.width;
    for (std::int64_t i = 0; i < size; i += step)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(d_float, values + i)), d, packed + i);
    ForEachScaled(p, rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
      packed[k * p.width + i] *= PowerOfTwo(scale);
    });
  }

  static void PackLanes(const PanelSlice& p, const FusedSteps& steps, const float* values,
                        double* packed) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> d_float;
    const auto step = static_cast<std::int64_t>(hn::Lanes(d));
    const auto zero = hn::Zero(d);
    for (std::int64_t k = 0; k < p.depth; ++k) {
      double* to = packed + k * kCopies * p.width;
      for (std::int64_t i = 0; i < p.width; i += step) {
        const auto value = hn::PromoteTo(d, hn::Load(d_float, values + k * p.width + i));
        hn::Store(hn::Max(value, zero), d, to + i);
        hn::Store(hn::Min(value, zero), d, to + p.width + i);
        if (steps.plain_worthwhile) hn::Store(value, d, to + 2 * p.width + i);
      }
    }
    const int copies = steps.plain_worthwhile ? 3 : 2;
    ForEachScaled(p, steps.rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
      for (int c = 0; c < copies; ++c) packed[(k * kCopies + c) * p.width + i] *= PowerOfTwo(scale);
    });
  }

  template <int kRowCount>
  HWY_NOINLINE static void Multiply(const Block<double>& block) {
    const FusedSteps steps = block.steps;  // a copy: stores to `sums` could change the original
    const StepDepths depths(steps.rule);
    const std::int64_t width = PanelLanes();
    for (std::int64_t s = 0; s < block.step_count; ++s) {
      const std::int64_t first = FirstDepth(steps.rule, block.first_step + s);
      LargestExponents<kRowCount> largest;
      largest.Find(depths, steps.least, block.row_exponents + first * kRowPanel,
                   block.lane_exponents + first * width);
      DoubleRows<kRowCount> rows;
      const bool uncut = rows.Start(largest, steps, block.sums);
      const double* row = block.rows + first * kRowPanel;
      const double* lane = block.lanes + first * kCopies * width;
      if (uncut && steps.plain_worthwhile) {
        rows.Join();
        for (std::int64_t c = 0; c < depths.runs; ++c) {
          for (std::int64_t q = 0; q < depths.run; ++q) {
            rows.AddPlain(row, lane + 2 * width);
            row += kRowPanel;
            lane += kCopies * width;
          }
          row += depths.skip * kRowPanel;
          lane += depths.skip * kCopies * width;
        }
      } else {
        for (std::int64_t c = 0; c < depths.runs; ++c) {
          for (std::int64_t q = 0; q < depths.run; ++q) {
            rows.AddCut(row, lane, width);
            row += kRowPanel;
            lane += kCopies * width;
          }
          row += depths.skip * kRowPanel;
          lane += depths.skip * kCopies * width;
        }
        rows.Join();
      }
      rows.Finish(steps, block.sums);
    }
  }
};

void RunDoubleForm(const FusedTile& t) { RunFusedTile<DoubleForm>(t); }
bool HasDoubleForm() { return true; }
#else
void RunDoubleForm(const FusedTile&) {}
bool HasDoubleForm() { return false; }
#endif

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunDoubleForm);
HWY_EXPORT(HasDoubleForm);

void run_double_tile(const FusedTile& t) { HWY_DYNAMIC_DISPATCH(RunDoubleForm)(t); }
bool has_double_form() { return HWY_DYNAMIC_DISPATCH(HasDoubleForm)(); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

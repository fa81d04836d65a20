// The 32-bit integer form of fused steps; per Highway target.
#include "emu/unit/fused/integer_form_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/integer_form_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include "emu/unit/fused/integer_form_rows-inl.hpp"
#include "emu/unit/fused/prepare_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
struct IntegerForm {
  using Value = float;
  /// 6 rows x 2 vectors x (sum, scale) of 32 registers, or a third of it of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
  static constexpr int kRows = 6;
#else
  static constexpr int kRows = 2;
#endif
  static constexpr std::int64_t kCopies = 1;
  /// Depths packed at a time: the panels of a block then stay in the first-level cache.
  static constexpr std::int64_t kSlice = 64;
  static constexpr bool kReadsFloats = true;
  static void PackRows(const PanelSlice&, const FusedRule&, const float*, float*) {}
  static void PackLanes(const PanelSlice&, const FusedSteps&, const float*, float*) {}

  template <int kRowCount>
  HWY_NOINLINE static void Multiply(const Block<float>& block) {
    const FusedSteps steps = block.steps;  // a copy: stores to `sums` could change the original
    const StepDepths depths(steps.rule);
    const std::int64_t width = PanelLanes();
    const hn::ScalableTag<float> d;
    const std::size_t half = hn::Lanes(d);
    for (std::int64_t s = 0; s < block.step_count; ++s) {
      const std::int64_t first = FirstDepth(steps.rule, block.first_step + s);
      LargestExponents<kRowCount> largest;
      largest.Find(depths, steps.least, block.row_exponents + first * kRowPanel,
                   block.lane_exponents + first * width);
      IntegerRows<kRowCount> rows;
      rows.Start(largest, steps, block.sums);
      const float* row = block.rows + first * kRowPanel;
      const float* lane = block.lanes + first * width;
      for (std::int64_t c = 0; c < depths.runs; ++c) {
        for (std::int64_t q = 0; q < depths.run; ++q) {
          rows.Add(row, hn::Load(d, lane), hn::Load(d, lane + half));
          row += kRowPanel;
          lane += width;
        }
        row += depths.skip * kRowPanel;
        lane += depths.skip * width;
      }
      rows.Finish(steps, block.sums);
    }
  }
};

void RunIntegerForm(const FusedTile& t) { RunFusedTile<IntegerForm>(t); }
bool HasIntegerForm() { return true; }
#else
void RunIntegerForm(const FusedTile&) {}
bool HasIntegerForm() { return false; }
#endif

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunIntegerForm);
HWY_EXPORT(HasIntegerForm);

void run_integer_tile(const FusedTile& t) { HWY_DYNAMIC_DISPATCH(RunIntegerForm)(t); }
bool has_integer_form() { return HWY_DYNAMIC_DISPATCH(HasIntegerForm)(); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

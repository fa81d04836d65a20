// One tile of the float form: packs slice by slice of K and runs step after step; per Highway
// target.
#include "emu/unit/fused/float_form_tile.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/float_form_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/fused/float_form_kernel-inl.hpp"
#include "emu/unit/fused/half_form_steps.hpp"
#include "formats/float_guard.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
/// From and to `width` floats; float16 as their codes.
HWY_INLINE void Widen(const std::uint16_t* from, float* to, std::int64_t width) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t j = 0; j < width; j += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(from + j);
    hn::Store(hn::PromoteTo(d, hn::LoadU(d16, halves)), d, to + j);
  }
}
HWY_INLINE void Narrow(const float* from, std::uint16_t* to, std::int64_t width) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t j = 0; j < width; j += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto* halves = reinterpret_cast<hwy::float16_t*>(to + j);
    hn::StoreU(hn::DemoteTo(d16, hn::Load(d, from + j)), d16, halves);
  }
}
HWY_INLINE void Widen(const float* from, float* to, std::int64_t width) {
  CopyRun(from, to, width);
}
HWY_INLINE void Narrow(const float* from, float* to, std::int64_t width) {
  CopyRun(from, to, width);
}

template <class T>
HWY_INLINE void CopyLine(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                         std::int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::copy_n(from, count, to);
  } else {
    for (std::int64_t j = 0; j < count; ++j) to[j * to_stride] = from[j * from_stride];
  }
}

/// NaN and infinity become +0.
HWY_INLINE void ZeroSpecials(float* values, std::int64_t count) {
  const FloatTag d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const Floats x = hn::Load(d, values + i);
    const Floats finite = hn::Sub(x, x);  // else NaN
    hn::Store(hn::IfThenElseZero(hn::Eq(finite, finite), x), d, values + i);
  }
}
#endif  // HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR

#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
using Ints = hn::Vec<IntTag>;

constexpr int kFloatBias = 127, kNonZeroByte = 64;

/// The exponents of a vector of values as FloatFormSide's bytes, in 32-bit lanes.
HWY_INLINE Ints ExponentBytes(const FloatFormSide& side, Floats values) {
  const IntTag d;
  const Ints bits = hn::And(hn::BitCast(d, values), hn::Set(d, 0x7fffffff));
  const Ints field =
      hn::Max(hn::ShiftRight<23>(bits), hn::Set(d, side.smallest_normal + kFloatBias));
  const Ints byte = hn::Sub(field, hn::Set(d, side.lowest + kFloatBias - kNonZeroByte));
  return hn::IfThenZeroElse(hn::Eq(bits, hn::Zero(d)), byte);
}

/// A slice of K: whole steps from k on, of which `depth` products exist; the rest are +0.
struct FormSlice {
  std::int64_t k = 0, steps = 0, depth = 0;
  int group = 0;
};

/// values and exponents [step][row][k] of `padded` rows, those from `rows` on +0.
inline void PackRows(const FloatFormSide& side, std::int64_t first, std::int64_t rows,
                     std::int64_t padded, const FormSlice& slice, float* HWY_RESTRICT values,
                     std::uint32_t* HWY_RESTRICT exponents) {
  const std::int64_t group = slice.group;
  float* to = values;
  for (std::int64_t step = 0; step < slice.steps; ++step) {
    const std::int64_t count = std::clamp<std::int64_t>(slice.depth - step * group, 0, group);
    const std::int32_t* const depth = side.values.depth + slice.k + step * group;
    bool neighbours = true;
    for (std::int64_t k = 1; k < count; ++k) neighbours &= depth[k] == depth[0] + k;
    for (std::int64_t i = 0; i < padded; ++i, to += group) {
      const std::int64_t valid = i < rows ? count : 0;
      const float* const from =
          i < rows ? side.values.values + side.values.row[first + i] : nullptr;
      if (neighbours && valid > 0) {
        CopyRun(from + depth[0], to, valid);
      } else {
        for (std::int64_t k = 0; k < valid; ++k) to[k] = from[depth[k]];
      }
      std::fill(to + valid, to + group, 0.0f);
    }
  }
  // Four times the same byte: x + x 2^8, then + that 2^16.
  const FloatTag d;
  const auto size = slice.steps * padded * group;
  for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    Ints byte = ExponentBytes(side, hn::Load(d, values + i));
    byte = hn::Or(byte, hn::ShiftLeft<8>(byte));
    byte = hn::Or(byte, hn::ShiftLeft<16>(byte));
    hn::Store(byte, IntTag(), reinterpret_cast<std::int32_t*>(exponents) + i);
  }
}

/// Splits `plain` [k][lane] into parts [k][sign][lane] and exponents [k][lane].
inline void SplitLanes(const FloatFormSide& side, const float* HWY_RESTRICT plain,
                       std::int64_t depth, float* HWY_RESTRICT parts,
                       std::uint8_t* HWY_RESTRICT exponents) {
  const FloatTag d;
  const hn::Rebind<std::uint8_t, IntTag> d8;
  const std::int64_t width = PanelWidth();
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t j = 0; j < width; j += step) {
      const Floats b = hn::Load(d, plain + k * width + j);
      hn::Store(hn::Max(b, hn::Zero(d)), d, parts + 2 * k * width + j);
      hn::Store(hn::Min(b, hn::Zero(d)), d, parts + (2 * k + 1) * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, b)), d8, exponents + k * width + j);
    }
  }
}

/// The float16 of values times a power of two, exact by the caller's promise.
template <class D16 = hn::Rebind<hwy::float16_t, FloatTag>>
HWY_INLINE hn::Vec<D16> Halves(float power, Floats values) {
  return hn::DemoteTo(D16(), hn::Mul(values, hn::Set(FloatTag(), power)));
}

/// The half form's rows: [step][row][k] as above.
inline void HalveRows(float power, const float* HWY_RESTRICT values, std::int64_t size,
                      std::uint16_t* HWY_RESTRICT halves) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::StoreU(Halves(power, hn::Load(d, values + i)), d16,
               reinterpret_cast<hwy::float16_t*>(halves) + i);
}

/// The half form's lanes: `plain` [k][lane] as pairs [k / 2][lane], even k in the low half, and
/// exponents [k][lane].
inline void PairLanes(const FloatFormSide& side, float power, const float* HWY_RESTRICT plain,
                      std::int64_t depth, std::uint32_t* HWY_RESTRICT pairs,
                      std::uint8_t* HWY_RESTRICT exponents) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  const hn::Rebind<std::uint8_t, IntTag> d8;
  const std::int64_t width = PanelWidth();
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto halves = [&](Floats x) HWY_ATTR {
    return hn::PromoteTo(d32, hn::BitCast(d16, Halves(power, x)));
  };
  for (std::int64_t k = 0; k < depth; k += 2) {
    for (std::int64_t j = 0; j < width; j += step) {
      const Floats even = hn::Load(d, plain + k * width + j);
      const Floats odd = hn::Load(d, plain + (k + 1) * width + j);
      hn::Store(hn::Or(halves(even), hn::ShiftLeft<16>(halves(odd))), d32,
                pairs + k / 2 * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, even)), d8, exponents + k * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, odd)), d8, exponents + (k + 1) * width + j);
    }
  }
}
#endif  // HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR

#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR

/// Products of K packed at a time: 64 lanes of them take 288 KiB of the second-level cache.
constexpr std::int64_t kSliceDepth = 512;
/// Rows that share a step of a panel while it is in the first-level cache: 18 KiB of the panel, 8
/// KiB of rows and 8 KiB of registers with 32 products and 64 lanes.
constexpr std::int64_t kBlockRows = 32;

float PowerOfTwo(int exponent) { return std::ldexp(1.0f, exponent); }

template <class T>
hwy::AlignedFreeUniquePtr<T[]> Allocate(std::int64_t count) {
  // One vector more, for loops over whole vectors.
  const std::size_t vector = hn::Lanes(ByteTag()) / sizeof(T);
  return hwy::AllocateAligned<T>(static_cast<std::size_t>(count) + vector);
}

/// T: of C and D; float or the code of a float16. kHalves: the half form.
template <class T, bool kHalves>
class FloatFormRun {
 public:
  explicit FloatFormRun(const FloatFormTile& tile) : t_(tile) {
    constants_.group = t_.group;
    constants_.field_offset =
        static_cast<std::uint8_t>(t_.rows.lowest + t_.lanes.lowest + kFloatBias - 2 * kNonZeroByte);
    constants_.unit_offset = (23 - t_.fraction_bits) << 23;
    constants_.kept = ~((1u << (23 - t_.kept_bits)) - 1);
    if constexpr (kHalves) SetHalfConstants();
    state_ = Allocate<float>(panels_ * padded_ * width_);
    row_values_ = Allocate<float>(padded_ * slice_depth_);
    row_exponents_ = Allocate<std::uint32_t>(padded_ * slice_depth_);
    plain_ = Allocate<float>(width_ * t_.group);
    if constexpr (kHalves) {
      row_halves_ = Allocate<std::uint16_t>(padded_ * slice_depth_);
      pairs_ = Allocate<std::uint32_t>(width_ * slice_depth_ / 2);
    } else {
      parts_ = Allocate<float>(2 * width_ * slice_depth_);
    }
    lane_exponents_ = Allocate<std::uint8_t>(width_ * slice_depth_);
    runs_ = Allocate<Run>(t_.group);
  }

  HWY_NOINLINE void LoadC() {
    std::fill_n(state_.get(), panels_ * padded_ * width_, 0.0f);
    if (t_.c == nullptr) return;
    HWY_ALIGN T line[HWY_MAX_BYTES] = {};
    for_each_line([&](std::int64_t row, std::int64_t lane, std::int64_t count, float* state) {
      const T* c = static_cast<const T*>(t_.c) + row * t_.row_stride + lane * t_.lane_stride;
      CopyLine(c, t_.lane_stride, line, 1, count);
      Widen(line, state, width_);
      ZeroSpecials(state, width_);
    });
  }

  HWY_NOINLINE void StoreD() {
    HWY_ALIGN T line[HWY_MAX_BYTES];
    for_each_line([&](std::int64_t row, std::int64_t lane, std::int64_t count, float* state) {
      T* d = static_cast<T*>(t_.d) + row * t_.row_stride + lane * t_.lane_stride;
      if (t_.lane_stride == 1 && count == width_) {
        Narrow(state, d, width_);
      } else {
        Narrow(state, line, width_);
        CopyLine(line, 1, d, t_.lane_stride, count);
      }
    });
  }

  HWY_NOINLINE void Multiply() {
    for (std::int64_t first = 0; first < t_.steps; first += slice_steps_) {
      FormSlice slice{first * t_.group, std::min(slice_steps_, t_.steps - first), 0, t_.group};
      slice.depth = std::clamp<std::int64_t>(t_.k - slice.k, 0, slice.steps * t_.group);
      PackRows(t_.rows, t_.row_begin, rows_, padded_, slice, row_values_.get(),
               row_exponents_.get());
      if constexpr (kHalves)
        HalveRows(PowerOfTwo(t_.half_form->rows), row_values_.get(),
                  slice.steps * padded_ * t_.group, row_halves_.get());
      for (std::int64_t p = 0; p < panels_; ++p) {
        PackPanel(p, slice);
        const std::int64_t state = p * padded_ * width_;
        for (std::int64_t row = 0; row < padded_; row += kBlockRows) {
          for (std::int64_t step = 0; step < slice.steps; ++step)
            RunBlock(step, row, std::min(row + kBlockRows, padded_), state_.get() + state);
        }
      }
    }
  }

 private:
  void SetHalfConstants() {
    const HalfFormPowers& powers = *t_.half_form;
    half_.group = t_.group;
    half_.fraction_bits = t_.fraction_bits;
    half_.power = powers.rows + powers.lanes;
    half_.field_offset = constants_.field_offset;
    // One scale of at most 2^15 = 2^(F - E - power) is enough from E = F - 15 - power on.
    const int least = t_.fraction_bits - 15 - half_.power;
    half_.fast_from = static_cast<std::uint8_t>(
        std::clamp(least - t_.rows.lowest - t_.lanes.lowest, 0, 2 * kFloatFormSpread) +
        2 * kNonZeroByte);
    half_.kept = constants_.kept;
    half_.half = t_.half;
  }

  /// One step of rows [begin, end), a multiple of kStepRows.
  void RunBlock(std::int64_t step, std::int64_t begin, std::int64_t end, float* state) const {
    const std::int64_t group = t_.group, panel = step * group * width_;
    const auto at = [&](std::int64_t row) { return (step * padded_ + row) * group; };
    if constexpr (kHalves) {
      half_form_step(half_,
                     {row_halves_.get() + at(begin), row_exponents_.get() + at(begin),
                      pairs_.get() + panel / 2, lane_exponents_.get() + panel},
                     end - begin, state + begin * width_);
    } else {
      for (std::int64_t row = begin; row < end; row += kStepRows)
        Step<!std::is_same_v<T, float>>(
            constants_,
            {row_values_.get() + at(row), row_exponents_.get() + at(row), parts_.get() + 2 * panel,
             lane_exponents_.get() + panel},
            state + row * width_);
    }
  }

  void PackPanel(std::int64_t panel, const FormSlice& slice) const {
    const std::int64_t lane = t_.lane_begin + panel * width_, group = t_.group;
    const std::int64_t lanes = std::min(width_, t_.lane_end - lane);
    for (std::int64_t step = 0; step < slice.steps; ++step) {
      const std::int32_t* depth = t_.lanes.values.depth + slice.k + step * group;
      const std::int64_t count = std::clamp<std::int64_t>(slice.depth - step * group, 0, group);
      const std::int64_t runs = FindRuns(depth, count, runs_.get());
      Pack<float>({t_.lanes.values, lane, lanes, width_, depth, count, runs_.get(), runs},
                  plain_.get());
      std::fill(plain_.get() + count * width_, plain_.get() + group * width_, 0.0f);
      const std::int64_t at = step * group * width_;
      if constexpr (kHalves) {
        PairLanes(t_.lanes, PowerOfTwo(t_.half_form->lanes), plain_.get(), group,
                  pairs_.get() + at / 2, lane_exponents_.get() + at);
      } else {
        SplitLanes(t_.lanes, plain_.get(), group, parts_.get() + 2 * at,
                   lane_exponents_.get() + at);
      }
    }
  }

  /// visit(row, first lane, lanes, their registers) for every row of every panel, in the order of
  /// D.
  template <class Visit>
  void for_each_line(const Visit& visit) const {
    const auto line = [&](std::int64_t p, std::int64_t i) {
      const std::int64_t lane = t_.lane_begin + p * width_;
      visit(t_.row_begin + i, lane, std::min(width_, t_.lane_end - lane),
            state_.get() + (p * padded_ + i) * width_);
    };
    if (t_.lane_stride == 1) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        for (std::int64_t p = 0; p < panels_; ++p) line(p, i);
      }
    } else {
      for (std::int64_t p = 0; p < panels_; ++p) {
        for (std::int64_t i = 0; i < rows_; ++i) line(p, i);
      }
    }
  }

  const FloatFormTile& t_;
  const std::int64_t width_ = PanelWidth();
  const std::int64_t rows_ = t_.row_end - t_.row_begin;
  const std::int64_t padded_ = (rows_ + kStepRows - 1) / kStepRows * kStepRows;
  const std::int64_t panels_ = (t_.lane_end - t_.lane_begin + width_ - 1) / width_;
  const std::int64_t slice_steps_ =
      std::min(t_.steps, std::max<std::int64_t>(kSliceDepth / t_.group, 1));
  const std::int64_t slice_depth_ = slice_steps_ * t_.group;
  StepConstants constants_;
  HalfFormConstants half_;
  hwy::AlignedFreeUniquePtr<float[]> state_;                  ///< [panel][row][lane]
  hwy::AlignedFreeUniquePtr<float[]> row_values_;             ///< [step][row][k]
  hwy::AlignedFreeUniquePtr<std::uint16_t[]> row_halves_;     ///< the same
  hwy::AlignedFreeUniquePtr<std::uint32_t[]> row_exponents_;  ///< the same
  hwy::AlignedFreeUniquePtr<float[]> plain_, parts_;          ///< [k][lane], [k][sign][lane]
  hwy::AlignedFreeUniquePtr<std::uint32_t[]> pairs_;          ///< [k / 2][lane]
  hwy::AlignedFreeUniquePtr<std::uint8_t[]> lane_exponents_;  ///< [k][lane]
  hwy::AlignedFreeUniquePtr<Run[]> runs_;
};

template <class T, bool kHalves>
void RunTile(const FloatFormTile& t) {
  FloatFormRun<T, kHalves> run(t);
  run.LoadC();
  {
    const FloatGuard guard(kHalves ? HostRounding::nearest : HostRounding::toward_zero);
    run.Multiply();
  }
  run.StoreD();
}

template <bool kHalves>
void RunForm(const FloatFormTile& t) {
  t.half ? RunTile<std::uint16_t, kHalves>(t) : RunTile<float, kHalves>(t);
}

void RunFloatForm(const FloatFormTile& t) { t.half_form ? RunForm<true>(t) : RunForm<false>(t); }
bool FloatFormAvailable(bool half) { return HWY_ARCH_X86 || !half; }
std::int64_t FloatFormWidth() { return PanelWidth(); }

#else

void RunFloatForm(const FloatFormTile&) {}
bool FloatFormAvailable(bool) { return false; }
std::int64_t FloatFormWidth() { return 1; }

#endif  // HWY_NATIVE_FMA

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunFloatForm);
HWY_EXPORT(FloatFormAvailable);
HWY_EXPORT(FloatFormWidth);

void run_float_form_tile(const FloatFormTile& t) { HWY_DYNAMIC_DISPATCH(RunFloatForm)(t); }
bool float_form_available(bool half) { return HWY_DYNAMIC_DISPATCH(FloatFormAvailable)(half); }
std::int64_t float_form_width() { return HWY_DYNAMIC_DISPATCH(FloatFormWidth)(); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

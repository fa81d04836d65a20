// One tile of chains: packs, multiplies slice by slice of k, rounds and stores; per Highway target.
#include "emu/unit/chain/chain_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/chain/chain_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <cstdint>

#include "emu/unit/chain/chain_kernel-inl.hpp"
#include "emu/unit/chain/chain_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// packed[k * width + i] = 0 for i in [count, width).
template <class T>
void ZeroTail(const PackedSlice<T>& slice, T* packed) {
  CoverRun<T>(slice.width - slice.count, [&](auto d, std::int64_t i) HWY_ATTR {
    T* to = packed + slice.count + i;
    const std::int64_t width = slice.width;
    for (std::int64_t k = slice.depth_count; k > 0; --k, to += width)
      hn::StoreU(hn::Zero(d), d, to);
  });
}

/// Rows that are neighbours in memory, run by run. False where they are too scattered for a gain.
template <class T>
bool PackRowRuns(const PackedSlice<T>& slice, T* packed) {
  constexpr std::int64_t kMaxRuns = 16, kWorthwhile = 4;
  const std::int32_t* row = slice.side.row + slice.first;
  std::int64_t begin[kMaxRuns + 1], runs = 0;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    if (i != 0 && row[i] == row[i - 1] + 1) continue;
    if (runs == kMaxRuns) return false;
    begin[runs++] = i;
  }
  if (slice.count > 1 && runs * kWorthwhile > slice.count) return false;
  begin[runs] = slice.count;
  // Copies in locals: vector stores may alias anything, so the compiler would read the members
  // again each time.
  const std::int32_t* const depth = slice.depth;
  const std::int64_t depth_count = slice.depth_count, width = slice.width;
  for (std::int64_t r = 0; r < runs; ++r) {
    const T* values = slice.side.values + row[begin[r]];
    CoverRun<T>(begin[r + 1] - begin[r], [&](auto d, std::int64_t i) HWY_ATTR {
      const T* from = values + i;
      T* to = packed + begin[r] + i;
      for (std::int64_t k = 0; k < depth_count; ++k, to += width)
        hn::StoreU(hn::LoadU(d, from + depth[k]), d, to);
    });
  }
  return true;
}

/// kSquare rows from i on: transposed squares along each run of depths, the last one overlapping
/// its neighbour.
template <class T>
HWY_INLINE void PackSquares(const PackedSlice<T>& slice, std::int64_t i, T* packed) {
  constexpr std::int64_t kSide = kSquare<T>;
  const T* source[kSide];
  for (std::int64_t j = 0; j < kSide; ++j)
    source[j] = slice.side.values + slice.side.row[slice.first + i + j];
  const std::int64_t width = slice.width;
  const std::int32_t* const depth = slice.depth;
  const auto square = [&](std::int64_t k) HWY_ATTR {
    const std::int32_t offset = depth[k];
    TransposeSquare([&](int j) HWY_ATTR { return source[j] + offset; }, packed + k * width + i,
                    width);
  };
  for (std::int64_t r = 0; r < slice.run_count; ++r) {
    const auto [begin, end] = slice.runs[r];
    std::int64_t k = begin;
    for (; k + kSide <= end; k += kSide) square(k);
    if (k < end && end - begin >= kSide) {
      square(end - kSide);
      continue;
    }
    for (; k < end; ++k) {
      for (std::int64_t j = 0; j < kSide; ++j) packed[k * width + i + j] = source[j][depth[k]];
    }
  }
}

template <class T>
void Pack(const PackedSlice<T>& slice, T* packed) {
  ZeroTail(slice, packed);
  if (PackRowRuns(slice, packed)) return;
  constexpr std::int64_t kSide = kSquare<T>;
  const std::int64_t count = slice.count;
  std::int64_t i = 0;
  for (; i + kSide <= count; i += kSide) PackSquares(slice, i, packed);
  if (i < count && count >= kSide) {
    PackSquares(slice, count - kSide, packed);
    return;
  }
  for (; i < count; ++i) {
    const T* source = slice.side.values + slice.side.row[slice.first + i];
    for (std::int64_t k = 0; k < slice.depth_count; ++k)
      packed[k * slice.width + i] = source[slice.depth[k]];
  }
}

template void Pack(const PackedSlice<float>& slice, float* packed);
template void Pack(const PackedSlice<double>& slice, double* packed);

/// Slice of k packed at a time: a float panel of 32 lanes is then 32 KiB, which stays in the
/// first-level cache.
constexpr std::int64_t kSlice = 256;

/// sums[i * width + j] = C for the outputs from (row, lane) on.
template <class T, class Out>
void Begin(const ChainTile<T, Out>& t, std::int64_t row, std::int64_t rows, std::int64_t lane,
           std::int64_t lanes, std::int64_t block_rows, std::int64_t width, T* sums) {
  std::fill_n(sums, block_rows * width, T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < lanes; ++j)
      sums[i * width + j] = t.c[(row + i) * t.row_stride + (lane + j) * t.lane_stride];
  }
}

/// Rounds sums (whole vectors of them) to float32 with the canonical NaN.
template <class T>
void Round(const T* sums, std::int64_t count, float* rounded) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> d_float;
  const auto canonical =
      hn::BitCast(d_float, hn::Set(hn::RebindToUnsigned<decltype(d_float)>(), 0x7fc00000u));
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    auto value = hn::Zero(d_float);
    if constexpr (std::is_same_v<T, double>) {
      value = hn::DemoteTo(d_float, hn::Load(d, sums + i));
    } else {
      value = hn::Load(d, sums + i);
    }
    hn::StoreU(hn::IfThenElse(hn::IsNaN(value), canonical, value), d_float, rounded + i);
  }
}

template <class T, class Out>
void End(const ChainTile<T, Out>& t, std::int64_t row, std::int64_t rows, std::int64_t lane,
         std::int64_t lanes, std::int64_t width, const Out* values) {
  Out* d = t.d + row * t.row_stride + lane * t.lane_stride;
  if (t.lane_stride == 1) {
    for (std::int64_t i = 0; i < rows; ++i)
      CopyRun(values + i * width, d + i * t.row_stride, lanes);
  } else {
    StoreTransposed(values, width, rows, lanes, d, t.lane_stride);
  }
}

/// The rows from `row` on, read in place; behind the last the last again.
template <class T, class Out>
void MultiplyRows(const ChainTile<T, Out>& t, std::int64_t row, const std::int32_t* depth,
                  const Run* runs, std::int64_t run_count, const T* panel, std::int64_t vectors,
                  bool from_zero, T* sums) {
  const T* rows[kRowsInPlace];
  for (std::int64_t i = 0; i < kRowsInPlace; ++i)
    rows[i] = t.rows.values + t.rows.row[std::min(row + i, t.row_end - 1)];
  constexpr std::make_integer_sequence<int, kRowsInPlace> kRows;
  if (vectors == 2) {
    MultiplyInPlace<T, 2>(rows, depth, runs, run_count, panel, from_zero, sums, kRows);
  } else {
    MultiplyInPlace<T, 1>(rows, depth, runs, run_count, panel, from_zero, sums, kRows);
  }
}

template <class T, class Out>
void RunTile(const ChainTile<T, Out>& t) {
  const hn::ScalableTag<T> tag;
  const auto vector = static_cast<std::int64_t>(hn::Lanes(tag));
  const std::int64_t width = 2 * vector;
  const std::int64_t rows = t.row_end - t.row_begin, lanes = t.lane_end - t.lane_begin;
  const std::int64_t most_rows = t.rows_in_place ? kRowsInPlace : kMaxRows;
  const std::int64_t even_blocks = (rows + most_rows - 1) / most_rows;
  const std::int64_t block_rows =
      t.rows_in_place ? most_rows : (rows + even_blocks - 1) / even_blocks;
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  const std::int64_t panels = (lanes + width - 1) / width;
  const std::int64_t slice = std::min(t.k, kSlice);
  const bool one_slice = t.k <= kSlice;
  const std::int64_t block_size = block_rows * width;

  const auto packed_rows = hwy::AllocateAligned<T>(
      static_cast<std::size_t>(t.rows_in_place ? 1 : blocks * block_rows * slice + 1));
  const auto panel = hwy::AllocateAligned<T>(static_cast<std::size_t>(width * slice + 1));
  const auto runs = hwy::AllocateAligned<Run>(static_cast<std::size_t>(2 * slice + 1));
  const auto sums = hwy::AllocateAligned<T>(
      static_cast<std::size_t>(one_slice ? block_size : panels * blocks * block_size));
  const auto rounded = hwy::AllocateAligned<float>(static_cast<std::size_t>(block_size));

  for (std::int64_t k = 0; k == 0 || k < t.k; k += kSlice) {
    const std::int64_t depth = std::min(slice, t.k - k);
    const bool last = k + kSlice >= t.k;
    const std::int32_t *row_depth = t.rows.depth + k, *lane_depth = t.lanes.depth + k;
    Run *row_runs = runs.get(), *lane_runs = runs.get() + slice;
    const std::int64_t row_run_count = FindRuns(row_depth, depth, row_runs);
    const std::int64_t lane_run_count = FindRuns(lane_depth, depth, lane_runs);
    for (std::int64_t b = 0; b < blocks && !t.rows_in_place; ++b) {
      const std::int64_t valid_rows = std::min(block_rows, rows - b * block_rows);
      Pack<T>({t.rows, t.row_begin + b * block_rows, valid_rows, block_rows, row_depth, depth,
               row_runs, row_run_count},
              packed_rows.get() + b * block_rows * depth);
    }
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t lane = t.lane_begin + p * width;
      const std::int64_t panel_lanes = std::min(width, t.lane_end - lane);
      const std::int64_t vectors = panel_lanes <= vector ? 1 : 2;
      const std::int64_t panel_width = vectors * vector;
      const BlockFunction<T> multiply = BlockFor<T>(block_rows, vectors);
      Pack<T>(
          {t.lanes, lane, panel_lanes, panel_width, lane_depth, depth, lane_runs, lane_run_count},
          panel.get());
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t row = t.row_begin + b * block_rows;
        const std::int64_t valid_rows = std::min(block_rows, t.row_end - row);
        T* sum = sums.get() + (one_slice ? 0 : (p * blocks + b) * block_size);
        if (k == 0 && t.c != nullptr)
          Begin(t, row, valid_rows, lane, panel_lanes, block_rows, panel_width, sum);
        const bool from_zero = k == 0 && t.c == nullptr;
        if (t.rows_in_place) {
          MultiplyRows(t, row, row_depth, row_runs, row_run_count, panel.get(), vectors, from_zero,
                       sum);
        } else {
          multiply(packed_rows.get() + b * block_rows * depth, panel.get(), depth, from_zero, sum);
        }
        if (!last) continue;
        if constexpr (std::is_same_v<Out, float>) {
          if (t.lane_stride == 1 && panel_lanes == panel_width) {
            for (std::int64_t i = 0; i < valid_rows; ++i)
              Round(sum + i * panel_width, panel_width, t.d + (row + i) * t.row_stride + lane);
          } else {
            Round(sum, block_rows * panel_width, rounded.get());
            End(t, row, valid_rows, lane, panel_lanes, panel_width, rounded.get());
          }
        } else {
          End(t, row, valid_rows, lane, panel_lanes, panel_width, sum);
        }
      }
    }
  }
}

void RunFloat(const ChainTile<float, float>& t) { RunTile(t); }
void RunDouble(const ChainTile<double, float>& t) { RunTile(t); }
void RunDoubleRaw(const ChainTile<double, double>& t) { RunTile(t); }
bool Fuses() { return HWY_NATIVE_FMA != 0; }
const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);
HWY_EXPORT(RunDoubleRaw);
HWY_EXPORT(Fuses);
HWY_EXPORT(TargetName);

void run_chain_tile(const ChainTile<float, float>& t) { HWY_DYNAMIC_DISPATCH(RunFloat)(t); }
void run_chain_tile(const ChainTile<double, float>& t) { HWY_DYNAMIC_DISPATCH(RunDouble)(t); }
void run_chain_tile(const ChainTile<double, double>& t) { HWY_DYNAMIC_DISPATCH(RunDoubleRaw)(t); }
bool chain_fuses() { return HWY_DYNAMIC_DISPATCH(Fuses)(); }
std::string chain_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

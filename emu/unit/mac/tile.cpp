// One tile of rounded multiply-adds: packs, runs register blocks slice by slice of k; per target.
#include "emu/unit/mac/tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/mac/tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/mac/block-inl.hpp"
#include "emu/unit/mac/random-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {
namespace packing = numemu::unit::HWY_NAMESPACE;

/// Slice of k packed at a time: a panel of it stays in the first-level cache.
constexpr std::int64_t kSlice = 256;

/// What one register block keeps between slices: the chain, and with chunks the sum of chunks.
template <class T>
struct BlockSums {
  T *chain, *total;
};

/// Runs one register block over a slice; cuts it at the ends of chunks and of random numbers.
template <class T>
class BlockRunner {
 public:
  explicit BlockRunner(const MacTile<T>& tile)
      : t_(tile),
        constants_(*tile.plan),
        functions_(BlockOf<T>(*tile.plan, tile.row_end - tile.row_begin)),
        random_(*tile.plan, constants_, tile.random) {}

  /// Rows of a register block.
  std::int64_t rows() const { return functions_.rows; }

  /// Steps [k, k + depth) of the block that begins at output (row, lane).
  void run(std::int64_t row, std::int64_t lane, const T* rows, const T* lanes, std::int64_t k,
           std::int64_t depth, const BlockSums<T>& sums) {
    const bool stochastic = t_.plan->random_bits != 0;
    if (stochastic) random_.place(row, lane, t_.columns);
    const std::int64_t width = BlockWidth<T>(), end = k + depth;
    while (k < end) {
      std::int64_t count = end - k;
      if (t_.chunk != 0) count = std::min(count, t_.chunk - k % t_.chunk);
      // Without random numbers the loops still step through the pointer.
      const T* numbers = rows;
      if (stochastic) {
        count = std::min(count, BlockRandom<T>::kSteps);
        numbers = random_.fill(k, count);
      }
      functions_.multiply(constants_, rows, lanes, count, numbers, sums.chain);
      k += count;
      rows += count * functions_.rows;
      lanes += count * width;
      if (t_.chunk == 0 || (k % t_.chunk != 0 && k != t_.k)) continue;
      if (stochastic) numbers = random_.fill(t_.k + (k - 1) / t_.chunk, 1);
      functions_.add(constants_, functions_.rows, sums.chain, numbers, sums.total);
      std::fill_n(sums.chain, functions_.rows * width, T{0});
    }
  }

 private:
  const MacTile<T>& t_;
  Constants<T> constants_;
  BlockFunctions<T> functions_;
  BlockRandom<T> random_;
};

/// sums[i * width + j] = C or +0 for the outputs from (row, lane) on.
template <class T>
void Begin(const MacTile<T>& t, std::int64_t row, std::int64_t rows, std::int64_t lane, T* sums) {
  const std::int64_t width = BlockWidth<T>();
  std::fill_n(sums, rows * width, T{0});
  if (t.c == nullptr) return;
  for (std::int64_t i = 0; i < std::min(rows, t.row_end - row); ++i) {
    for (std::int64_t j = 0; j < std::min(width, t.lane_end - lane); ++j)
      sums[i * width + j] = t.c[(row + i) * t.row_stride + (lane + j) * t.lane_stride];
  }
}

template <class T>
void End(const MacTile<T>& t, std::int64_t row, std::int64_t rows, std::int64_t lane,
         const T* sums) {
  const std::int64_t width = BlockWidth<T>();
  const std::int64_t valid_rows = std::min(rows, t.row_end - row);
  const std::int64_t lanes = std::min(width, t.lane_end - lane);
  T* d = t.d + (row - t.row_begin) * t.d_row_stride + (lane - t.lane_begin) * t.d_lane_stride;
  if (t.d_lane_stride != 1)
    return packing::StoreTransposed(sums, width, valid_rows, lanes, d, t.d_lane_stride);
  for (std::int64_t i = 0; i < valid_rows; ++i)
    packing::CopyRun(sums + i * width, d + i * t.d_row_stride, lanes);
}

template <class T>
void RunTile(const MacTile<T>& t) {
  const auto runner = std::make_unique<BlockRunner<T>>(t);
  const std::int64_t width = BlockWidth<T>(), block_rows = runner->rows();
  const std::int64_t blocks = (t.row_end - t.row_begin + block_rows - 1) / block_rows;
  const std::int64_t panels = (t.lane_end - t.lane_begin + width - 1) / width;
  const std::int64_t slice = std::min(t.k, kSlice), block_size = block_rows * width;
  const auto allocate = [](std::int64_t count) {
    return hwy::AllocateAligned<T>(static_cast<std::size_t>(count));
  };
  const auto packed_rows = allocate(blocks * block_rows * slice + 1);
  const auto panel = allocate(width * slice + 1);
  const auto runs = hwy::AllocateAligned<packing::Run>(static_cast<std::size_t>(2 * slice + 1));
  // With one slice a block ends before the next begins.
  const bool one_slice = t.k <= kSlice;
  const auto sums = allocate(2 * block_size * (one_slice ? 1 : panels * blocks));

  for (std::int64_t k = 0; k == 0 || k < t.k; k += kSlice) {
    const std::int64_t depth = std::min(slice, t.k - k);
    const std::int32_t *row_depth = t.rows.depth + k, *lane_depth = t.lanes.depth + k;
    packing::Run *row_runs = runs.get(), *lane_runs = runs.get() + slice;
    const std::int64_t row_run_count = packing::FindRuns(row_depth, depth, row_runs);
    const std::int64_t lane_run_count = packing::FindRuns(lane_depth, depth, lane_runs);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t row = t.row_begin + b * block_rows;
      packing::Pack<T>({t.rows, row, std::min(block_rows, t.row_end - row), block_rows, row_depth,
                        depth, row_runs, row_run_count},
                       packed_rows.get() + b * block_rows * depth);
    }
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t lane = t.lane_begin + p * width;
      packing::Pack<T>({t.lanes, lane, std::min(width, t.lane_end - lane), width, lane_depth, depth,
                        lane_runs, lane_run_count},
                       panel.get());
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t row = t.row_begin + b * block_rows;
        T* first = sums.get() + (one_slice ? 0 : (p * blocks + b) * 2 * block_size);
        // `total` holds the result; without chunks the chain itself is it.
        const BlockSums<T> block{t.chunk == 0 ? first : first + block_size, first};
        if (k == 0) {
          std::fill_n(block.chain, block_size, T{0});
          Begin(t, row, block_rows, lane, block.total);
        }
        runner->run(row, lane, packed_rows.get() + b * block_rows * depth, panel.get(), k, depth,
                    block);
        if (k + kSlice >= t.k) End(t, row, block_rows, lane, block.total);
      }
    }
  }
}

void RunFloat(const MacTile<float>& t) { RunTile(t); }
void RunDouble(const MacTile<double>& t) { RunTile(t); }

}  // namespace numemu::unit::mac::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit::mac {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);

void run_mac_tile(const MacTile<float>& t) { HWY_DYNAMIC_DISPATCH(RunFloat)(t); }
void run_mac_tile(const MacTile<double>& t) { HWY_DYNAMIC_DISPATCH(RunDouble)(t); }

}  // namespace numemu::unit::mac
#endif  // HWY_ONCE

// One tile of rounded multiply-adds: packs, runs register blocks slice by slice of k; per target.
#include "emu/unit/mac/tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/mac/tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/mac/block-inl.hpp"
#include "formats/random.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {

/// Philox blocks of the steps k, k + 1, ... k + kStreams - 1 at once: enough to hide the latency of
/// the multiplications.
constexpr int kStreams = 4;

#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kCounters = 1;

inline void PhiloxGroup(const RandomSource& source, const std::uint64_t* first, std::uint32_t k,
                        std::uint32_t* to, std::int64_t to_step) {
  for (int s = 0; s < kStreams; ++s) {
    const PhiloxBlock block =
        philox(source.seed, {static_cast<std::uint32_t>(*first), k + static_cast<unsigned>(s),
                             source.tensor, static_cast<std::uint32_t>(source.stream)});
    std::copy(block.begin(), block.end(), to + s * to_step);
  }
}
#else
using Wide = hn::ScalableTag<std::uint64_t>;
using Words = hn::Repartition<std::uint32_t, Wide>;
constexpr std::int64_t kCounters = static_cast<std::int64_t>(hn::MaxLanes(Wide()));

/// Counter words in the low halves of 64-bit lanes, where the widening multiplication reads them;
/// the high halves hold what happens to be there.
struct Counters {
  using V = hn::Vec<Words>;
  V c0, c1, c2, c3;

  static HWY_INLINE V Mix(V x, V y, std::uint32_t key) {
    const Words words;
#if NUMEMU_MAC_AVX512
    return V{_mm512_ternarylogic_epi32(x.raw, y.raw, hn::Set(words, key).raw, 0x96)};
#else
    return hn::Xor(x, hn::Xor(y, hn::Set(words, key)));
#endif
  }
  HWY_INLINE void Round(std::uint32_t key0, std::uint32_t key1) {
    const Words words;
    const auto product0 = hn::MulEven(c0, hn::Set(words, 0xD2511F53u));
    const auto product1 = hn::MulEven(c2, hn::Set(words, 0xCD9E8D57u));
    c0 = Mix(hn::BitCast(words, hn::ShiftRight<32>(product1)), c1, key0);
    c2 = Mix(hn::BitCast(words, hn::ShiftRight<32>(product0)), c3, key1);
    c1 = hn::BitCast(words, product1);
    c3 = hn::BitCast(words, product0);
  }
  /// Block b to to[4 b .. 4 b + 3], where lanes 2 b hold blocks b < n / 2 and lanes 2 b + 1 the
  /// others.
  HWY_INLINE void Store(std::uint32_t* to) const {
    const Wide wide;
    const Words words;
    const auto joined = [&](V low, V high) HWY_ATTR {
      const V up = hn::BitCast(words, hn::ShiftLeft<32>(hn::BitCast(wide, high)));
      return hn::BitCast(wide, hn::OddEven(up, low));
    };
    const auto low = joined(c0, c1), high = joined(c2, c3);
    hn::Store(hn::BitCast(words, hn::InterleaveLower(wide, low, high)), words, to);
    hn::Store(hn::BitCast(words, hn::InterleaveUpper(wide, low, high)), words,
              to + hn::Lanes(words));
  }
};

/// The blocks of kCounters first counter words (in the order Counters::Store undoes) for kStreams
/// steps, to_step words apart.
HWY_INLINE void PhiloxGroup(const RandomSource& source, const std::uint64_t* first, std::uint32_t k,
                            std::uint32_t* to, std::int64_t to_step) {
  const Wide wide;
  const Words words;
  const auto c0 = hn::BitCast(words, hn::Load(wide, first));
  const auto start = [&](unsigned s) HWY_ATTR {
    return Counters{c0, hn::Set(words, k + s), hn::Set(words, source.tensor),
                    hn::Set(words, static_cast<std::uint32_t>(source.stream))};
  };
  Counters a = start(0), b = start(1), c = start(2), e = start(3);
  auto key0 = static_cast<std::uint32_t>(source.seed);
  auto key1 = static_cast<std::uint32_t>(source.seed >> 32);
  constexpr int kRounds = 10;
  for (int r = 0; r < kRounds; ++r) {
    a.Round(key0, key1);
    b.Round(key0, key1);
    c.Round(key0, key1);
    e.Round(key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  a.Store(to);
  b.Store(to + to_step);
  c.Store(to + 2 * to_step);
  e.Store(to + 3 * to_step);
}
#endif

/// to[i] = 2^-M (1 + r 2^-n), or with (r + 1/2), r the top n bits of pieces[i].
template <class T, class Piece>
HWY_INLINE void Uniform(const Constants<T>& c, const Piece* pieces, std::int64_t count, T* to) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<Piece, decltype(d)> narrow;
  using Word = hn::TFromD<decltype(words)>;
  constexpr int kTop = Constants<T>::kTop, kPiece = 8 * static_cast<int>(sizeof(Piece));
  const auto mask = hn::Set(words, c.random_mask), base = hn::Set(words, c.random_base);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto piece = hn::LoadU(narrow, pieces + i);
    auto word = hn::Zero(words);
    if constexpr (sizeof(Piece) == sizeof(Word)) {
      word = piece;
    } else if constexpr (sizeof(Piece) == 1 && sizeof(Word) == 8) {
      word = hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<std::uint32_t, decltype(d)>(), piece));
    } else if constexpr (sizeof(Piece) == 2 && sizeof(Word) == 8) {
      word = hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<std::uint32_t, decltype(d)>(), piece));
    } else {
      word = hn::PromoteTo(words, piece);
    }
    if constexpr (kTop >= kPiece) {
      word = hn::ShiftLeft<kTop - kPiece>(word);
    } else {
      word = hn::ShiftRight<kPiece - kTop>(word);
    }
    hn::Store(hn::BitCast(d, hn::Or(hn::And(word, mask), base)), d, to + i);
  }
}

/// The random numbers of one register block.
template <class T>
class BlockRandom {
 public:
  /// Steps one fill() can make: their numbers stay in the first-level cache.
  static constexpr std::int64_t kSteps = 16;
  static_assert(kSteps % kStreams == 0);

  BlockRandom(const Plan& plan, const Constants<T>& constants, const RandomSource& source)
      : constants_(constants),
        source_(source),
        piece_bytes_(plan.random_bits <= 8    ? 1
                     : plan.random_bits <= 16 ? 2
                                              : 4) {}

  /// Outputs (row + i, lane + j) of a product with n columns.
  void place(std::int64_t row, std::int64_t lane, std::int64_t n) {
    const std::int64_t pieces = 16 / piece_bytes_, width = BlockWidth<T>();
    std::uint64_t ordered[kMaxCounters];
    blocks_ = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int64_t element = (row + i) * n + lane;
      begin_[i] = blocks_ * 16 + element % pieces * piece_bytes_;
      for (std::int64_t e = element / pieces; e <= (element + width - 1) / pieces; ++e)
        ordered[blocks_++] = static_cast<std::uint64_t>(e);
    }
    for (; blocks_ % kCounters != 0; ++blocks_) ordered[blocks_] = 0;
    constexpr std::int64_t kHalf = std::max<std::int64_t>(kCounters / 2, 1);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      const std::int64_t in_group = b % kCounters;
      const std::int64_t lane_of_b = in_group % kHalf * 2 + in_group / kHalf;
      counters_[b - in_group + (kCounters == 1 ? 0 : lane_of_b)] = ordered[b];
    }
  }

  /// The numbers of steps [k, k + count), count <= kSteps, as MultiplyBlock reads them.
  const T* fill(std::int64_t k, std::int64_t count) {
    const std::int64_t width = BlockWidth<T>();
    for (std::int64_t s = 0; s < count; s += kStreams) {
      for (std::int64_t b = 0; b < blocks_; b += kCounters)
        PhiloxGroup(source_, counters_ + b, static_cast<std::uint32_t>(k + s), raw_ + 4 * b,
                    kMaxWords);
      for (std::int64_t step = 0; step < std::min<std::int64_t>(kStreams, count - s); ++step) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(raw_ + step * kMaxWords);
        T* to = numbers_ + (s + step) * kRows * width;
        for (std::int64_t i = 0; i < kRows; ++i) expand(bytes + begin_[i], width, to + i * width);
      }
    }
    return numbers_;
  }

 private:
  static constexpr std::int64_t kMaxWidth =
      kVectors * static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  /// Four-byte pieces, every row beginning inside a block, up to whole groups.
  static constexpr std::int64_t kMaxCounters = kRows * (kMaxWidth / 4 + 2) + kCounters;
  static constexpr std::int64_t kMaxWords = (4 * kMaxCounters + 15) / 16 * 16;

  void expand(const std::uint8_t* pieces, std::int64_t count, T* to) const {
    if (piece_bytes_ == 1) {
      Uniform(constants_, pieces, count, to);
    } else if (piece_bytes_ == 2) {
      Uniform(constants_, reinterpret_cast<const std::uint16_t*>(pieces), count, to);
    } else {
      Uniform(constants_, reinterpret_cast<const std::uint32_t*>(pieces), count, to);
    }
  }

  const Constants<T>& constants_;
  RandomSource source_;
  std::int64_t piece_bytes_, blocks_ = 0, begin_[kRows] = {};
  alignas(64) std::uint64_t counters_[kMaxCounters] = {};
  alignas(64) std::uint32_t raw_[kStreams * kMaxWords] = {};
  alignas(64) T numbers_[kSteps * kRows * kMaxWidth] = {};
};

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

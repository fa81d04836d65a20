// Packing: runs of depth or of rows, whichever are longer, copied and transposed; per Highway
// target.
#include "emu/unit/integer/blocks.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/blocks.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Byte = std::uint8_t;

template <int kLargest>
HWY_INLINE void CopyVectors(const Byte* from, Byte* to, int bytes) {
  const hn::CappedTag<Byte, kLargest> d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < bytes; i += step) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
}

/// Copies whole vectors: up to a vector more than `bytes` is read and written, which costs less
/// than an exact end. Sources have that much slack and later copies write over the excess.
HWY_INLINE void CopyRun(const Byte* from, Byte* to, int bytes) {
  // Long stores for short runs would cross cache lines most of the time.
  bytes <= 16 ? CopyVectors<16>(from, to, bytes) : CopyVectors<kChunkBytes>(from, to, bytes);
}

HWY_INLINE void ZeroChunk(Byte* to) {
  const hn::CappedTag<Byte, kChunkBytes> d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < kChunkBytes; i += step) hn::StoreU(hn::Zero(d), d, to + i);
}

#if HWY_TARGET == HWY_SCALAR
/// to word (c, r) = from word (r, c) of a 16 x 16 tile.
void TransposeWords(const Byte* from, Byte* to) {
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) std::memcpy(to + (c * 16 + r) * 4, from + (r * 16 + c) * 4, 4);
  }
}

/// Words of `per_word` depths from depths of 16 elements.
template <int kPerWord>
void InterleaveDepths(const Byte* depths, Byte* words) {
  constexpr int kSize = 4 / kPerWord;
  for (int i = 0; i < kTileBytes / kSize; ++i) {
    const int k = i / (16 * kPerWord) * kPerWord + i % kPerWord, row = i / kPerWord % 16;
    std::memcpy(words + i * kSize, depths + (k * 16 + row) * kSize, kSize);
  }
}
void InterleaveBytes(const Byte* const depth[4], Byte* word) {
  for (int i = 0; i < kChunkBytes; ++i) word[i] = depth[i % 4][i / 4];
}
void InterleaveHalves(const Byte* depths, Byte* words) { InterleaveDepths<2>(depths, words); }
#else
/// to word (c, r) = from word (r, c) of a 16 x 16 tile, by 4 x 4 squares in 128-bit registers.
void TransposeWords(const Byte* from, Byte* to) {
  const hn::Full128<std::uint32_t> d;
  const hn::Full128<std::uint64_t> pairs;
  const auto* in = reinterpret_cast<const std::uint32_t*>(from);
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  for (int c = 0; c < 16; c += 4) {
    for (int r = 0; r < 16; r += 4) {
      const std::uint32_t* square = in + r * 16 + c;
      const auto r0 = hn::LoadU(d, square), r1 = hn::LoadU(d, square + 16);
      const auto r2 = hn::LoadU(d, square + 32), r3 = hn::LoadU(d, square + 48);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
      std::uint32_t* column = out + c * 16 + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, column);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, column + 16);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, column + 32);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, column + 48);
    }
  }
}

/// 16 words of 4 bytes from 4 depths of 16 bytes.
HWY_INLINE void InterleaveBytes(const Byte* const depth[4], Byte* word) {
  const hn::Full128<std::uint8_t> d;
  const hn::Full128<std::uint16_t> halves;
  const auto k0 = hn::LoadU(d, depth[0]), k1 = hn::LoadU(d, depth[1]);
  const auto k2 = hn::LoadU(d, depth[2]), k3 = hn::LoadU(d, depth[3]);
  const auto low01 = hn::BitCast(halves, hn::InterleaveLower(d, k0, k1));
  const auto low23 = hn::BitCast(halves, hn::InterleaveLower(d, k2, k3));
  const auto high01 = hn::BitCast(halves, hn::InterleaveUpper(d, k0, k1));
  const auto high23 = hn::BitCast(halves, hn::InterleaveUpper(d, k2, k3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(halves, low01, low23)), d, word);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(halves, low01, low23)), d, word + 16);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(halves, high01, high23)), d, word + 32);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(halves, high01, high23)), d, word + 48);
}

/// Words of 2 halves from 2 depths of 16 halves.
void InterleaveHalves(const Byte* depths, Byte* words) {
  const hn::Full128<std::uint16_t> d;
  const auto* in = reinterpret_cast<const std::uint16_t*>(depths);
  auto* out = reinterpret_cast<std::uint16_t*>(words);
  for (int i = 0; i < 16 * 32; i += 32) {
    for (int half = 0; half < 16; half += 8) {
      const auto k0 = hn::LoadU(d, in + i + half), k1 = hn::LoadU(d, in + i + 16 + half);
      hn::StoreU(hn::InterleaveLower(d, k0, k1), d, out + i + 2 * half);
      hn::StoreU(hn::InterleaveUpper(d, k0, k1), d, out + i + 2 * half + 8);
    }
  }
}
#endif

/// Rows of a panel that are neighbours in memory.
struct RowRuns {
  int count = 0;
  int begin[kTileRows + 1] = {};
};

RowRuns FindRowRuns(const std::int32_t* row, int rows) {
  RowRuns runs;
  for (int r = 0; r < rows; ++r) {
    if (r == 0 || row[r] != row[r - 1] + 1) runs.begin[runs.count++] = r;
  }
  runs.begin[runs.count] = rows;
  return runs;
}

/// One tile of the elements as they are, 64 bytes of depth.
class TilePacker {
 public:
  TilePacker(const Elements& e, std::int64_t first)
      : e_(e),
        row_(e.row + first),
        rows_(static_cast<int>(std::min(kTileRows, e.rows - first))),
        row_runs_(FindRowRuns(row_, rows_)) {}

  void Pack(std::int64_t chunk, TileForm form, Byte* tile) {
    const DepthRun* begin = e_.runs.data() + e_.chunk_runs[static_cast<std::size_t>(chunk)];
    const DepthRun* end = e_.runs.data() + e_.chunk_runs[static_cast<std::size_t>(chunk) + 1];
    const std::int64_t per_chunk = kChunkBytes / e_.size, k = chunk * per_chunk;
    const std::int64_t depths = std::min(per_chunk, e_.depth - k);
    if ((end - begin) * rows_ <= depths * row_runs_.count) {
      if (form == TileForm::rows) return CopyDepthRuns(begin, end, tile);
      CopyDepthRuns(begin, end, staged_);
      return TransposeWords(staged_, tile);
    }
    CopyRowRuns(e_.depths + k, depths);
    Byte* words = form == TileForm::lanes ? tile : interleaved_;
    Interleave(words);
    if (form == TileForm::rows) TransposeWords(words, tile);
  }

 private:
  /// Rows of 64 bytes of depth.
  void CopyDepthRuns(const DepthRun* begin, const DepthRun* end, Byte* tile) const {
    const std::int64_t size = e_.size;
    for (int r = 0; r < rows_; ++r, tile += kChunkBytes) {
      const Byte* from = e_.bytes.get() + row_[r] * size;
      for (const DepthRun* run = begin; run != end; ++run)
        CopyRun(from + run->from, tile + run->to, run->bytes);
      const int filled = end[-1].to + end[-1].bytes;
      if (filled < kChunkBytes) ZeroChunk(tile + filled);
    }
    for (int r = rows_; r < kTileRows; ++r, tile += kChunkBytes) ZeroChunk(tile);
  }

  /// staged_: depths of 16 rows.
  void CopyRowRuns(const std::int32_t* depth, std::int64_t depths) {
    const std::int64_t size = e_.size, line = kTileRows * size;
    Byte* to = staged_;
    for (std::int64_t k = 0; k < depths; ++k, to += line) {
      const Byte* from = e_.bytes.get() + depth[k] * size;
      for (int run = 0; run < row_runs_.count; ++run) {
        const int r = row_runs_.begin[run], count = row_runs_.begin[run + 1] - r;
        CopyRun(from + row_[r] * size, to + r * size, count * e_.size);
      }
      if (rows_ < kTileRows)
        std::memset(to + rows_ * size, 0, static_cast<std::size_t>((kTileRows - rows_) * size));
    }
    std::memset(to, 0, static_cast<std::size_t>(staged_ + kTileBytes - to));
  }

  void Interleave(Byte* words) const {
    if (e_.size == 1) {
      for (const Byte* from = staged_; from != staged_ + kTileBytes; from += 64, words += 64) {
        const Byte* const depth[] = {from, from + 16, from + 32, from + 48};
        InterleaveBytes(depth, words);
      }
      return;
    }
    if (e_.size == 2) return InterleaveHalves(staged_, words);
    std::memcpy(words, staged_, kTileBytes);
  }

  const Elements& e_;
  const std::int32_t* row_;
  int rows_;
  RowRuns row_runs_;
  alignas(64) Byte staged_[kTileBytes + kPackSlack];
  alignas(64) Byte interleaved_[kTileBytes];
};

/// Bit 0 of 8 bytes: the product moves bit 0 of byte i to bit 56 + i, and no two terms meet there.
std::uint64_t Bits(const Byte* eight) {
  std::uint64_t x;
  std::memcpy(&x, eight, sizeof x);
  return (x & 0x0101010101010101u) * 0x0102040810204080u >> 56;
}

/// A tile of bits: 8 tiles of bytes, 512 depths.
void PackSigns(const Elements& e, std::int64_t chunk, TilePacker& packer, TileForm form,
               Byte* tile) {
  alignas(64) Byte bytes[kTileBytes + kPackSlack], bits[kTileBytes] = {};
  const auto byte_chunks = static_cast<std::int64_t>(e.chunk_runs.size()) - 1;
  for (std::int64_t part = 0; part < 8 && chunk * 8 + part < byte_chunks; ++part) {
    packer.Pack(chunk * 8 + part, TileForm::rows, bytes);
    for (std::int64_t i = 0; i < kTileBytes; i += 8) {
      const std::int64_t row = i / kChunkBytes, byte = i % kChunkBytes / 8;
      bits[row * kChunkBytes + part * 8 + byte] = static_cast<Byte>(Bits(bytes + i));
    }
  }
  if (form == TileForm::rows) {
    std::memcpy(tile, bits, kTileBytes);
  } else {
    TransposeWords(bits, tile);
  }
}

void PackPanel(const Elements& e, std::int64_t first, std::int64_t begin, std::int64_t end,
               TileForm form, Byte* tiles) {
  TilePacker packer(e, first);
  for (std::int64_t chunk = begin; chunk < end; ++chunk, tiles += kTileBytes) {
    if (e.signs) {
      PackSigns(e, chunk, packer, form, tiles);
    } else {
      packer.Pack(chunk, form, tiles);
    }
  }
}

/// Four panels in one pass: depths far apart share cache sets, and a line would be evicted before
/// the next panel reads its part.
void PackLines(const Elements& e, std::int64_t first, std::int64_t begin, std::int64_t end,
               Byte* tiles, std::int64_t stride) {
  static constexpr Byte kZeros[kPackRows] = {};
  const Byte* source = e.bytes.get() + e.row[first];
  for (std::int64_t k = begin * kChunkBytes; k < end * kChunkBytes; k += 4, tiles += kChunkBytes) {
    const Byte* depth[4];
    for (int i = 0; i < 4; ++i) depth[i] = k + i < e.depth ? source + e.depths[k + i] : kZeros;
    for (std::int64_t r = 0; r < kPackRows; r += kTileRows) {
      const Byte* const part[] = {depth[0] + r, depth[1] + r, depth[2] + r, depth[3] + r};
      InterleaveBytes(part, tiles + r / kTileRows * stride);
    }
  }
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(PackPanel);
HWY_EXPORT(PackLines);

bool has_lines(const Elements& e, std::int64_t first, std::int64_t begin, std::int64_t end) {
  if (e.size != 1 || e.signs || first + kPackRows > e.rows) return false;
  for (std::int64_t r = first + 1; r < first + kPackRows; ++r)
    if (e.row[r] != e.row[r - 1] + 1) return false;
  const std::int64_t runs =
      e.chunk_runs[static_cast<std::size_t>(end)] - e.chunk_runs[static_cast<std::size_t>(begin)];
  return runs * kTileRows > std::min(end * kChunkBytes, e.depth) - begin * kChunkBytes;
}

void pack_panel(const Elements& e, std::int64_t first, std::int64_t begin, std::int64_t end,
                TileForm form, std::uint8_t* tiles) {
  HWY_DYNAMIC_DISPATCH(PackPanel)(e, first, begin, end, form, tiles);
}

void pack_lines(const Elements& e, std::int64_t first, std::int64_t begin, std::int64_t end,
                std::uint8_t* tiles, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(PackLines)(e, first, begin, end, tiles, stride);
}

namespace {

/// Panels of 16 rows, all planes of one panel beside each other.
struct Panels {
  const std::vector<Elements>& planes;
  TileForm form;
  std::int64_t begin, end;  ///< chunks of the slice

  std::int64_t plane_bytes() const { return (end - begin) * kTileBytes; }
  std::int64_t stride() const { return plane_bytes() * static_cast<std::int64_t>(planes.size()); }
  void pack(std::int64_t first, std::int64_t count, std::uint8_t* to) const {
    constexpr std::int64_t kPanels = kPackRows / kTileRows;
    for (std::int64_t i = 0; i < count;) {
      const bool lines = form == TileForm::lanes && i % kPackRows == 0 && i + kPackRows <= count &&
                         has_lines(planes.front(), first + i, begin, end);
      std::uint8_t* tiles = to;
      for (const Elements& plane : planes) {
        lines ? pack_lines(plane, first + i, begin, end, tiles, stride())
              : pack_panel(plane, first + i, begin, end, form, tiles);
        tiles += plane_bytes();
      }
      to += (lines ? kPanels : 1) * stride();
      i += lines ? kPackRows : kTileRows;
    }
  }
};

/// Undoes what entering did, also when a block throws.
class Entered {
 public:
  explicit Entered(const BlockKernel& kernel) : kernel_(kernel) {
    if (kernel_.enter != nullptr) kernel_.enter();
  }
  ~Entered() {
    if (kernel_.leave != nullptr) kernel_.leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const BlockKernel& kernel_;
};

void run_tile(const BlockProduct& p, const Tile& tile,
              const std::function<void(const PackedBlock&)>& body) {
  const Elements& e = p.rows.front();
  const std::int64_t chunks = e.chunks(), slice = std::min(chunks, p.slice_chunks);
  const std::int64_t rows = tile.row_end - tile.row_begin, lanes = tile.lane_end - tile.lane_begin;
  const auto blocks_of = [](std::int64_t n) { return (n + kBlock - 1) / kBlock; };
  const Panels largest_rows{p.rows, TileForm::rows, 0, slice};
  const Panels largest_lanes{p.lanes, TileForm::lanes, 0, slice};
  const Scratch packed_rows(blocks_of(rows) * 2 * largest_rows.stride() + kPackSlack);
  const Scratch packed_lanes(kPackRows / kTileRows * largest_lanes.stride() + kPackSlack);
  const std::int64_t states = slice == chunks ? 1 : blocks_of(rows) * blocks_of(lanes);
  const Scratch state(states * p.state_bytes);

  for (std::int64_t begin = 0; begin == 0 || begin < chunks; begin += slice) {
    const std::int64_t end = std::min(chunks, begin + slice);
    const Panels row_panels{p.rows, TileForm::rows, begin, end};
    const Panels lane_panels{p.lanes, TileForm::lanes, begin, end};
    row_panels.pack(tile.row_begin, rows, packed_rows.get());
    PackedBlock b;
    b.plane_bytes = row_panels.plane_bytes();
    b.block.depth = std::min(end * e.per_chunk(), e.depth) - begin * e.per_chunk();
    b.depth = begin * e.per_chunk();
    b.first = begin == 0;
    b.last = end == chunks;
    std::int64_t index = 0;
    for (std::int64_t j = 0; j < lanes; j += kBlock) {
      b.lane = tile.lane_begin + j;
      b.block.lane_count = std::min(kBlock, lanes - j);
      if (j % kPackRows == 0)
        lane_panels.pack(b.lane, std::min(kPackRows, lanes - j), packed_lanes.get());
      for (std::int64_t i = 0; i < rows; i += kBlock, ++index) {
        b.row = tile.row_begin + i;
        b.block.row_count = std::min(kBlock, rows - i);
        b.block.rows = packed_rows.get() + i / kTileRows * row_panels.stride();
        b.block.lanes = packed_lanes.get() + j % kPackRows / kTileRows * lane_panels.stride();
        b.block.row_stride = row_panels.stride();
        b.block.lane_stride = lane_panels.stride();
        b.state = state.get() + (states == 1 ? 0 : index * p.state_bytes);
        body(b);
      }
    }
    if (slice == 0) break;
  }
}

}  // namespace

void for_each_block(const BlockProduct& p, const std::function<void(const PackedBlock&)>& body) {
  const Elements &rows = p.rows.front(), &lanes = p.lanes.front();
  for_each_tile(rows.rows, lanes.rows, rows.depth, p.shape, [&](const Tile& tile) {
    const Entered entered(p.kernel);
    run_tile(p, tile, body);
  });
}

void prefetch_outputs(const PackedBlock& b, const void* d, int bytes, std::int64_t n) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t row_bytes = b.block.lane_count * bytes;
  const auto* row = static_cast<const std::uint8_t*>(d) + (b.row * n + b.lane) * bytes;
  for (std::int64_t i = 0; i < b.block.row_count; ++i, row += n * bytes) {
    for (std::int64_t at = 0; at < row_bytes; at += kLine) __builtin_prefetch(row + at, 1);
    __builtin_prefetch(row + row_bytes - 1, 1);
  }
}

}  // namespace numemu::unit
#endif  // HWY_ONCE

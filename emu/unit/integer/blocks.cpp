// Packs a tile's rows once per slice and its lanes a few blocks at a time.
#include "emu/unit/integer/blocks.hpp"

#include <algorithm>

#include "emu/unit/integer/pack.hpp"

namespace numemu::unit {
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

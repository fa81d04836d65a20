// Bytes multiplied in AMX tiles: 2 x 2 tiles of 16 x 16 sums, 64 depths at a time.
#include <array>

#include "emu/unit/cpu.hpp"
#include "emu/unit/integer/block.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace numemu::unit {
namespace {

// The intrinsics of gcc 12 paste tile numbers into text, so they cannot be template parameters;
// these can. Volatile keeps them in order.
template <int kTile>
void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kTile>
void load_tile(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride) : "memory");
}

template <int kTile>
void store_tile(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride) : "memory");
}

/// kSum += kRows x kLanes.
template <bool kRowsUnsigned, bool kLanesUnsigned, int kSum, int kRows, int kLanes>
void dot_tiles() {
  if constexpr (!kRowsUnsigned && !kLanesUnsigned) {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kLanes));
  } else if constexpr (!kRowsUnsigned) {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kLanes));
  } else if constexpr (!kLanesUnsigned) {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kLanes));
  } else {
    asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kLanes));
  }
}

constexpr std::int64_t kLaneTile = 16;

/// Tiles 0 to 3: sums (row tile, lane tile) at 2 row + lane; 4 and 5: rows; 6 and 7: lanes.
template <bool kRowsUnsigned, bool kLanesUnsigned, int kRowTiles, int kLaneTiles>
void run_tiles(const Block& b) {
  constexpr bool kBothRows = kRowTiles == 2, kBothLanes = kLaneTiles == 2;
  const std::int64_t stride = b.sum_stride * 4;
  std::int32_t *upper = b.sums, *lower = b.sums + kTileRows * b.sum_stride;
  if (b.from_zero) {
    clear_tile<0>();
    clear_tile<1>();
    clear_tile<2>();
    clear_tile<3>();
  } else {
    load_tile<0>(upper, stride);
    if constexpr (kBothLanes) load_tile<1>(upper + kLaneTile, stride);
    if constexpr (kBothRows) load_tile<2>(lower, stride);
    if constexpr (kBothRows && kBothLanes) load_tile<3>(lower + kLaneTile, stride);
  }
  const std::int64_t chunks = (b.depth + kChunkBytes - 1) / kChunkBytes;
  for (std::int64_t p = 0; p <= b.more_planes; ++p) {
    const std::uint8_t *rows = b.rows + p * b.plane_step, *lanes = b.lanes - p * b.plane_step;
    for (std::int64_t c = 0; c < chunks; ++c, rows += kTileBytes, lanes += kTileBytes) {
      load_tile<4>(rows, kChunkBytes);
      load_tile<6>(lanes, kChunkBytes);
      dot_tiles<kRowsUnsigned, kLanesUnsigned, 0, 4, 6>();
      if constexpr (kBothLanes) {
        load_tile<7>(lanes + b.lane_stride, kChunkBytes);
        dot_tiles<kRowsUnsigned, kLanesUnsigned, 1, 4, 7>();
      }
      if constexpr (kBothRows) {
        load_tile<5>(rows + b.row_stride, kChunkBytes);
        dot_tiles<kRowsUnsigned, kLanesUnsigned, 2, 5, 6>();
      }
      if constexpr (kBothRows && kBothLanes) dot_tiles<kRowsUnsigned, kLanesUnsigned, 3, 5, 7>();
    }
  }
  store_tile<0>(upper, stride);
  if constexpr (kBothLanes) store_tile<1>(upper + kLaneTile, stride);
  if constexpr (kBothRows) store_tile<2>(lower, stride);
  if constexpr (kBothRows && kBothLanes) store_tile<3>(lower + kLaneTile, stride);
}

template <bool kRowsUnsigned, bool kLanesUnsigned>
void run_block(const Block& b) {
  const bool both_rows = b.row_count > kTileRows, both_lanes = b.lane_count > kTileRows;
  if (both_rows) {
    both_lanes ? run_tiles<kRowsUnsigned, kLanesUnsigned, 2, 2>(b)
               : run_tiles<kRowsUnsigned, kLanesUnsigned, 2, 1>(b);
  } else {
    both_lanes ? run_tiles<kRowsUnsigned, kLanesUnsigned, 1, 2>(b)
               : run_tiles<kRowsUnsigned, kLanesUnsigned, 1, 1>(b);
  }
}

/// Palette 1, every tile 16 rows of 64 bytes (Intel 64 manual, volume 1, chapter 18).
void configure_tiles() {
  struct alignas(64) Configuration {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::array<std::uint16_t, 16> column_bytes{64, 64, 64, 64, 64, 64, 64, 64};
    std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Configuration kConfiguration;
  static_assert(sizeof kConfiguration == 64);
  asm volatile("ldtilecfg %0" ::"m"(kConfiguration));
}

void release_tiles() { asm volatile("tilerelease"); }

/// CPUID leaf 7: AMX-TILE and AMX-INT8. The kernel must agree too, once per process: tile data is
/// state component 18, asked for with ARCH_REQ_XCOMP_PERM.
bool request_amx() {
  constexpr unsigned kTileBit = 1u << 24, kInt8Bit = 1u << 25;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & kTileBit) == 0 || (d & kInt8Bit) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx() {
  static const bool has = request_amx();
  return has && has_wide_vectors();
}

BlockKernel amx_kernel(bool rows_unsigned, bool lanes_unsigned) {
  const BlockFunction run =
      rows_unsigned ? (lanes_unsigned ? run_block<true, true> : run_block<true, false>)
                    : (lanes_unsigned ? run_block<false, true> : run_block<false, false>);
  return {run, configure_tiles, release_tiles, true};
}

}  // namespace numemu::unit
#else
namespace numemu::unit {

bool has_amx() { return false; }
BlockKernel amx_kernel(bool, bool) { return {}; }

}  // namespace numemu::unit
#endif

// AVX-512 VNNI: 8 rows x 32 lanes of sums in registers, 4 bytes or 2 words of depth at a time.
#include "emu/unit/cpu.hpp"
#include "emu/unit/integer/block.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace numemu::unit {
namespace {

constexpr int kRows = 8;  ///< 8 x 2 sums hide the latency of 5 cycles on two ports

std::int64_t words_of(const Block& b, bool bytes) {
  return bytes ? (b.depth + 3) / 4 : (b.depth + 1) / 2;
}

__attribute__((target("avx512f"))) inline __m512i broadcast(const std::uint8_t* word) {
  std::int32_t x;
  std::memcpy(&x, word, sizeof x);
  return _mm512_set1_epi32(x);
}

/// VPDPBUSD takes its unsigned bytes first.
template <bool kBytes>
__attribute__((target("avx512f,avx512vnni"))) inline __m512i dot(__m512i sum, __m512i lanes,
                                                                 __m512i row) {
  return kBytes ? _mm512_dpbusd_epi32(sum, lanes, row) : _mm512_dpwssd_epi32(sum, lanes, row);
}

template <bool kBytes>
__attribute__((target("avx512f,avx512vnni"))) void run_rows(const Block& b,
                                                            const std::uint8_t* rows,
                                                            std::int32_t* sums) {
  __m512i sum[kRows][2];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = b.from_zero ? _mm512_setzero_si512() : _mm512_loadu_si512(sums + i * kBlock);
    sum[i][1] = b.from_zero ? _mm512_setzero_si512() : _mm512_loadu_si512(sums + i * kBlock + 16);
  }
  const std::uint8_t *first = b.lanes, *second = b.lanes + b.lane_stride;
  std::int64_t words = words_of(b, kBytes);
  for (; words > 0; words -= 16, rows += kTileBytes) {
    const int here = words < 16 ? static_cast<int>(words) : 16;
    for (int w = 0; w < here; ++w, first += 64, second += 64) {
      const __m512i x = _mm512_loadu_si512(first), y = _mm512_loadu_si512(second);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const __m512i row = broadcast(rows + i * kChunkBytes + w * 4);
        sum[i][0] = dot<kBytes>(sum[i][0], x, row);
        sum[i][1] = dot<kBytes>(sum[i][1], y, row);
      }
    }
    first += (16 - here) * 64;
    second += (16 - here) * 64;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    _mm512_storeu_si512(sums + i * kBlock, sum[i][0]);
    _mm512_storeu_si512(sums + i * kBlock + 16, sum[i][1]);
  }
}

/// Sums of the signed bytes of row i.
__attribute__((target("avx512f,avx512vnni"))) std::int32_t sum_of_row(const Block& b,
                                                                      std::int64_t i) {
  const std::uint8_t* row = b.rows + i / kTileRows * b.row_stride + i % kTileRows * kChunkBytes;
  __m512i sum = _mm512_setzero_si512();
  for (std::int64_t k = 0; k < b.depth; k += kChunkBytes, row += kTileBytes)
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), _mm512_loadu_si512(row));
  alignas(64) std::int32_t parts[16];
  _mm512_store_si512(parts, sum);
  std::int32_t total = 0;
  for (const std::int32_t part : parts) total += part;
  return total;
}

/// Sums of the unsigned bytes of 16 lanes.
__attribute__((target("avx512f,avx512vnni"))) __m512i sum_of_lanes(const Block& b,
                                                                   const std::uint8_t* lanes) {
  __m512i sum = _mm512_setzero_si512();
  for (std::int64_t k = 0; k < b.depth; k += 4, lanes += 64)
    sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(lanes), _mm512_set1_epi8(1));
  return sum;
}

/// sum (r + zr)(l + zl) = sum r l + zr sum l + zl sum r + depth zr zl, all modulo 2^32. Packed
/// padding is 0 on both sides, so only `depth` counts it.
template <ByteZeros kZeros>
__attribute__((target("avx512f,avx512vnni"))) void add_zeros(const Block& b) {
  constexpr bool kOfRows = kZeros == ByteZeros::rows || kZeros == ByteZeros::both;
  constexpr bool kOfLanes = kZeros == ByteZeros::lanes || kZeros == ByteZeros::both;
  __m512i per_lane[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  if constexpr (kOfRows) {
    const __m512i zero = _mm512_set1_epi32(kZeroRows);
    per_lane[0] = _mm512_mullo_epi32(sum_of_lanes(b, b.lanes), zero);
    if (b.lane_count > kTileRows)
      per_lane[1] = _mm512_mullo_epi32(sum_of_lanes(b, b.lanes + b.lane_stride), zero);
  }
  for (std::int64_t i = 0; i < b.row_count; ++i) {
    std::uint32_t per_row = 0;
    if constexpr (kOfLanes) {
      per_row =
          static_cast<std::uint32_t>(sum_of_row(b, i)) * static_cast<std::uint32_t>(kZeroLanes);
    }
    if constexpr (kZeros == ByteZeros::both) {
      per_row +=
          static_cast<std::uint32_t>(b.depth) * static_cast<std::uint32_t>(kZeroRows * kZeroLanes);
    }
    const __m512i row = _mm512_set1_epi32(static_cast<std::int32_t>(per_row));
    for (int half = 0; half < 2; ++half) {
      std::int32_t* sums = b.sums + i * kBlock + half * 16;
      const __m512i zeros = _mm512_add_epi32(row, per_lane[half]);
      _mm512_storeu_si512(sums, _mm512_add_epi32(_mm512_loadu_si512(sums), zeros));
    }
  }
}

template <bool kBytes, ByteZeros kZeros>
void run_block(const Block& block) {
  Block b = block;
  // A second panel that does not exist is computed from the first one and not read.
  if (b.lane_count <= kTileRows) b.lane_stride = 0;
  for (std::int64_t i = 0; i < b.row_count; i += kRows) {
    const std::uint8_t* rows = b.rows + i / kTileRows * b.row_stride + i % kTileRows * kChunkBytes;
    run_rows<kBytes>(b, rows, b.sums + i * kBlock);
  }
  if constexpr (kZeros != ByteZeros::none) add_zeros<kZeros>(block);
}

}  // namespace

bool has_vnni() { return has_wide_vectors() && __builtin_cpu_supports("avx512vnni"); }

BlockKernel vnni_bytes_kernel(ByteZeros zeros) {
  switch (zeros) {
    case ByteZeros::none:
      return {run_block<true, ByteZeros::none>};
    case ByteZeros::lanes:
      return {run_block<true, ByteZeros::lanes>};
    case ByteZeros::rows:
      return {run_block<true, ByteZeros::rows>};
    case ByteZeros::both:
      break;
  }
  return {run_block<true, ByteZeros::both>};
}

BlockKernel vnni_pairs_kernel() { return {run_block<false, ByteZeros::none>}; }

}  // namespace numemu::unit
#else
namespace numemu::unit {

bool has_vnni() { return false; }
BlockKernel vnni_bytes_kernel(ByteZeros) { return {}; }
BlockKernel vnni_pairs_kernel() { return {}; }

}  // namespace numemu::unit
#endif

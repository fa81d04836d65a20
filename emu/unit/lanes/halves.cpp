// Chains of binary16 multiply-adds by the instruction that is one of them (AVX512-FP16).
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "emu/unit/cpu.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"

// clang 14 has no such vectors in functions compiled for another target than the file.
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>
#endif

namespace numemu::unit {

#if defined(__x86_64__) && !defined(__clang__)
namespace {

constexpr int kHalfRows = 8, kHalfLanes = 64, kHalfSlice = 256;

bool halves_covered(const UnitDescription& u, const Gemm& g) {
  const Format* half = &find_format("float16");
  const bool types = u.accumulator.format == half && (u.c == nullptr || u.c == half) &&
                     (u.d == nullptr || u.d == half) && g.a.format == half && g.b.format == half;
  // NaN is left to the reference, for any rule.
  return types && u.core == CoreKind::chain && u.k <= 1 && g.k > 0 && has_wide_float16();
}

/// registers[row][64] += products of k slices: rows [k][8], lanes [k][64].
[[gnu::noinline, gnu::target("avx512fp16,avx512vl,avx512bw")]] void multiply_block(
    const std::uint16_t* rows, const std::uint16_t* lanes, std::int64_t depth,
    std::uint16_t* registers) {
  __m512h sums[kHalfRows][2];
#pragma GCC unroll 8
  for (int i = 0; i < kHalfRows; ++i) {
    sums[i][0] = _mm512_loadu_ph(registers + i * kHalfLanes);
    sums[i][1] = _mm512_loadu_ph(registers + i * kHalfLanes + 32);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const __m512h first = _mm512_loadu_ph(lanes + k * kHalfLanes);
    const __m512h second = _mm512_loadu_ph(lanes + k * kHalfLanes + 32);
#pragma GCC unroll 8
    for (int i = 0; i < kHalfRows; ++i) {
      const __m512h a = _mm512_castsi512_ph(
          _mm512_set1_epi16(static_cast<std::int16_t>(rows[k * kHalfRows + i])));
      sums[i][0] = _mm512_fmadd_ph(a, first, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ph(a, second, sums[i][1]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kHalfRows; ++i) {
    _mm512_storeu_ph(registers + i * kHalfLanes, sums[i][0]);
    _mm512_storeu_ph(registers + i * kHalfLanes + 32, sums[i][1]);
  }
}

/// Codes of one side, padded where the operand is.
struct HalfSide {
  HalfSide(const Operand& operand, std::int64_t rows, std::int64_t depth)
      : row(operand.gather->row.data()), offsets(operand.gather->depth.data()) {
    source_size(operand, rows, depth);
    codes = static_cast<const std::uint16_t*>(operand.codes);
    const Padding& padding = operand.gather->padding;
    if (padding.identity()) return;
    padded.resize(static_cast<std::size_t>(padding.padded_size()));
    pad<std::uint16_t>(padding, codes, padded.data(), 0);
    codes = padded.data();
  }
  /// packed[k][width], zeros beyond `count`.
  void pack(std::int64_t first, std::int64_t count, std::int64_t width, std::int64_t k,
            std::int64_t depth, std::uint16_t* packed) const {
    std::fill_n(packed, depth * width, std::uint16_t{0});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint16_t* from = codes + row[first + i];
      for (std::int64_t j = 0; j < depth; ++j) packed[j * width + i] = from[offsets[k + j]];
    }
  }
  const std::int32_t *row, *offsets;
  const std::uint16_t* codes;
  std::vector<std::uint16_t> padded;
};

void run_half_tile(const Gemm& g, const HalfSide& a, const HalfSide& b, const Tile& t) {
  const auto* c = static_cast<const std::uint16_t*>(g.c);
  auto* d = static_cast<std::uint16_t*>(g.d);
  const std::int64_t blocks = (t.row_end - t.row_begin + kHalfRows - 1) / kHalfRows;
  std::vector<std::uint16_t> rows(static_cast<std::size_t>(blocks * kHalfRows * kHalfSlice)),
      lanes(kHalfLanes * kHalfSlice),
      registers(static_cast<std::size_t>(blocks) * kHalfRows * kHalfLanes);
  for (std::int64_t lane = t.lane_begin; lane < t.lane_end; lane += kHalfLanes) {
    const std::int64_t count = std::min<std::int64_t>(kHalfLanes, t.lane_end - lane);
    const std::int64_t row_count = t.row_end - t.row_begin;
    std::fill(registers.begin(), registers.end(), std::uint16_t{0});
    for (std::int64_t i = 0; c != nullptr && i < row_count; ++i)
      std::copy_n(c + (t.row_begin + i) * g.n + lane, count, registers.data() + i * kHalfLanes);
    for (std::int64_t k = 0; k < g.k; k += kHalfSlice) {
      const std::int64_t depth = std::min<std::int64_t>(kHalfSlice, g.k - k);
      b.pack(lane, count, kHalfLanes, k, depth, lanes.data());
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t row = t.row_begin + block * kHalfRows;
        a.pack(row, std::min<std::int64_t>(kHalfRows, t.row_end - row), kHalfRows, k, depth,
               rows.data());
        multiply_block(rows.data(), lanes.data(), depth,
                       registers.data() + block * kHalfRows * kHalfLanes);
      }
    }
    for (std::int64_t i = 0; i < row_count; ++i)
      std::copy_n(registers.data() + i * kHalfLanes, count, d + (t.row_begin + i) * g.n + lane);
  }
}

/// Outputs that are NaN, by the reference: the payload depends on the operands' order.
void redo_nans(const UnitDescription& u, const Gemm& g) {
  const auto* d = static_cast<const std::uint16_t*>(g.d);
  std::unique_ptr<const ReferenceDot> reference;
  for (std::int64_t at = 0; at < g.m * g.n; ++at) {
    if ((d[at] & 0x7fff) <= 0x7c00) continue;
    if (reference == nullptr) reference = std::make_unique<const ReferenceDot>(u, g);
    reference->write(at / g.n, at % g.n);
  }
}

}  // namespace

bool multiply_halves(const UnitDescription& u, const Gemm& g) {
  if (!halves_covered(u, g)) return false;
  const HalfSide a(g.a, g.m, g.k), b(g.b, g.n, g.k);
  for_each_tile(g.m, g.n, g.k, {.rows = 256, .lanes = 256, .granule = kHalfLanes},
                [&](const Tile& t) { run_half_tile(g, a, b, t); });
  redo_nans(u, g);
  return true;
}

#else

bool multiply_halves(const UnitDescription&, const Gemm&) { return false; }

#endif

}  // namespace numemu::unit

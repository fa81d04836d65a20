// The E5M10 register as the host's own half precision: one instruction is one multiply-add.
//
// VFMADD231PH rounds the exact a * b + sum once to binary16, subnormals included for any
// MXCSR, overflows to infinity, and gives NaN where IEEE 754 does: the register itself.
#include "emu/unit/mac/native_half.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "emu/unit/cpu.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/mac/plan.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"

// clang before 16 has the intrinsics only where the whole file is compiled for the instructions.
#if defined(__x86_64__) && (!defined(__clang__) || __clang_major__ >= 16)
#include <hwy/targets.h>
#include <immintrin.h>
#define NUMEMU_MAC_HALF 1
#else
#define NUMEMU_MAC_HALF 0
#endif

namespace numemu::unit::mac {

#if NUMEMU_MAC_HALF
namespace {

constexpr std::int64_t kRows = 8, kVectors = 2, kLanes = 32, kWidth = kVectors * kLanes;
/// Slice of k packed at a time: its panel is half of a first-level cache.
constexpr std::int64_t kSlice = 192;

/// Whether every value is a binary16 number.
bool exact_in_half(const Format& f) {
  const Exponents range = exponents_of(f);
  return precision(f) <= 11 && range.low >= -24 && range.top <= 16;
}

bool is_half(const Format* f) {
  return f != nullptr && f->exponent_bits == 5 && f->mantissa_bits == 10 && f->bias == 15 &&
         f->is_signed && f->specials == Specials::ieee && f->field_zero == FieldZero::subnormal;
}

/// sums[i][j] <- the chain of rows[k][i] * lanes[k][j] from sums[i][j]. A row's factor occurs twice
/// in 32 bits, which are broadcast by the load; 16 bits would need a shuffle.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512fp16"), noinline)) void multiply_block(
    const std::uint32_t* rows, const std::uint16_t* lanes, std::int64_t k_count,
    std::uint16_t* sums) {
  __m512h sum[kRows * kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) sum[i] = _mm512_loadu_ph(sums + i * kLanes);
  for (std::int64_t k = 0; k < k_count; ++k, rows += kRows, lanes += kWidth) {
    const __m512h b0 = _mm512_loadu_ph(lanes), b1 = _mm512_loadu_ph(lanes + kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const __m512h a = _mm512_castsi512_ph(_mm512_set1_epi32(static_cast<int>(rows[i])));
      sum[2 * i] = _mm512_fmadd_ph(a, b0, sum[2 * i]);
      sum[2 * i + 1] = _mm512_fmadd_ph(a, b1, sum[2 * i + 1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) _mm512_storeu_ph(sums + i * kLanes, sum[i]);
}

/// total <- total + part, part <- +0, for a whole block.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512fp16"), noinline)) void add_block(
    std::uint16_t* part, std::uint16_t* total) {
  for (std::int64_t i = 0; i < kRows * kWidth; i += kLanes) {
    const __m512h sum = _mm512_add_ph(_mm512_loadu_ph(total + i), _mm512_loadu_ph(part + i));
    _mm512_storeu_ph(total + i, sum);
    _mm512_storeu_ph(part + i, _mm512_setzero_ph());
  }
}

/// Operands as codes of binary16; those that are such codes are read in place.
Source<std::int16_t> decode_half(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  static const Format& half = find_format("float16");
  const Gather& gather = *operand.gather;
  if (is_half(operand.format) && gather.padding.identity()) {
    source_size(operand, rows, depth);  // checks the gather
    return {static_cast<const std::int16_t*>(operand.codes), gather.row.data(), gather.depth.data(),
            nullptr};
  }
  struct Halves {
    Source<std::int16_t> source;
  };
  return prepared<Halves>(
             operand,
             [&](const Operand& o) {
               return Halves{decode_source<std::int16_t>(o, rows, depth, [](const Value& v) {
                 return static_cast<std::int16_t>(encode(half, v, {}, Overflow::ieee).code);
               })};
             })
      ->source;
}

struct Product {
  const UnitDescription& unit;
  const Gemm& gemm;
  Source<std::int16_t> a, b;
};

/// packed[k][i] = element (first + i, k) of a slice, as `T`; zero from `count` on.
template <std::int64_t kTo, class T, class Map>
void pack(const Source<std::int16_t>& source, std::int64_t first, std::int64_t count,
          std::int64_t k, std::int64_t depth, T* packed, const Map& map) {
  const std::int32_t* const depths = source.depth + k;
  if (count < kTo) std::fill_n(packed, depth * kTo, T{0});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int16_t* const values = source.values + source.row[first + i];
    for (std::int64_t d = 0; d < depth; ++d)
      packed[d * kTo + i] = map(static_cast<std::uint16_t>(values[depths[d]]));
  }
}

/// Steps [k, k + depth) of a block; chunks end where k is a multiple of their size, and at K.
void run_block(const Product& p, const std::uint32_t* rows, const std::uint16_t* lanes,
               std::int64_t k, std::int64_t depth, std::uint16_t* total, std::uint16_t* part) {
  const std::int64_t chunk = p.unit.chain.chunk, end = k + depth;
  if (chunk == 0) return multiply_block(rows, lanes, depth, total);
  while (k < end) {
    const std::int64_t count = std::min(end - k, chunk - k % chunk);
    multiply_block(rows, lanes, count, part);
    k += count;
    rows += count * kRows;
    lanes += count * kWidth;
    if (k % chunk == 0 || k == p.gemm.k) add_block(part, total);
  }
}

/// Copies a block from C (or +0), or to D.
void begin(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t lane,
           std::int64_t lanes, std::uint16_t* sums) {
  std::fill_n(sums, kRows * kWidth, std::uint16_t{0});
  if (p.gemm.c == nullptr) return;
  const auto* c = static_cast<const std::uint16_t*>(p.gemm.c) + row * p.gemm.n + lane;
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(c + i * p.gemm.n, lanes, sums + i * kWidth);
}

void end(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t lane,
         std::int64_t lanes, const std::uint16_t* sums) {
  constexpr std::uint16_t kMagnitude = 0x7fff, kInfinity = 0x7c00;
  const auto nan = static_cast<std::uint16_t>(p.unit.nan_code);
  auto* d = static_cast<std::uint16_t*>(p.gemm.d) + row * p.gemm.n + lane;
  for (std::int64_t i = 0; i < rows; ++i, d += p.gemm.n, sums += kWidth) {
#pragma omp simd
    for (std::int64_t j = 0; j < lanes; ++j)
      d[j] = (sums[j] & kMagnitude) > kInfinity ? nan : sums[j];
  }
}

void run_tile(const Product& p, const Tile& t) {
  const std::int64_t k_count = p.gemm.k, slice = std::min(k_count, kSlice);
  const std::int64_t blocks = (t.row_end - t.row_begin + kRows - 1) / kRows;
  const std::int64_t panels = (t.lane_end - t.lane_begin + kWidth - 1) / kWidth;
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(blocks * kRows * slice));
  std::vector<std::uint16_t> panel(static_cast<std::size_t>(kWidth * slice));
  using Block = std::array<std::uint16_t, kRows * kWidth>;
  std::vector<Block> totals(static_cast<std::size_t>(panels * blocks)), parts(totals.size());
  for (std::int64_t k = 0; k == 0 || k < k_count; k += kSlice) {
    const std::int64_t depth = std::min(slice, k_count - k);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t row = t.row_begin + b * kRows;
      pack<kRows>(p.a, row, std::min(kRows, t.row_end - row), k, depth,
                  rows.data() + b * kRows * depth, [](std::uint32_t x) { return x << 16 | x; });
    }
    for (std::int64_t panel_index = 0; panel_index < panels; ++panel_index) {
      const std::int64_t lane = t.lane_begin + panel_index * kWidth;
      const std::int64_t lanes = std::min(kWidth, t.lane_end - lane);
      pack<kWidth>(p.b, lane, lanes, k, depth, panel.data(), [](std::uint16_t x) { return x; });
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t row = t.row_begin + b * kRows;
        const std::int64_t valid = std::min(kRows, t.row_end - row);
        const auto index = static_cast<std::size_t>(panel_index * blocks + b);
        if (k == 0) begin(p, row, valid, lane, lanes, totals[index].data());
        run_block(p, rows.data() + b * kRows * depth, panel.data(), k, depth, totals[index].data(),
                  parts[index].data());
        if (k + kSlice >= k_count) end(p, row, valid, lane, lanes, totals[index].data());
      }
    }
  }
}

}  // namespace

bool multiply_native_half(const UnitDescription& unit, const Gemm& g) {
  const Register& r = unit.accumulator;
  if (!is_half(r.format) || !is_half(c_format(unit)) || !is_half(result_format(unit)) ||
      r.rounding.mode != RoundingMode::rne || r.overflow != Overflow::ieee)
    return false;
  if (!exact_in_half(*g.a.format) || !exact_in_half(*g.b.format)) return false;
  if (g.n < kLanes || !has_wide_float16()) return false;
  const Product product{unit, g, decode_half(g.a, g.m, g.k), decode_half(g.b, g.n, g.k)};
  const TileShape shape{.granule = kWidth};
  for_each_tile(g.m, g.n, g.k, shape, [&](const Tile& tile) { run_tile(product, tile); });
  return true;
}
#else
bool multiply_native_half(const UnitDescription&, const Gemm&) { return false; }
#endif

}  // namespace numemu::unit::mac

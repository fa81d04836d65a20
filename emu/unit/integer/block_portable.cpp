// Pairs of 16-bit products, counted bits and table entries on any instruction set, by Highway.
#include <algorithm>
#include <cstring>

#include "emu/unit/integer/block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/block_portable.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Words = hn::CappedTag<std::int32_t, kTileRows>;
using Vector = hn::Vec<Words>;

/// What one word of a row and one of a lane add to their sum.
struct Pairs {
  static constexpr std::int64_t kPerWord = 2;
  /// -32768 * -32768 * 2 = 2^31 wraps, as sums do.
  static HWY_INLINE Vector Add(Words d, const Block&, Vector sum, Vector row, Vector lanes) {
#if HWY_TARGET == HWY_SCALAR
    const auto low = [&](Vector x) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(x)); };
    const auto product = hn::Mul(low(row), low(lanes));
    (void)d;
    return hn::Add(hn::Add(sum, product),
                   hn::Mul(hn::ShiftRight<16>(row), hn::ShiftRight<16>(lanes)));
#else
    const hn::Repartition<std::int16_t, Words> halves;
    auto odd = hn::Zero(d);
    const auto even = hn::ReorderWidenMulAccumulate(d, hn::BitCast(halves, row),
                                                    hn::BitCast(halves, lanes), hn::Zero(d), odd);
    return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
#endif
  }
};

struct Signs {
  static constexpr std::int64_t kPerWord = 32;
  static HWY_INLINE Vector Add(Words d, const Block&, Vector sum, Vector row, Vector lanes) {
#if HWY_TARGET == HWY_SCALAR
    const auto different = static_cast<std::uint32_t>(hn::GetLane(hn::Xor(row, lanes)));
    return hn::Add(sum, hn::Set(d, __builtin_popcount(different)));
#else
    const hn::RebindToUnsigned<Words> bits;
    const auto different = hn::BitCast(bits, hn::Xor(row, lanes));
    return hn::Add(sum, hn::BitCast(d, hn::PopulationCount(different)));
#endif
  }
};

struct Entries {
  static constexpr std::int64_t kPerWord = 1;
  static HWY_INLINE Vector Add(Words d, const Block& b, Vector sum, Vector row, Vector lanes) {
    return hn::Add(sum, hn::GatherIndex(d, b.table, hn::Add(row, lanes)));
  }
};

HWY_INLINE Vector Word(Words d, const std::uint8_t* at) {
  std::int32_t x;
  std::memcpy(&x, at, sizeof x);
  return hn::Set(d, x);
}

HWY_INLINE Vector LoadWords(Words d, const std::uint8_t* at) {
  return hn::LoadU(d, reinterpret_cast<const std::int32_t*>(at));
}

/// Sums of kRows rows and two vectors; recursion keeps every one in a register.
template <class Product, int kRows>
struct Sums {
  Vector first, second;
  Sums<Product, kRows - 1> rest;

  HWY_INLINE void Load(Words d, const std::int32_t* sums, bool from_zero) {
    first = from_zero ? hn::Zero(d) : hn::LoadU(d, sums);
    second = from_zero ? hn::Zero(d) : hn::LoadU(d, sums + hn::Lanes(d));
    rest.Load(d, sums + kBlock, from_zero);
  }
  HWY_INLINE void Add(Words d, const Block& b, const std::uint8_t* row, Vector x, Vector y) {
    const auto word = Word(d, row);
    first = Product::Add(d, b, first, word, x);
    second = Product::Add(d, b, second, word, y);
    rest.Add(d, b, row + kChunkBytes, x, y);
  }
  HWY_INLINE void Store(Words d, std::int32_t* sums) const {
    hn::StoreU(first, d, sums);
    hn::StoreU(second, d, sums + hn::Lanes(d));
    rest.Store(d, sums + kBlock);
  }
};

template <class Product>
struct Sums<Product, 0> {
  HWY_INLINE void Load(Words, const std::int32_t*, bool) {}
  HWY_INLINE void Add(Words, const Block&, const std::uint8_t*, Vector, Vector) {}
  HWY_INLINE void Store(Words, std::int32_t*) const {}
};

/// kRows rows from `rows` on by two vectors from lane `lane` on, which may lie in different panels.
template <class Product, int kRows>
HWY_NOINLINE void RunRows(const Block& b, const std::uint8_t* rows, std::int64_t lane,
                          std::int64_t lane_stride, std::int32_t* sums) {
  const Words d;
  const auto at = [&](std::int64_t j) {
    return b.lanes + j / kTileRows * lane_stride + j % kTileRows * 4;
  };
  const std::uint8_t *x = at(lane), *y = at(lane + static_cast<std::int64_t>(hn::Lanes(d)));
  Sums<Product, kRows> here;
  here.Load(d, sums, b.from_zero);
  const std::int64_t words = (b.depth + Product::kPerWord - 1) / Product::kPerWord;
  for (std::int64_t w = 0; w < words; w += 16, rows += kTileBytes) {
    const std::int64_t count = std::min<std::int64_t>(16, words - w);
    for (std::int64_t i = 0; i < count; ++i)
      here.Add(d, b, rows + i * 4, LoadWords(d, x + (w + i) * 64), LoadWords(d, y + (w + i) * 64));
  }
  here.Store(d, sums);
}

template <class Product>
void RunBlock(const Block& b) {
  constexpr int kRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL ? 8 : 4;
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(Words()));
  // Lanes of a second panel that does not exist are computed from the first one and not read.
  const std::int64_t lane_stride = b.lane_count > kTileRows ? b.lane_stride : 0;
  for (std::int64_t j = 0; j < b.lane_count; j += step) {
    for (std::int64_t i = 0; i < b.row_count; i += kRows) {
      const std::uint8_t* rows =
          b.rows + i / kTileRows * b.row_stride + i % kTileRows * kChunkBytes;
      RunRows<Product, kRows>(b, rows, j, lane_stride, b.sums + i * kBlock + j);
    }
  }
}

void RunPairs(const Block& b) { RunBlock<Pairs>(b); }
void RunEntries(const Block& b) { RunBlock<Entries>(b); }

/// Products are +1 where bits agree, -1 where not: depth - 2 disagreements. Packed padding agrees.
void RunSigns(const Block& b) {
  std::int32_t different[kBlock * kBlock];
  Block count = b;
  count.sums = different;
  count.from_zero = true;
  RunBlock<Signs>(count);
  const Words d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto depth = hn::Set(d, static_cast<std::int32_t>(b.depth));
  for (std::int64_t i = 0; i < b.row_count; ++i) {
    for (std::int64_t j = i * kBlock; j < i * kBlock + b.lane_count; j += step) {
      const auto sum = hn::Sub(depth, hn::ShiftLeft<1>(hn::LoadU(d, different + j)));
      hn::StoreU(b.from_zero ? sum : hn::Add(sum, hn::LoadU(d, b.sums + j)), d, b.sums + j);
    }
  }
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunPairs);
HWY_EXPORT(RunSigns);
HWY_EXPORT(RunEntries);

BlockKernel portable_pairs_kernel() {
  return {[](const Block& b) { HWY_DYNAMIC_DISPATCH(RunPairs)(b); }};
}
BlockKernel portable_signs_kernel() {
  return {[](const Block& b) { HWY_DYNAMIC_DISPATCH(RunSigns)(b); }};
}
BlockKernel portable_table_kernel() {
  return {[](const Block& b) { HWY_DYNAMIC_DISPATCH(RunEntries)(b); }};
}

}  // namespace numemu::unit
#endif  // HWY_ONCE

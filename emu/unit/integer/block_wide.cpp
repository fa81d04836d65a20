// Registers of 64 bits that saturate step by step; per Highway target.
#include "emu/unit/integer/block_wide.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/block_wide.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Wide = hn::CappedTag<std::int64_t, 8>;
using WideVector = hn::Vec<Wide>;
using Narrow = hn::Rebind<std::int32_t, Wide>;

struct Multiply {
  WideVector row;
  HWY_INLINE Multiply(const Block&, std::int32_t word) : row(hn::Set(Wide(), word)) {}
  HWY_INLINE WideVector operator()(const std::int32_t* lanes) const {
    const WideVector x = hn::PromoteTo(Wide(), hn::LoadU(Narrow(), lanes));
#if HWY_TARGET == HWY_SCALAR
    return hn::Mul(row, x);
#else
    const hn::Repartition<std::int32_t, Wide> halves;
    return hn::MulEven(hn::BitCast(halves, row), hn::BitCast(halves, x));
#endif
  }
};

struct LookUp {
  const std::int32_t* entries;
  HWY_INLINE LookUp(const Block& b, std::int32_t word) : entries(b.table + word) {}
  HWY_INLINE WideVector operator()(const std::int32_t* lanes) const {
    return hn::PromoteTo(Wide(), hn::GatherIndex(Narrow(), entries, hn::LoadU(Narrow(), lanes)));
  }
};

/// One row by 4 vectors of lanes, enough to hide the latency of a saturation.
template <class Product>
HWY_NOINLINE void RunRow(const WideBlock& w, const std::uint8_t* words, std::int64_t at,
                         const std::int32_t* const lanes[4]) {
  const Wide d;
  const auto size = hn::Lanes(d);
  std::int64_t *registers = w.state->registers + at, *steps = w.state->step + at;
  auto r0 = hn::LoadU(d, registers), r1 = hn::LoadU(d, registers + size);
  auto r2 = hn::LoadU(d, registers + 2 * size), r3 = hn::LoadU(d, registers + 3 * size);
  auto s0 = hn::LoadU(d, steps), s1 = hn::LoadU(d, steps + size);
  auto s2 = hn::LoadU(d, steps + 2 * size), s3 = hn::LoadU(d, steps + 3 * size);
  const auto low = hn::Set(d, w.low), high = hn::Set(d, w.high);
  const auto saturate = [&](WideVector& r, WideVector& s) HWY_ATTR {
    r = hn::Min(hn::Max(hn::Add(r, s), low), high);
    s = hn::Zero(d);
  };
  const std::int64_t depth = w.block.depth;
  std::int64_t done = w.done;
  for (std::int64_t k = 0; k < depth;) {
    const std::int64_t end = std::min(depth, k + (w.step_size - done));
    done += end - k;
    for (; k < end; ++k) {
      std::int32_t word;
      std::memcpy(&word, words + k / 16 * kTileBytes + k % 16 * 4, sizeof word);
      const Product product(w.block, word);
      s0 = hn::Add(s0, product(lanes[0] + k * 16));
      s1 = hn::Add(s1, product(lanes[1] + k * 16));
      s2 = hn::Add(s2, product(lanes[2] + k * 16));
      s3 = hn::Add(s3, product(lanes[3] + k * 16));
    }
    if (done < w.step_size && !(w.last && k == depth)) break;
    done = 0;
    saturate(r0, s0);
    saturate(r1, s1);
    saturate(r2, s2);
    saturate(r3, s3);
  }
  hn::StoreU(r0, d, registers);
  hn::StoreU(r1, d, registers + size);
  hn::StoreU(r2, d, registers + 2 * size);
  hn::StoreU(r3, d, registers + 3 * size);
  hn::StoreU(s0, d, steps);
  hn::StoreU(s1, d, steps + size);
  hn::StoreU(s2, d, steps + 2 * size);
  hn::StoreU(s3, d, steps + 3 * size);
}

template <class Product>
void RunWideBlock(const WideBlock& w) {
  const Block& b = w.block;
  const auto size = static_cast<std::int64_t>(hn::Lanes(Wide()));
  // Lanes of a second panel that does not exist are computed from the first one and not read.
  const std::int64_t lane_stride = b.lane_count > kTileRows ? b.lane_stride : 0;
  for (std::int64_t i = 0; i < b.row_count; ++i) {
    const std::uint8_t* words = b.rows + i / kTileRows * b.row_stride + i % kTileRows * kChunkBytes;
    for (std::int64_t j = 0; j < b.lane_count; j += 4 * size) {
      const std::int32_t* lanes[4];
      for (std::int64_t v = 0; v < 4; ++v) {
        const std::int64_t lane = j + v * size;
        lanes[v] = reinterpret_cast<const std::int32_t*>(b.lanes + lane / kTileRows * lane_stride +
                                                         lane % kTileRows * 4);
      }
      RunRow<Product>(w, words, i * kBlock + j, lanes);
    }
  }
}

void RunWide(const WideBlock& w) {
  WideState& state = *w.state;
  if (w.first) {
    std::fill_n(state.step, kBlock * kBlock, std::int64_t{0});
    std::copy_n(w.block.sums, kBlock * kBlock, state.registers);
  }
  w.block.table == nullptr ? RunWideBlock<Multiply>(w) : RunWideBlock<LookUp>(w);
  if (!w.last) return;
  for (std::int64_t i = 0; i < kBlock * kBlock; ++i)
    w.block.sums[i] = static_cast<std::int32_t>(state.registers[i]);
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunWide);

void run_wide(const WideBlock& w) { HWY_DYNAMIC_DISPATCH(RunWide)(w); }

}  // namespace numemu::unit
#endif  // HWY_ONCE

// C plus sums, wrapped or clamped, row by row; per Highway target.
#include "emu/unit/integer/finish.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/finish.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Lanes32 = hn::CappedTag<std::int32_t, kTileRows>;
using Vector32 = hn::Vec<Lanes32>;

/// The low `bits` bits as a number.
HWY_INLINE Vector32 SignExtend(Vector32 x, int unused) {
  return hn::ShiftRightSame(hn::ShiftLeftSame(x, unused), unused);
}

/// x + y clamped to 32 bits: both operands have the sign that an overflowed sum lacks.
HWY_INLINE Vector32 AddSaturated(Lanes32 d, Vector32 x, Vector32 y) {
  const auto sum = hn::Add(x, y);
  const auto overflow = hn::And(hn::Xor(sum, x), hn::Xor(sum, y));
  const auto end = hn::Xor(hn::BroadcastSignBit(x), hn::Set(d, 0x7fffffff));
  return hn::IfThenElse(hn::MaskFromVec(hn::BroadcastSignBit(overflow)), end, sum);
}

/// `rows` rows of kBlock outputs; c may be null, and c and d the same.
void FinishRows(const RegisterArrays& r, std::int64_t rows, const std::int32_t* sums,
                const std::int32_t* c, std::int32_t* d, std::int64_t stride) {
  const Lanes32 tag;
  const int unused = 32 - r.bits;
  const auto high = hn::Set(tag, static_cast<std::int32_t>((std::int64_t{1} << (r.bits - 1)) - 1));
  const auto low = hn::Not(high);
  const auto step = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t i = 0; i < rows; ++i, sums += kBlock, d += stride) {
    for (std::int64_t j = 0; j < kBlock; j += step) {
      auto x = hn::LoadU(tag, sums + j);
      if (c != nullptr) {
        const auto start = SignExtend(hn::LoadU(tag, c + i * stride + j), unused);
        x = r.saturates ? AddSaturated(tag, x, start) : hn::Add(x, start);
      }
      x = r.saturates ? hn::Min(hn::Max(x, low), high) : SignExtend(x, unused);
      hn::StoreU(x, tag, d + j);
    }
  }
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(FinishRows);

int bytes_of(const RegisterArrays& r) { return r.bits <= 8 ? 1 : r.bits <= 16 ? 2 : 4; }

namespace {

template <class T>
void load_codes(const void* from, std::int64_t first, std::int64_t count, std::int32_t* to) {
  const T* codes = static_cast<const T*>(from) + first;
  for (std::int64_t j = 0; j < count; ++j) to[j] = codes[j];
}

/// Codes as they are; their sign is extended later.
void load_row(const RegisterArrays& r, std::int64_t first, std::int64_t count, std::int32_t* to) {
  switch (bytes_of(r)) {
    case 1:
      return load_codes<std::uint8_t>(r.c, first, count, to);
    case 2:
      return load_codes<std::uint16_t>(r.c, first, count, to);
    default:
      return load_codes<std::int32_t>(r.c, first, count, to);
  }
}

template <class T>
void store_codes(const std::int32_t* from, std::int64_t count, std::int32_t mask, void* to,
                 std::int64_t first) {
  T* codes = static_cast<T*>(to) + first;
  for (std::int64_t j = 0; j < count; ++j) codes[j] = static_cast<T>(from[j] & mask);
}

void store_row(const RegisterArrays& r, const std::int32_t* from, std::int64_t first,
               std::int64_t count) {
  const int bytes = bytes_of(r);
  const std::int32_t mask = bytes == 4 ? -1 : (1 << r.bits) - 1;
  if (bytes == 1) return store_codes<std::uint8_t>(from, count, mask, r.d, first);
  if (bytes == 2) return store_codes<std::uint16_t>(from, count, mask, r.d, first);
  store_codes<std::int32_t>(from, count, mask, r.d, first);
}

std::int32_t sign_extended(std::int32_t code, int bits) {
  const int unused = 32 - bits;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(code) << unused) >> unused;
}

}  // namespace

void load_c(const RegisterArrays& r, const OutputBlock& b, std::int32_t* sums) {
  std::fill_n(sums, kBlock * kBlock, 0);
  if (r.c == nullptr) return;
  for (std::int64_t i = 0; i < b.rows; ++i) {
    std::int32_t* row = sums + i * kBlock;
    load_row(r, (b.row + i) * r.n + b.lane, b.lanes, row);
    for (std::int64_t j = 0; j < b.lanes; ++j) row[j] = sign_extended(row[j], r.bits);
  }
}

void store_sums(const RegisterArrays& r, const OutputBlock& b, const std::int32_t* sums) {
  const auto at = [&](std::int64_t i) { return (b.row + i) * r.n + b.lane; };
  if (b.lanes == kBlock && bytes_of(r) == 4) {
    const auto* c = static_cast<const std::int32_t*>(r.c);
    HWY_DYNAMIC_DISPATCH(FinishRows)
    (r, b.rows, sums, c == nullptr ? nullptr : c + at(0), static_cast<std::int32_t*>(r.d) + at(0),
     r.n);
    return;
  }
  std::int32_t block[kBlock * kBlock] = {};
  for (std::int64_t i = 0; i < b.rows && r.c != nullptr; ++i)
    load_row(r, at(i), b.lanes, block + i * kBlock);
  HWY_DYNAMIC_DISPATCH(FinishRows)
  (r, b.rows, sums, r.c == nullptr ? nullptr : block, block, kBlock);
  for (std::int64_t i = 0; i < b.rows; ++i) store_row(r, block + i * kBlock, at(i), b.lanes);
}

std::int64_t largest_c(const RegisterArrays& r, std::int64_t m) {
  if (r.c == nullptr) return 0;
  std::int32_t part[kBlock], low = 0, high = 0;
  for (std::int64_t first = 0; first < m * r.n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, m * r.n - first);
    load_row(r, first, count, part);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int32_t x = sign_extended(part[j], r.bits);
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  return std::max(-std::int64_t{low}, std::int64_t{high});
}

}  // namespace numemu::unit
#endif  // HWY_ONCE

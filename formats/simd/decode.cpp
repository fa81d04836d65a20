// The table lookups, one loop per instruction set, dispatched at run time.
#include "formats/simd/decode.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/decode.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

std::uint8_t decode(const float* table, const std::uint8_t* codes, std::int64_t n, float* y,
                    bool stream) {
  const hn::Rebind<std::uint8_t, Words> bytes;
  const hn::RebindToSigned<Words> indices;
  WordVector largest = hn::Zero(kWords);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const WordVector code = hn::PromoteTo(kWords, hn::LoadU(bytes, codes + i));
    largest = hn::Max(largest, code);
    const FloatVector value = hn::GatherIndex(kFloats, table, hn::BitCast(indices, code));
    if (stream) {
      hn::Stream(value, kFloats, y + i);
    } else {
      hn::StoreU(value, kFloats, y + i);
    }
  }
  auto result = static_cast<std::uint8_t>(hn::GetLane(hn::MaxOfLanes(kWords, largest)));
  for (; i < n; ++i) {
    y[i] = table[codes[i]];
    result = std::max(result, codes[i]);
  }
  return result;
}

// Sums of masks leave their eight-bit lanes before those are full.
std::int64_t count(const std::uint8_t* codes, std::int64_t n, std::uint8_t mask, std::uint8_t low,
                   std::uint8_t high, std::uint8_t flag, std::uint8_t* flags) {
  const hn::ScalableTag<std::uint8_t> bytes;
  const auto width = static_cast<std::int64_t>(hn::Lanes(bytes));
  const auto used = hn::Set(bytes, mask), from = hn::Set(bytes, low);
  const auto span = hn::Set(bytes, static_cast<std::uint8_t>(high - low));
  constexpr int kRounds = 255;
  std::int64_t total = 0, i = 0;
  while (i + width <= n) {
    auto found = hn::Zero(bytes);
    for (int round = 0; round < kRounds && i + width <= n; ++round, i += width) {
      const auto above = hn::Sub(hn::And(hn::LoadU(bytes, codes + i), used), from);
      const auto inside = hn::VecFromMask(bytes, hn::Eq(hn::Min(above, span), above));
      found = hn::Sub(found, inside);
      if (flags != nullptr) hn::StoreU(hn::And(inside, hn::Set(bytes, flag)), bytes, flags + i);
    }
    const hn::Repartition<std::uint64_t, decltype(bytes)> sums;
    total += static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(sums, hn::SumsOf8(found))));
  }
  for (; i < n; ++i) {
    const int code = codes[i] & mask;
    const bool inside = code >= low && code <= high;
    total += inside;
    if (flags != nullptr) flags[i] = inside ? flag : std::uint8_t{0};
  }
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(decode);
HWY_EXPORT(count);

std::uint8_t decode_bytes(const float* table, const std::uint8_t* codes, std::int64_t n, float* y,
                          bool stream) {
  return HWY_DYNAMIC_DISPATCH(decode)(table, codes, n, y, stream);
}

std::int64_t count_between(const std::uint8_t* codes, std::int64_t n, std::uint8_t mask,
                           std::uint8_t low, std::uint8_t high, std::uint8_t flag,
                           std::uint8_t* flags) {
  return HWY_DYNAMIC_DISPATCH(count)(codes, n, mask, low, high, flag, flags);
}

}  // namespace numemu::simd
#endif

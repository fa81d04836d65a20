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

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(decode);

std::uint8_t decode_bytes(const float* table, const std::uint8_t* codes, std::int64_t n, float* y,
                          bool stream) {
  return HWY_DYNAMIC_DISPATCH(decode)(table, codes, n, y, stream);
}

}  // namespace numemu::simd
#endif

// Codes to two's complement elements of the width the kernels take; per Highway target.
#include "emu/unit/integer/convert.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/convert.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class To, class From>
void Convert(const From* codes, std::int64_t count, const ElementRule& rule, To* to) {
  const hn::ScalableTag<To> d;
  const hn::Rebind<From, decltype(d)> d_from;
  const auto mask = hn::Set(d, static_cast<To>(rule.mask));
  const auto flip = hn::Set(d, static_cast<To>(rule.flip));
  const auto subtract = hn::Set(d, static_cast<To>(rule.subtract));
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + step <= count; i += step) {
    auto x = hn::Zero(d);
    if constexpr (sizeof(To) == sizeof(From)) {
      x = hn::LoadU(d, codes + i);
    } else {
      x = hn::PromoteTo(d, hn::LoadU(d_from, codes + i));
    }
    x = hn::Xor(hn::And(x, mask), flip);
    if constexpr (sizeof(To) == 4) x = hn::ShiftLeftSame(x, rule.shift);
    hn::StoreU(hn::Sub(x, subtract), d, to + i);
  }
  for (; i < count; ++i) {
    const std::uint32_t x = (codes[i] & rule.mask) ^ rule.flip;
    to[i] = static_cast<To>((x << rule.shift) - rule.subtract);
  }
}

template <class From>
void ConvertTo(const From* codes, std::int64_t count, const ElementRule& rule, int size,
               std::uint8_t* to) {
  if (size == 4) {
    Convert(codes, count, rule, reinterpret_cast<std::uint32_t*>(to));
  } else if (size == 2) {
    Convert(codes, count, rule, reinterpret_cast<std::uint16_t*>(to));
  } else if constexpr (sizeof(From) == 1) {
    Convert(codes, count, rule, to);
  }
}

void ConvertBytes(const std::uint8_t* codes, std::int64_t count, const ElementRule& rule, int size,
                  std::uint8_t* to) {
  ConvertTo(codes, count, rule, size, to);
}
void ConvertHalves(const std::uint16_t* codes, std::int64_t count, const ElementRule& rule,
                   int size, std::uint8_t* to) {
  ConvertTo(codes, count, rule, size, to);
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(ConvertBytes);
HWY_EXPORT(ConvertHalves);

void convert_codes(const std::uint8_t* codes, std::int64_t count, const ElementRule& rule, int size,
                   std::uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(ConvertBytes)(codes, count, rule, size, to);
}
void convert_codes(const std::uint16_t* codes, std::int64_t count, const ElementRule& rule,
                   int size, std::uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(ConvertHalves)(codes, count, rule, size, to);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE

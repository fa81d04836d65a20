// Comparing codes with the zeros, vector by vector, per Highway target.
#include "emu/unit/sparse/nonzero_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/codebooks/codebook.hpp"
#include "formats/error.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/sparse/nonzero_bits.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The bits of 64 elements.
template <class D, class Lane = hn::TFromD<D>>
HWY_INLINE std::uint64_t WordOf(D d, const ZeroCodes& z, const Lane* codes) {
  const auto set = [d](std::uint32_t bits) { return hn::Set(d, static_cast<Lane>(bits)); };
  const auto lanes = static_cast<int>(hn::Lanes(d));
  std::uint64_t word = 0;
  for (int i = 0; i < 64; i += lanes) {
    const auto code = hn::LoadU(d, codes + i);
    const auto place = hn::Sub(hn::And(code, set(z.magnitude)), set(z.first));
    const auto outside = hn::Not(hn::Lt(place, set(z.count)));
    const auto never = hn::Eq(hn::And(code, set(z.code)), set(z.never));
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Or(outside, never), bytes);
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes, sizeof bits);
    word |= bits << i;
  }
  return word;
}

template <class Lane>
HWY_INLINE void Words(const ZeroCodes& z, const void* codes, std::int64_t count,
                      std::uint64_t* words) {
  const hn::CappedTag<Lane, 64> d;
  // Containers are read as bits; vector loads may alias any type.
  const auto* code = static_cast<const Lane*>(codes);
  const std::int64_t whole = count / 64;
  for (std::int64_t w = 0; w < whole; ++w) words[w] = WordOf(d, z, code + w * 64);
  std::fill(words + whole, words + bit_words(count), 0);
  if (const std::int64_t rest = count % 64; rest > 0) {
    Lane last[64] = {};
    std::memcpy(last, code + whole * 64, static_cast<std::size_t>(rest) * sizeof(Lane));
    words[whole] = WordOf(d, z, last) & ((std::uint64_t{1} << rest) - 1);
  }
}

void Bytes(const ZeroCodes& z, const void* codes, std::int64_t count, std::uint64_t* words) {
  Words<std::uint8_t>(z, codes, count, words);
}
void Halves(const ZeroCodes& z, const void* codes, std::int64_t count, std::uint64_t* words) {
  Words<std::uint16_t>(z, codes, count, words);
}
void Floats(const ZeroCodes& z, const void* codes, std::int64_t count, std::uint64_t* words) {
  Words<std::uint32_t>(z, codes, count, words);
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::unit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(Bytes);
HWY_EXPORT(Halves);
HWY_EXPORT(Floats);

template <>
void nonzero_bits(const ZeroCodes& z, const std::uint8_t* codes, std::int64_t count,
                  std::uint64_t* words) {
  HWY_DYNAMIC_DISPATCH(Bytes)(z, codes, count, words);
}
template <>
void nonzero_bits(const ZeroCodes& z, const std::uint16_t* codes, std::int64_t count,
                  std::uint64_t* words) {
  HWY_DYNAMIC_DISPATCH(Halves)(z, codes, count, words);
}
template <>
void nonzero_bits(const ZeroCodes& z, const float* codes, std::int64_t count,
                  std::uint64_t* words) {
  HWY_DYNAMIC_DISPATCH(Floats)(z, codes, count, words);
}

namespace {

/// Index of the entry 0 (entries ascend).
std::uint32_t zero_entry(const Codebook& book) {
  std::uint32_t code = 0;
  while (book.value(code).kind != Class::zero) ++code;
  return code;
}

bool nan_at_negative_zero(const Format& format) {
  switch (format.specials) {
    case Specials::fnuz:
    case Specials::p3109_extended:
    case Specials::p3109_finite:
      return format.kind == Kind::floating && format.is_signed;
    default:
      return false;
  }
}

}  // namespace

ZeroCodes zero_codes(const Format& format) {
  if (format.bits + format.container_shift > 32)
    throw Error(fmt::format("format {}: expected at most 32 bits", format.name));
  const auto sign = static_cast<std::uint32_t>(format.sign_bit());
  ZeroCodes z;
  z.code = z.magnitude = static_cast<std::uint32_t>(format.code_mask());
  switch (format.kind) {
    case Kind::integer:
      z.count = 1;
      break;
    case Kind::sign:
      break;
    case Kind::codebook:
      if (!format.has_zero()) break;
      z.first = zero_entry(*format.codebook);
      z.count = 1;
      break;
    case Kind::floating:
      if (!format.has_zero()) break;
      z.count = format.field_zero == FieldZero::flush ? 1u << format.mantissa_bits : 1u;
      z.magnitude &= ~sign;
      break;
  }
  // Outside the NaN slot: the code after the zeros, which is none. Beyond the container's largest
  // code that is code 0, of a codebook whose last entry is zero.
  z.never = nan_at_negative_zero(format) ? sign : z.first + z.count;
  for (std::uint32_t* bits : {&z.magnitude, &z.first, &z.count, &z.code, &z.never})
    *bits <<= format.container_shift;
  return z;
}

std::optional<std::uint32_t> zero_container(const Format& format) {
  const ZeroCodes z = zero_codes(format);
  if (z.count == 0) return std::nullopt;
  return z.first;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE

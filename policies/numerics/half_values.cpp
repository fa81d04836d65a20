#include "policies/numerics/half_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "emu/net/ops/elementwise.hpp"
#include "formats/interned.hpp"
#include "policies/numerics/quantized_tensor.hpp"

namespace numemu::policies {

namespace {

/// A magnitude code m below `special` means (m << shift as a float32) * factor; multiplying by
/// a power of two also gives subnormal values their exponent.
struct Shift {
  bool serves = false;  ///< proven code by code against the table
  int shift = 0, sign_at = 15;
  float factor = 1;
  std::uint32_t special = 0;

  float value(std::uint32_t code) const {
    const std::uint32_t magnitude = code & ((1u << sign_at) - 1);
    const float unsigned_value = std::bit_cast<float>(magnitude << shift) * factor;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(unsigned_value) |
                                (code >> sign_at << 31));
  }
};

Shift shift_of(const Format& f, const float* table) {
  Shift s;
  if (!f.is_signed || f.mantissa_bits > 22 || f.bias < 0 || f.bias > 127) return s;
  s.shift = 23 - f.mantissa_bits;
  s.sign_at = f.bits - 1;
  s.factor = std::ldexp(1.0f, 127 - f.bias);
  const std::uint32_t magnitudes = 1u << s.sign_at;
  while (s.special < magnitudes && std::isfinite(table[s.special])) ++s.special;
  for (std::uint32_t code = 0; code < 2 * magnitudes; ++code) {
    if ((code & (magnitudes - 1)) >= s.special) continue;
    if (std::bit_cast<std::uint32_t>(s.value(code)) != std::bit_cast<std::uint32_t>(table[code]))
      return s;
  }
  s.serves = true;
  return s;
}

const Shift& find_shift(const Format& format, const float* table) {
  return Interned::find<Shift>(
      format.key(), [&] { return std::make_unique<const Shift>(shift_of(format, table)); });
}

}  // namespace

void decode_halves(const Format& format, const std::uint16_t* codes, std::int64_t n, float* y) {
  constexpr std::int64_t kPiece = 4096;
  const float* const table = value_table(format);
  const Shift& found = find_shift(format, table);
  net::for_each_row((n + kPiece - 1) / kPiece, kPiece, [&](std::int64_t piece) {
    const Shift shift = found;  // its own, which y cannot be
    const std::int64_t begin = piece * kPiece, end = std::min(n, begin + kPiece);
    std::uint32_t largest = shift.special;
    if (shift.serves) {
      const std::uint32_t mask = (1u << shift.sign_at) - 1;
      largest = 0;
#pragma omp simd reduction(max : largest)
      for (std::int64_t i = begin; i < end; ++i) {
        y[i] = shift.value(codes[i]);
        largest = std::max(largest, codes[i] & mask);
      }
    }
    if (largest < shift.special) return;
    for (std::int64_t i = begin; i < end; ++i) y[i] = table[codes[i]];
  });
}

}  // namespace numemu::policies

// Arrays of float32 to codes: one encode() per element, or the fast path where it applies.
#include "formats/quantize.hpp"

#include <algorithm>

#include "formats/codec.hpp"
#include "formats/quantize_fast.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

// Symmetric use leaves out the most negative code: one more overflow, to the code above it.
void leave_out_most_negative(const Format& f, Encoded& result) {
  if (f.kind != Kind::integer || !f.is_signed || result.code != f.largest_code(true)) return;
  result.code += 1;
  result.flags |= kOverflow | kInexact;
}

template <class Code>
FlagCounts convert(const Conversion& c, const float* x, std::int64_t n, float scale, Code* codes,
                   std::int64_t first) {
  FlagCounts counts{.elements = n};
  const Value divisor = value_of(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const Value quotient = exact_quotient(value_of(x[i]), divisor);
    const std::uint32_t random =
        c.rounding.stochastic()
            ? c.random.bits(static_cast<std::uint64_t>(first + i), c.rounding.random_bits)
            : 0;
    Encoded result = encode(*c.format, quotient, c.rounding, c.overflow, random);
    if (c.symmetric) leave_out_most_negative(*c.format, result);
    codes[i] = static_cast<Code>(result.code);
    counts.inexact += (result.flags & kInexact) != 0;
    counts.underflow += (result.flags & kUnderflow) != 0;
    counts.overflow += (result.flags & kOverflow) != 0;
    counts.invalid += (result.flags & kInvalid) != 0;
  }
  return counts;
}

}  // namespace

FlagCounts& FlagCounts::operator+=(const FlagCounts& other) {
  elements += other.elements;
  inexact += other.inexact;
  underflow += other.underflow;
  overflow += other.overflow;
  invalid += other.invalid;
  return *this;
}

FlagCounts quantize_codes_reference(const Conversion& c, const float* x, std::int64_t n,
                                    float scale, std::uint8_t* codes, std::int64_t first) {
  return convert(c, x, n, scale, codes, first);
}

FlagCounts quantize_codes(const Conversion& c, const float* x, std::int64_t n, float scale,
                          std::uint16_t* codes, std::int64_t first) {
  return convert(c, x, n, scale, codes, first);
}

FlagCounts quantize_codes(const Conversion& c, const float* x, std::int64_t n, float scale,
                          std::uint8_t* codes, std::int64_t first) {
  if (!has_fast_path(c)) return quantize_codes_reference(c, x, n, scale, codes, first);
  // A chunk stays in the first-level cache between the test of its elements and their conversion,
  // and one NaN or infinity sends only its own chunk to the reference.
  constexpr std::int64_t kChunk = 2048;
  FlagCounts counts;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t size = std::min(kChunk, n - begin);
    counts +=
        takes_fast_path(c, x + begin, size)
            ? quantize_fast(c, x + begin, size, scale, codes + begin)
            : quantize_codes_reference(c, x + begin, size, scale, codes + begin, first + begin);
  }
  return counts;
}

}  // namespace numemu

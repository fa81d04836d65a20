// Arrays of float32 to codes: one encode() per element, or the fast path where it applies.
#include "formats/quantize.hpp"

#include <algorithm>

#include "formats/codec.hpp"
#include "formats/quantize_fast.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

template <class Code>
FlagCounts convert(const Conversion& c, const float* x, std::int64_t n, float scale, Code* codes,
                   std::int64_t first) {
  FlagCounts counts{.elements = n};
  const Value divisor = value_of(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const Value quotient = exact_quotient(value_of(x[i]), divisor);
    const Encoded result = encode_element(c, quotient, first + i);
    codes[i] = static_cast<Code>(result.code);
    counts.add(result.flags);
  }
  return counts;
}

}  // namespace

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

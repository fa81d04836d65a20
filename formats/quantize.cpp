// Arrays of float32 to codes or values: one encode() per element, or the fast path where it
// applies; tables of the values of narrow formats.
#include "formats/quantize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "formats/codec.hpp"
#include "formats/element_table.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/interned.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/quantize_fast.hpp"
#include "formats/simd/quantize_odd.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

struct DecodeTable {
  std::array<float, 256> values;
};

std::unique_ptr<const DecodeTable> make_table(const Format& f) {
  if (f.bits > 8)
    throw Error("format '" + f.name + "' has more than 8 bits, expected at most 8 for a table");
  auto table = std::make_unique<DecodeTable>();
  for (std::uint64_t code = 0; code < table->values.size(); ++code) {
    const Value v = decode(f, code & f.code_mask());
    float& entry = table->values[code];
    if (v.kind == Class::nan) {
      entry = std::bit_cast<float>(std::uint32_t{0x7fc00000});
      continue;
    }
    // Through the bits of float32's own codec, so that no host flag or conversion takes part.
    static const Format& float32 = find_format("float32");
    const Encoded result = encode(float32, v, {}, Overflow::propagate);
    if ((result.flags & kInexact) != 0)
      throw Error("format '" + f.name + "' has values that are not exact in float32");
    entry = std::bit_cast<float>(static_cast<std::uint32_t>(result.code));
  }
  return table;
}

}  // namespace

const float* decode_table(const Format& f) {
  return Interned::find<DecodeTable>(f.key(), [&] { return make_table(f); }).values.data();
}

namespace {

// A chunk and its random words stay in the first-level cache from the test of its elements to their
// conversion, and one NaN or infinity sends only its own chunk to the reference.
constexpr std::int64_t kQuantizedChunk = OddQuotients::kMost;

float to_float32(const Format& f, std::uint64_t code) {
  const Value value = decode(f, code);
  if (value.kind == Class::nan) return std::bit_cast<float>(std::uint32_t{0x7fc00000});
  static const Format& float32 = find_format("float32");
  const Encoded result = encode(float32, value, {}, Overflow::propagate);
  if ((result.flags & kInexact) != 0)
    throw Error("format '" + f.name + "' has values that are not exact in float32");
  return std::bit_cast<float>(static_cast<std::uint32_t>(result.code));
}

// In one rounding direction all over: compilers may move operations across a guard.
[[gnu::noinline]] void rescale(float* y, std::int64_t n, float scale) {
  if (scale == 1) return;
  const FloatGuard guard;
  multiply_in_place(y, n, scale);
}

template <class Out>
FlagCounts reference(const Conversion& c, const float* x, std::int64_t n, float scale, Out* out,
                     std::int64_t first) {
  FlagCounts counts{.elements = n};
  const Value divisor = value_of(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const Value quotient = exact_quotient(value_of(x[i]), divisor);
    const Encoded result = encode_element(c, quotient, first + i);
    if constexpr (std::is_same_v<Out, float>) {
      out[i] = to_float32(*c.format, result.code);
    } else {
      out[i] = static_cast<Out>(result.code);
    }
    counts.add(result.flags);
  }
  if constexpr (std::is_same_v<Out, float>) rescale(out, n, scale);
  return counts;
}

void fill_words(const Conversion& c, std::int64_t first, std::int64_t n, std::uint32_t* words) {
  const int bits = c.rounding.random_bits;
  if (c.random_words == nullptr)
    return simd::fill_random(c.random, bits, static_cast<std::uint64_t>(first), n, words);
  const std::uint32_t mask = ~std::uint32_t{0} >> (32 - bits);
  for (std::int64_t i = 0; i < n; ++i) words[i] = c.random_words[first + i] & mask;
}

template <class Out>
FlagCounts convert_chunk(const QuantizePlan& plan, const float* x, std::int64_t n,
                         const std::uint32_t* words, Out* out) {
  const FloatGuard guard(HostRounding::toward_zero);
  return quantize_vectors(plan, x, n, words, out);
}

// A sign is one comparison: no rounding, and exact where the magnitude is the scale. Nothing for
// NaN, infinities, or a scale that is not positive and finite.
template <class Out>
std::optional<FlagCounts> convert_signs(const Conversion& c, const float* x, std::int64_t n,
                                        float scale, Out* out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!(scale > 0) || scale == kInfinity) return std::nullopt;
  if (!takes_fast_path(c, x, n)) return std::nullopt;
  const Out plus = std::is_same_v<Out, float> ? static_cast<Out>(scale) : Out{0};
  const Out minus = std::is_same_v<Out, float> ? static_cast<Out>(-scale) : Out{1};
  std::int64_t inexact = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = x[i] < 0 ? minus : plus;
    inexact += x[i] != scale && x[i] != -scale ? 1 : 0;
  }
  return FlagCounts{.elements = n, .inexact = inexact};
}

// A chunk by the table of the conversion; what it leaves open is the reference's. out may be x.
template <class Out>
FlagCounts convert_by_table(const ElementTable& table, const Conversion& c, const float* x,
                            std::int64_t n, float scale, Out* out, std::int64_t first) {
  std::uint8_t flags[kQuantizedChunk], open[kQuantizedChunk];
  float kept[kQuantizedChunk];
  std::copy_n(x, n, kept);
  ElementArrays to{.flags = flags, .open = open};
  if constexpr (std::is_same_v<Out, float>) {
    to.values = out;
  } else if constexpr (std::is_same_v<Out, std::uint8_t>) {
    to.codes = out;
  }
  table.convert(kept, n, scale, to);
  FlagCounts counts;
  for (std::int64_t i = 0; i < n; ++i) {
    if (open[i] != 0) {
      counts += reference(c, kept + i, 1, scale, out + i, first + i);
    } else {
      counts.elements += 1;
      counts.add(flags[i]);
    }
  }
  return counts;
}

template <class Out>
FlagCounts convert(const Conversion& c, const float* x, std::int64_t n, float scale, Out* out,
                   std::int64_t first) {
  constexpr bool kValues = std::is_same_v<Out, float>;
  if (c.format->kind == Kind::sign) {
    const FloatGuard guard;
    if (const auto counts = convert_signs(c, x, n, scale, out)) return *counts;
    return reference(c, x, n, scale, out, first);
  }
  const FloatGuard guard;
  const bool codebook = c.format->kind == Kind::codebook;
  const ElementTable* const table =
      codebook && scale > 0 && std::isnormal(scale) ? ElementTable::find(c) : nullptr;
  const bool in_vectors = !codebook && (!kValues || exact_in_float32(*c.format));
  const std::optional<QuantizePlan> plan =
      in_vectors ? plan_quantize(c, scale) : std::optional<QuantizePlan>();
  if (!plan && table == nullptr) return reference(c, x, n, scale, out, first);
  const std::optional<OddQuotients> odd =
      plan ? OddQuotients::make(c, scale) : std::optional<OddQuotients>();
  alignas(64) std::uint32_t words[kQuantizedChunk];
  FlagCounts counts;
  for (std::int64_t begin = 0; begin < n; begin += kQuantizedChunk) {
    const std::int64_t size = std::min(kQuantizedChunk, n - begin);
    if (!takes_fast_path(c, x + begin, size)) {
      counts += reference(c, x + begin, size, scale, out + begin, first + begin);
      continue;
    }
    if (table != nullptr) {
      counts += convert_by_table(*table, c, x + begin, size, scale, out + begin, first + begin);
      continue;
    }
    if (c.rounding.stochastic()) fill_words(c, first + begin, size, words);
    std::optional<FlagCounts> chunk_counts;
    if (odd) {
      simd::Arrays arrays{.x = x + begin, .n = size, .random = words};
      arrays.set_output(out + begin);
      chunk_counts = odd->convert(arrays);
    }
    counts +=
        chunk_counts ? *chunk_counts : convert_chunk(*plan, x + begin, size, words, out + begin);
    if constexpr (kValues) rescale(out + begin, size, scale);
  }
  return counts;
}

}  // namespace

FlagCounts quantize_codes_reference(const Conversion& c, const float* x, std::int64_t n,
                                    float scale, std::uint8_t* codes, std::int64_t first) {
  return reference(c, x, n, scale, codes, first);
}
FlagCounts quantize_codes_reference(const Conversion& c, const float* x, std::int64_t n,
                                    float scale, std::uint16_t* codes, std::int64_t first) {
  return reference(c, x, n, scale, codes, first);
}
FlagCounts quantize_values_reference(const Conversion& c, const float* x, std::int64_t n,
                                     float scale, float* y, std::int64_t first) {
  return reference(c, x, n, scale, y, first);
}

FlagCounts quantize_codes(const Conversion& c, const float* x, std::int64_t n, float scale,
                          std::uint8_t* codes, std::int64_t first) {
  return convert(c, x, n, scale, codes, first);
}
FlagCounts quantize_codes(const Conversion& c, const float* x, std::int64_t n, float scale,
                          std::uint16_t* codes, std::int64_t first) {
  return convert(c, x, n, scale, codes, first);
}
FlagCounts quantize_values(const Conversion& c, const float* x, std::int64_t n, float scale,
                           float* y, std::int64_t first) {
  return convert(c, x, n, scale, y, first);
}

}  // namespace numemu

// Splits arrays into chunks, generates their random bits and calls the vector loops.
#include "formats/float32_converter.hpp"

#include <algorithm>
#include <type_traits>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/simd/convert_loops.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/shared_exponent.hpp"

namespace numemu {
namespace {

// Random words of one chunk stay in the first-level cache with its elements. They fill what
// fill_random() generates at a time, on every instruction set.
constexpr std::int64_t kWordsChunk = 1536;

template <class Out>
void reference(const Conversion& c, const float* x, std::int64_t n, Out* out, std::uint8_t* flags,
               std::int64_t first) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Encoded result = encode_element(c, value_of(x[i]), first + i);
    if constexpr (std::is_same_v<Out, float>) {
      out[i] = nearest_float(decode(*c.format, result.code));
    } else {
      out[i] = static_cast<Out>(result.code << c.format->container_shift);
    }
    if (flags != nullptr) flags[i] = result.flags;
  }
}

// Random words have n bits in use.
std::uint32_t random_mask(int n) { return ~std::uint32_t{0} >> (32 - n); }

}  // namespace

Float32Converter::Float32Converter(const Conversion& c) : conversion_(c) {
  if (auto plan = simd::make_plan(c)) {
    plan_ = std::make_unique<const simd::Plan>(*plan);
  } else if (auto shared = simd::make_shared_exponent_plan(c)) {
    shared_ = std::make_unique<const simd::SharedExponentPlan>(*shared);
  }
}
Float32Converter::~Float32Converter() = default;
Float32Converter::Float32Converter(Float32Converter&&) noexcept = default;
Float32Converter& Float32Converter::operator=(Float32Converter&&) noexcept = default;

template <class Out>
void Float32Converter::run(const float* x, std::int64_t n, Out* out, std::uint8_t* flags,
                           std::int64_t first) const {
  if (!fast()) return reference(conversion_, x, n, out, flags, first);
  const FloatGuard guard(plan_ ? plan_->host : HostRounding::nearest);
  const auto convert = [this](const simd::Arrays& arrays) {
    if (plan_) return simd::convert_vectors(*plan_, arrays);
    return simd::convert_shared_exponent(*shared_, arrays);
  };
  simd::Arrays arrays;
  arrays.x = x;
  arrays.n = n;
  arrays.flags = flags;
  arrays.set_output(out);
  arrays.stream = sizeof(Out) == sizeof(float) && simd::worth_streaming(out, n);
  const bool random = conversion_.rounding.stochastic(), ask = simd::worth_asking(n);
  arrays.ask = ask && plan_ != nullptr;
  if (!random && (!ask || arrays.ask)) return convert(arrays);
  const int random_bits = conversion_.rounding.random_bits;
  const bool bytes = plan_ && random && random_bits <= 8 && conversion_.random_words == nullptr;
  alignas(64) std::uint32_t words[kWordsChunk];
  alignas(64) std::uint8_t random8[kWordsChunk];
  for (std::int64_t begin = 0; begin < n; begin += kWordsChunk) {
    const std::int64_t size = std::min(kWordsChunk, n - begin);
    if (ask && !arrays.ask)
      simd::ask_for(x + begin + size, std::min(kWordsChunk, n - begin - size));
    if (bytes) {
      simd::fill_random_bytes(conversion_.random, static_cast<std::uint64_t>(first + begin), size,
                              random8);
    } else if (random && conversion_.random_words != nullptr) {
      const std::uint32_t mask = random_mask(random_bits);
      for (std::int64_t i = 0; i < size; ++i)
        words[i] = conversion_.random_words[first + begin + i] & mask;
    } else if (random) {
      simd::fill_random(conversion_.random, random_bits, static_cast<std::uint64_t>(first + begin),
                        size, words);
    }
    arrays.x = x + begin;
    arrays.n = size;
    arrays.random = random && !bytes ? words : nullptr;
    arrays.random8 = bytes ? random8 : nullptr;
    arrays.flags = flags == nullptr ? nullptr : flags + begin;
    arrays.set_output(out + begin);
    convert(arrays);
  }
}

void Float32Converter::round(const float* x, std::int64_t n, float* y, std::uint8_t* flags,
                             std::int64_t first) const {
  run(x, n, y, flags, first);
}

void Float32Converter::encode(const float* x, std::int64_t n, std::uint8_t* codes,
                              std::uint8_t* flags, std::int64_t first) const {
  if (conversion_.format->bits > 8)
    throw Error("format '" + conversion_.format->name + "' has more than 8 bits");
  run(x, n, codes, flags, first);
}

void Float32Converter::encode(const float* x, std::int64_t n, std::uint16_t* codes,
                              std::uint8_t* flags, std::int64_t first) const {
  if (conversion_.format->bits <= 8 || conversion_.format->bits > 16)
    throw Error("format '" + conversion_.format->name + "' does not have 9 to 16 bits");
  run(x, n, codes, flags, first);
}

void Float32Converter::encode(const float* x, std::int64_t n, std::uint32_t* codes,
                              std::uint8_t* flags, std::int64_t first) const {
  if (conversion_.format->bits <= 16 || conversion_.format->bits > 32)
    throw Error("format '" + conversion_.format->name + "' does not have 17 to 32 bits");
  run(x, n, codes, flags, first);
}

FlagCounts count_flags(const std::uint8_t* flags, std::int64_t n) {
  std::int64_t counts[5] = {};
  simd::count_flags(flags, n, counts);
  return {n, counts[0], counts[1], counts[2], counts[4]};
}

}  // namespace numemu

// Blocks one at a time: whole arrays under one scale, or codes above a minimum.
#include "formats/scaling/fast_real.hpp"

#include <algorithm>
#include <array>

#include "formats/blocks/block_convert.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/codes_above.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/quantize_fast.hpp"

namespace numemu {
namespace {

constexpr int kMostBits = 8, kMostRandomBits = 24;
constexpr std::int64_t kBatch = 1024;

}  // namespace

FastReal::FastReal(const BlockQuantization& how) : format_(*how.format), element_(how.element) {
  element_.format = format_.element;
  if (format_.element->bits > kMostBits) return;
  const Rounding& r = element_.rounding;
  const bool sr =
      r.stochastic() && r.variant == StochasticVariant::c && r.random_bits <= kMostRandomBits;
  const bool plain = format_.affine == Affine::sym && !format_.power_of_two_scale() &&
                     !format_.tensor_scale && format_.element_exponent == 0 &&
                     exact_in_float32(*format_.element);
  serves_ = plain || (format_.affine == Affine::min && (r.mode == RoundingMode::rne || sr));
}

FlagCounts FastReal::encode_plain(float scale, const float* x, std::int64_t first,
                                  std::int64_t count, void* codes, float* y) const {
  FlagCounts counts{.elements = count};
  if (codes != nullptr)
    counts = quantize_codes(element_, x + first, count, scale,
                            static_cast<std::uint8_t*>(codes) + first, first);
  if (y != nullptr) counts = quantize_values(element_, x + first, count, scale, y + first, first);
  return counts;
}

FlagCounts FastReal::encode(const BlockScale& scale, const float* x, const BlockElements& elements,
                            std::int64_t begin, std::int64_t end, void* codes, float* y) const {
  const FloatGuard guard;
  constexpr std::int64_t kWorthwhile = 8;  // neighbours
  if (elements.runs > 1 && elements.step == 1 && elements.count >= kWorthwhile &&
      scale.factor.kind == Class::finite) {
    FlagCounts counts;
    for (std::int64_t k = begin; k < end;) {
      const std::int64_t from = k % elements.count;
      const std::int64_t to = std::min(elements.count, from + end - k);
      counts +=
          encode(scale, x, {elements.at(k - from), 1, 0, elements.count, 1}, from, to, codes, y);
      k += to - from;
    }
    return counts;
  }
  if (scale.factor.kind != Class::finite || !elements.contiguous())
    return encode_elements(format_, element_, scale, x, elements, begin, end, codes, y);
  if (format_.affine == Affine::sym)
    return encode_plain(static_cast<float>(to_double(scale.factor)), x, elements.first + begin,
                        end - begin, codes, y);
  const bool sr = element_.rounding.stochastic();
  const simd::CodesAbove by{.minimum = to_double(scale.minimum),
                            .factor = to_double(scale.factor),
                            .high = static_cast<int>(format_.element->largest_code()),
                            .random_bits = sr ? element_.rounding.random_bits : 0};
  const std::uint32_t mask = (std::uint32_t{1} << by.random_bits) - 1;
  const float lowest = decode_in_block(format_, scale, 0);
  std::array<std::uint32_t, kBatch> random;
  std::array<std::uint8_t, kBatch> code, open;
  FlagCounts counts{.elements = end - begin};
  for (std::int64_t first = begin; first < end; first += kBatch) {
    const std::int64_t count = std::min(kBatch, end - first), at = elements.first + first;
    if (sr && element_.random_words == nullptr) {
      simd::fill_random(element_.random, by.random_bits, static_cast<std::uint64_t>(at), count,
                        random.data());
    } else if (sr) {
      for (std::int64_t k = 0; k < count; ++k) random[k] = element_.random_words[at + k] & mask;
    }
    const simd::CodesAboveCounts counted =
        simd::codes_above(by, x + at, count, random.data(), code.data(), open.data());
    counts.inexact += counted.inexact;
    for (std::int64_t k = 0; counted.open != 0 && k < count; ++k) {
      if (open[k] == 0) continue;
      const Encoded exact = encode_in_block(format_, element_, scale, x[at + k], at + k);
      counts.add(exact.flags);
      code[k] = static_cast<std::uint8_t>(exact.code);
    }
    if (codes != nullptr) std::copy_n(code.data(), count, static_cast<std::uint8_t*>(codes) + at);
    for (std::int64_t k = 0; y != nullptr && k < count; ++k)
      y[at + k] =
          code[k] == 0 ? lowest : above_minimum(format_, scale, code[k], by.factor, by.minimum);
  }
  return counts;
}

}  // namespace numemu

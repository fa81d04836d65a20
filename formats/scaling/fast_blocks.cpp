// Batches of blocks: their largest magnitudes, their scales, then their elements while they are in
// the first-level cache.
#include "formats/scaling/fast_blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "formats/blocks/block_convert.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/block_elements.hpp"
#include "formats/simd/codes_above.hpp"
#include "formats/simd/convert_loops.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/quantize_fast.hpp"
#include "formats/simd/quantize_odd.hpp"

namespace numemu {
namespace {

// 16 KiB of elements: they are read twice, and stay with their scales in the first-level cache.
constexpr std::int64_t kElements = 4096;
constexpr std::int64_t kBlocks = kElements / simd::kBlockGrain;
constexpr std::uint32_t kInfinityBits = 0x7f800000;
constexpr float kNaN = std::bit_cast<float>(0x7fc00000);
// Tensor scales for which every product with a block scale stays well inside float32's range.
constexpr float kSmallestTensorScale = 0x1p-80f, kLargestTensorScale = 0x1p110f;

std::int64_t padded(std::int64_t size) {
  return (size + simd::kBlockGrain - 1) / simd::kBlockGrain * simd::kBlockGrain;
}

// Elements for which quotients below 2^-36 do not matter.
constexpr float kSmallestOfQuotients = 0x1p-22f;
// Scales of the loop of exact quotients.
constexpr float kSmallestScale = 0x1p-90f, kLargestScale = 0x1p120f;

std::optional<HostRounding> host_rounding(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rne:
      return HostRounding::nearest;
    case RoundingMode::rtz:
      return HostRounding::toward_zero;
    case RoundingMode::rup:
      return HostRounding::up;
    case RoundingMode::rdn:
      return HostRounding::down;
    default:
      return {};
  }
}

std::unique_ptr<const simd::Plan> plan_of(const Conversion& c) {
  const auto plan = simd::make_plan(c);
  return plan ? std::make_unique<const simd::Plan>(*plan) : nullptr;
}

}  // namespace

// Blocks of one padded size, first to last, with what is known of them.
struct FastBlocks::Batch {
  const BlockLayout& layout;
  const float* x;  ///< of the tensor
  std::int64_t first_block = 0, first_element = 0;
  std::int64_t blocks = 0, size = 0;  ///< size: elements of each
  float tensor_scale;
  const BlockArrays& arrays;
  float* y;
  const std::uint32_t* words;  ///< random bits of the elements; null: those of the conversion
  BlockCounts& counts;

  bool stream = false;

  alignas(64) std::uint32_t maxima[kBlocks];
  alignas(64) float amax[kBlocks];  ///< 1 for blocks with NaN or infinities
  alignas(64) float scale[kBlocks], rest[kBlocks], inverse[kBlocks];
  alignas(64) float low[kBlocks];
  alignas(64) std::uint32_t alone[kBlocks];  ///< not 0: converted by the reference
  alignas(64) std::uint8_t codes[kBlocks];   ///< of the scales
  bool some_alone = false, some_nan = false;

  Batch(const BlockLayout& cut, const float* numbers, float t, const BlockArrays& out,
        float* values, const std::uint32_t* bits, BlockCounts& sums)
      : layout(cut),
        x(numbers),
        tensor_scale(t),
        arrays(out),
        y(values),
        words(bits),
        counts(sums) {}
  bool nan(std::int64_t b) const { return maxima[b] >= kInfinityBits; }
  std::uint64_t scale_code(std::int64_t b, const BlockFormat& f) const {
    if (f.scale->bits <= 8) return codes[b];
    return nan(b) ? f.scale->nan_code() : std::bit_cast<std::uint32_t>(scale[b]);
  }
};

FastBlocks::FastBlocks(const BlockQuantization& how) : how_(how) {
  how_.element.format = how.format->element;
  const BlockFormat& f = *how.format;
  const Format& e = *f.element;
  if (f.span != Span::block || f.affine != Affine::sym || e.bits > 8 ||
      how.element.overflow != Overflow::saturate || how.nonfinite != Nonfinite::propagate ||
      !f.scale->has_nan() || how.scales != nullptr || (f.tensor_scale && f.power_of_two_scale()))
    return;
  auto element = plan_of(how_.element);
  if (!element || element->gap || element->flush || !element->is_signed ||
      element->largest != element->largest_negative)
    return;
  if (f.power_of_two_scale()) {
    // Values of a block with the smallest scale are float32 numbers, so that they are exact; and a
    // quotient too small for float32 must not matter.
    const bool exact = element->smallest >= kSmallestOfQuotients;
    const bool odd = how.element.rounding.mode == RoundingMode::rodd;
    if (exact && !odd && how.rule->exponents != nullptr && !how.rule->reads_elements)
      element_ = std::move(element);
    return;
  }
  odd_ = how.element.rounding.mode != RoundingMode::rne;
  if (!odd_determines(how_.element) || std::string_view(how.rule->name) != "absmax") return;
  if (!f.tensor_scale && f.scale->name == "float32" && f.element_exponent == 0) {
    float32_scales_ = true;
    odd_ = odd_ || !simd::has_quotients() || e.kind != Kind::floating || e.mantissa_bits < 1 ||
           element->smallest < kSmallestOfQuotients;
    element_ = std::move(element);
    return;
  }
  const bool nvfp4 = f.tensor_scale && f.scale->bits <= 8 && simd::has_quotients();
  if (!nvfp4) return;
  scale_ = plan_of({.format = f.scale});
  if (scale_ && !scale_->gap && !scale_->flush && scale_->is_signed) element_ = std::move(element);
}

FastBlocks::~FastBlocks() = default;

bool FastBlocks::serves(const BlockLayout& layout, float tensor_scale) const {
  const bool in_range = tensor_scale >= kSmallestTensorScale && tensor_scale <= kLargestTensorScale;
  return element_ != nullptr && layout.inner == 1 && padded(layout.size) <= kElements && in_range;
}

void FastBlocks::choose_powers(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  alignas(64) std::int32_t exponents[kBlocks];
  how_.rule->exponents({&f, &how_.element, batch.blocks, batch.amax, nullptr, nullptr, exponents});
  // Beyond float32's range the last rounding counts too, and it is to nearest.
  const bool directed = element_->host != HostRounding::nearest;
  const std::int32_t highest = directed ? 126 - std::ilogb(element_->largest) : 127;
  batch.some_alone =
      simd::powers_of_two(exponents, batch.amax, batch.blocks, f.element_exponent, highest,
                          batch.scale, batch.inverse, batch.low, batch.alone);
  if (batch.arrays.scales == nullptr && !batch.some_alone) return;
  for (std::int64_t b = 0; b < batch.blocks; ++b)
    batch.codes[b] = static_cast<std::uint8_t>(exponents[b] + f.scale->bias);
}

// The block scale is the value of its format nearest to amax / (largest element * tensor scale);
// then elements are divided by scale * tensor scale. Both products are split exactly in two.
void FastBlocks::choose_nvfp4(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  const double unit = std::ldexp(1.0, f.element_exponent) * batch.tensor_scale;
  const double divisor = element_->largest * unit;
  const auto high = static_cast<float>(divisor);
  const float smallest = scale_->smallest;
  alignas(64) float scales[kBlocks];
  simd::round_quotients(*scale_, batch.amax, batch.blocks, high, static_cast<float>(divisor - high),
                        scales);
#pragma omp simd
  for (std::int64_t b = 0; b < batch.blocks; ++b)
    scales[b] = batch.amax[b] > 0 ? std::max(scales[b], smallest) : scales[b];
  simd::split_products(scales, batch.blocks, static_cast<float>(unit), batch.scale, batch.rest,
                       batch.inverse);
  if (batch.arrays.scales == nullptr) return;
  simd::convert_vectors(*scale_, {.x = scales, .n = batch.blocks, .codes8 = batch.codes});
}

// A float32 scale is the block's own: amax / largest element, which the host rounds as the scale
// is. What leaves the positive finite numbers is left to the rule, as are its other roundings.
void FastBlocks::choose_float32(Batch& batch) const {
  const auto rounding = host_rounding(how_.scale_rounding);
  if (rounding) {
    const FloatGuard guard(*rounding);
    simd::divide_all(batch.amax, batch.blocks, element_->largest, batch.scale);
  }
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const bool decided = rounding && batch.scale[b] > 0 && std::isfinite(batch.scale[b]);
    if (batch.amax[b] == 0) {
      batch.scale[b] = 1;
    } else if (!decided) {
      batch.scale[b] = how_.rule->scale(
          {batch.amax + b, 1, &how_.element, how_.format, 1.0f, how_.scale_rounding});
    }
    batch.rest[b] = 0;
    batch.inverse[b] = 1 / batch.scale[b];
  }
}

/// Whether the loop of exact quotients serves the scales.
bool FastBlocks::has_exact_quotients(const Batch& batch) const {
  if (odd_ || scale_) return !odd_;  // of NVFP4 see serves()
  return std::all_of(batch.scale, batch.scale + batch.blocks,
                     [](float scale) { return scale >= kSmallestScale && scale <= kLargestScale; });
}

void FastBlocks::convert(const Batch& batch) const {
  const std::int64_t size = padded(batch.size), n = batch.blocks * size;
  const std::int64_t first = batch.first_element;
  const bool whole = size == batch.size;
  const float* x = batch.x + first;
  auto* codes = static_cast<std::uint8_t*>(batch.arrays.codes);
  alignas(64) float x_copy[kElements], y_copy[kElements];
  alignas(64) std::uint8_t code_copy[kElements], flags[kElements];
  alignas(64) std::uint32_t random[kElements];
  const auto each = [&](auto copy) {  // short blocks, into and out of the padded copies
    for (std::int64_t b = 0; b < batch.blocks; ++b) copy(b * size, first + b * batch.size);
  };
  if (!whole) {
    std::fill_n(x_copy, n, 0.0f);
    each([&](std::int64_t to, std::int64_t from) {
      std::copy_n(batch.x + from, batch.size, x_copy + to);
    });
    x = x_copy;
  }
  if (how_.element.rounding.stochastic()) {
    const std::uint32_t mask = (std::uint32_t{1} << element_->random_bits) - 1;
    if (!whole) std::fill_n(random, n, 0u);  // zeros stay zeros
    const auto fetch = [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      if (batch.words == nullptr)
        return simd::fill_random(how_.element.random, element_->random_bits,
                                 static_cast<std::uint64_t>(from), count, random + to);
      for (std::int64_t i = 0; i < count; ++i) random[to + i] = batch.words[from + i] & mask;
    };
    if (whole) {
      fetch(0, first, n);
    } else {
      each([&](std::int64_t to, std::int64_t from) { fetch(to, from, batch.size); });
    }
  }
  simd::BlockRun run{.x = x,
                     .blocks = batch.blocks,
                     .size = size,
                     .scale = batch.scale,
                     .scale_rest = batch.rest,
                     .inverse = batch.inverse,
                     .low = batch.low,
                     .random = random,
                     .stream = batch.stream && whole,
                     .ask_ahead = whole && simd::worth_asking(batch.layout.elements()) ? n : 0};
  run.flags = how_.count_flags ? flags : nullptr;
  const auto go = [&] {
    const bool real = scale_ || float32_scales_;
    if (real && !has_exact_quotients(batch)) return convert_odd(run);
    const FloatGuard guard(element_->host);
    (real ? simd::convert_quotients : simd::convert_powers)(*element_, run);
  };
  if (batch.y != nullptr) {
    run.values = whole ? batch.y + first : y_copy;
    go();
    if (!whole)
      each([&](std::int64_t from, std::int64_t to) {
        std::copy_n(y_copy + from, batch.size, batch.y + to);
      });
    run.values = nullptr;
    run.flags = codes == nullptr ? run.flags : nullptr;
  }
  if (codes != nullptr) {
    run.codes = whole ? codes + first : code_copy;
    run.flags = how_.count_flags ? flags : nullptr;
    go();
    if (!whole)
      each([&](std::int64_t from, std::int64_t to) {
        std::copy_n(code_copy + from, batch.size, codes + to);
      });
  }
  batch.counts.elements.elements += batch.blocks * batch.size;
  if (!how_.count_flags) return;
  for (std::int64_t b = 0; b < batch.blocks && (batch.some_nan || batch.some_alone); ++b)
    if (batch.nan(b) || (batch.some_alone && batch.alone[b] != 0))
      std::fill_n(flags + b * size, size, std::uint8_t{0});
  FlagCounts counted = count_flags(flags, n);
  counted.elements = 0;
  batch.counts.elements += counted;
}

void FastBlocks::convert_odd(const simd::BlockRun& run) const {
  const std::int64_t n = run.blocks * run.size;
  alignas(64) float quotients[kElements];
  const auto divisor = [&](std::int64_t b) { return double{run.scale[b]} + run.scale_rest[b]; };
  {
    const FloatGuard guard(HostRounding::toward_zero);
    for (std::int64_t b = 0; b < run.blocks; ++b) {
      const float* const x = run.x + b * run.size;
      float* const to = quotients + b * run.size;
      const bool narrow =
          has_fused_multiply_add() && run.scale_rest[b] == 0 && std::isnormal(run.scale[b]);
      if (!narrow || !odd_quotients(x, run.size, run.scale[b], to))
        odd_quotients_wide(x, run.size, divisor(b), to);
    }
  }
  {
    const FloatGuard guard(element_->host);
    simd::convert_vectors(*element_, {.x = quotients,
                                      .n = n,
                                      .values = run.values,
                                      .codes8 = run.codes,
                                      .flags = run.flags,
                                      .random = run.random});
  }
  if (run.values == nullptr) return;
  for (std::int64_t b = 0; b < run.blocks; ++b) {
    const double by = divisor(b);
    float* const values = run.values + b * run.size;
#pragma omp simd
    for (std::int64_t i = 0; i < run.size; ++i) values[i] = static_cast<float>(values[i] * by);
  }
}

// Blocks of NaN, and those that the loops do not serve.
void FastBlocks::replace(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  auto* codes = static_cast<std::uint8_t*>(batch.arrays.codes);
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const std::int64_t first = batch.first_element + b * batch.size;
    if (batch.nan(b)) {
      batch.codes[b] = static_cast<std::uint8_t>(f.scale->nan_code());
      if (codes != nullptr) std::fill_n(codes + first, batch.size, std::uint8_t{0});
      if (batch.y != nullptr && (scale_ || float32_scales_))
        std::fill_n(batch.y + first, batch.size, kNaN);
    } else if (batch.some_alone && batch.alone[b] != 0) {
      const BlockScale scale = block_scale(f, {batch.codes[b], 0}, batch.tensor_scale);
      Conversion element = how_.element;
      element.random_words = batch.words;
      FlagCounts counts =
          encode_elements(f, element, scale, batch.x, batch.layout.block(batch.first_block + b), 0,
                          batch.size, batch.arrays.codes, batch.y);
      counts.elements = 0;
      if (how_.count_flags) batch.counts.elements += counts;
    }
  }
}

// The blocks of one line have one size, but for the last.
BlockCounts FastBlocks::quantize(const BlockLayout& layout, const float* x, float tensor_scale,
                                 std::int64_t begin, std::int64_t end, const BlockArrays& arrays,
                                 float* y, const std::uint32_t* words) const {
  const FloatGuard guard;
  BlockCounts counts;
  if (words == nullptr) words = how_.element.random_words;
  const bool real = scale_ || float32_scales_;
  const std::int64_t batch_blocks = kElements / padded(std::min(layout.size, layout.length));
  const bool stream = simd::worth_streaming(y, layout.elements()) &&
                      layout.size % simd::kBlockGrain == 0 &&
                      layout.length % simd::kBlockGrain == 0;
  // Lines shorter than a block are one short block each, all of one size.
  const bool ragged = layout.per_line > 1 && layout.length % layout.size != 0;
  for (std::int64_t b = begin; b < end;) {
    std::int64_t last = std::min(end, b + batch_blocks);
    const BlockElements block = layout.block(b);
    if (ragged) {  // stop before the short block of the line, or take it alone
      const std::int64_t in_line = b % layout.per_line;
      last = in_line == layout.per_line - 1 ? b + 1
                                            : std::min(last, b - in_line + layout.per_line - 1);
    }
    Batch batch(layout, x, tensor_scale, arrays, y, words, counts);
    batch.first_block = b;
    batch.first_element = block.first;
    batch.blocks = last - b;
    batch.size = block.count;
    batch.stream = stream;
    survey(batch);
    if (scale_) {
      choose_nvfp4(batch);
    } else if (float32_scales_) {
      choose_float32(batch);
    } else {
      choose_powers(batch);
    }
    // NaN times any element is that NaN; quotients are given their sign afterwards (see replace()).
    for (std::int64_t k = 0; k < batch.blocks && batch.some_nan && !real; ++k)
      if (batch.nan(k)) batch.scale[k] = kNaN;
    convert(batch);
    if (batch.some_nan || batch.some_alone) replace(batch);
    if (arrays.scales != nullptr)
      for (std::int64_t k = 0; k < batch.blocks; ++k)
        store_code(*how_.format->scale, arrays.scales, b + k, batch.scale_code(k, *how_.format));
    counts.blocks += batch.blocks;
    b = last;
  }
  return counts;
}

void FastBlocks::survey(Batch& batch) const {
  const std::int64_t size = padded(batch.size);
  const float* x = batch.x + batch.first_element;
  if (size == batch.size) {
    simd::block_maxima(x, batch.blocks, size, batch.maxima);
  } else {
    std::fill_n(batch.maxima, batch.blocks, 0U);
    for (std::int64_t b = 0; b < batch.blocks; ++b)
      for (std::int64_t i = 0; i < batch.size; ++i)
        batch.maxima[b] = std::max(
            batch.maxima[b], std::bit_cast<std::uint32_t>(x[b * batch.size + i]) & 0x7fffffffU);
  }
  const simd::BlockSurvey seen = simd::survey_maxima(batch.maxima, batch.blocks, batch.amax);
  batch.counts.nan_blocks += seen.nonfinite;
  batch.counts.zero_blocks += seen.zero;
  batch.some_nan = seen.nonfinite != 0;
}

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

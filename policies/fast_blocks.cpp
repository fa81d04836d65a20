// Batches of blocks: their largest magnitudes, their scales, then their elements while they are in
// the first-level cache.
#include "policies/fast_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"
#include "formats/simd/block_loops.hpp"
#include "formats/simd/loops.hpp"
#include "formats/simd/philox.hpp"

namespace numemu::policies {
namespace {

// 8 KiB of elements: they are read twice, and stay with their scales in the first-level cache.
constexpr std::int64_t kElements = 2048;
constexpr std::int64_t kBlocks = kElements / simd::kBlockGrain;
constexpr std::uint32_t kInfinityBits = 0x7f800000;
// Tensor scales for which every product with a block scale stays well inside float32's range.
constexpr float kSmallestTensorScale = 0x1p-80f, kLargestTensorScale = 0x1p110f;

std::int64_t padded(std::int64_t size) {
  return (size + simd::kBlockGrain - 1) / simd::kBlockGrain * simd::kBlockGrain;
}

// 2^exponent as float32, for exponents in -127..127.
float power(std::int32_t exponent) {
  return std::bit_cast<float>(std::max((exponent + 127) << 23, 0x400000));
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
  std::int64_t first_block, first_element;
  std::int64_t blocks, size;  ///< size: elements of each
  float tensor_scale;
  const BlockArrays& arrays;
  float* y;
  BlockCounts& counts;

  alignas(64) std::uint32_t maxima[kBlocks] = {};
  alignas(64) float amax[kBlocks] = {};  ///< 0 for blocks with NaN or infinities
  alignas(64) float scale[kBlocks] = {}, rest[kBlocks] = {}, inverse[kBlocks] = {};
  std::uint8_t codes[kBlocks] = {};
  std::uint8_t alone[kBlocks] = {};  ///< converted by the reference
  bool some_replaced = false;        ///< some block is alone or NaN

  bool nan(std::int64_t b) const { return maxima[b] >= kInfinityBits; }
};

FastBlocks::FastBlocks(const BlockQuantization& how) : how_(how) {
  how_.element.format = how.format->element;
  const BlockFormat& f = *how.format;
  const Format& e = *f.element;
  if (f.span != Span::block || f.affine != Affine::sym || e.bits > 8 ||
      how.element.overflow != Overflow::saturate || how.nonfinite != Nonfinite::propagate ||
      !f.scale->has_nan())
    return;
  auto element = plan_of(how_.element);
  if (!element || element->gap || element->flush || !element->is_signed ||
      element->largest != element->largest_negative)
    return;
  if (f.power_of_two_scale()) {
    // Values of a block with the smallest scale are float32 numbers, so that they are exact; and a
    // quotient too small for float32 must not matter.
    const bool exact = element->smallest >= 0x1p-22f;
    const bool odd = how.element.rounding.mode == RoundingMode::rodd;
    if (exact && !odd && how.rule->exponents != nullptr && !how.rule->reads_elements)
      element_ = std::move(element);
    return;
  }
  const bool nvfp4 = f.tensor_scale && f.scale->bits <= 8 && simd::has_quotients() &&
                     how.element.rounding.mode == RoundingMode::rne &&
                     std::string_view(how.rule->name) == "absmax";
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
  const std::int32_t shift = f.element_exponent, bias = f.scale->bias;
  std::int32_t some_alone = 0;
#pragma omp simd reduction(| : some_alone)
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const std::int32_t e = exponents[b] + shift;
    const std::int32_t alone = e < -127 || e > highest ? 1 : 0;
    const std::int32_t safe = alone != 0 ? 0 : e;
    batch.codes[b] = static_cast<std::uint8_t>(exponents[b] + bias);
    batch.alone[b] = static_cast<std::uint8_t>(alone);
    batch.scale[b] = power(safe);
    batch.inverse[b] = power(-safe);
    some_alone |= alone;
  }
  batch.some_replaced |= some_alone != 0;
}

// The block scale is the value of its format nearest to amax / (largest element * tensor scale);
// then elements are divided by scale * tensor scale. Both products are exact in double.
void FastBlocks::choose_nvfp4(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  double unit = std::ldexp(1.0, f.element_exponent);
  const double divisor = static_cast<double>(element_->largest) * unit * batch.tensor_scale;
  const auto high = static_cast<float>(divisor);
  const float smallest = scale_->smallest;
  alignas(64) float scales[kBlocks];
  simd::round_quotients(*scale_, batch.amax, batch.blocks, high, static_cast<float>(divisor - high),
                        scales);
#pragma omp simd
  for (std::int64_t b = 0; b < batch.blocks; ++b)
    scales[b] = batch.amax[b] > 0 ? std::max(scales[b], smallest) : scales[b];
  simd::convert_vectors(*scale_, {.x = scales, .n = batch.blocks, .codes8 = batch.codes});
  unit *= batch.tensor_scale;
#pragma omp simd
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const double factor = scales[b] * unit;
    batch.scale[b] = static_cast<float>(factor);
    batch.rest[b] = static_cast<float>(factor - batch.scale[b]);
    batch.inverse[b] = factor == 0 ? 0.0f : 1 / batch.scale[b];
  }
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
      if (how_.element.random_words == nullptr)
        return simd::fill_random(how_.element.random, element_->random_bits,
                                 static_cast<std::uint64_t>(from), count, random + to);
      for (std::int64_t i = 0; i < count; ++i)
        random[to + i] = how_.element.random_words[from + i] & mask;
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
                     .random = random};
  run.flags = how_.count_flags ? flags : nullptr;
  const auto go = [&] {
    const FloatGuard guard(element_->host);
    if (scale_) {
      simd::convert_quotients(*element_, run);
    } else {
      simd::convert_powers(*element_, run);
    }
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
  for (std::int64_t b = 0; b < batch.blocks && batch.some_replaced; ++b)
    if (batch.nan(b) || batch.alone[b]) std::fill_n(flags + b * size, size, std::uint8_t{0});
  FlagCounts counted = count_flags(flags, n);
  counted.elements = 0;
  batch.counts.elements += counted;
}

// Blocks of NaN, and those that the loops do not serve.
void FastBlocks::replace(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    if (!batch.nan(b) && !batch.alone[b]) continue;
    if (batch.nan(b)) batch.codes[b] = static_cast<std::uint8_t>(f.scale->nan_code());
    const BlockScale scale = block_scale(f, {batch.codes[b], 0}, batch.tensor_scale);
    FlagCounts counts =
        encode_elements(f, how_.element, scale, batch.x, batch.layout.block(batch.first_block + b),
                        0, batch.size, batch.arrays.codes, batch.y);
    counts.elements = 0;
    if (how_.count_flags) batch.counts.elements += counts;
  }
}

// The blocks of one line have one size, but for the last.
BlockCounts FastBlocks::quantize(const BlockLayout& layout, const float* x, float tensor_scale,
                                 std::int64_t begin, std::int64_t end, const BlockArrays& arrays,
                                 float* y) const {
  BlockCounts counts;
  const std::int64_t batch_blocks = kElements / padded(layout.size);
  const bool ragged = layout.length % layout.size != 0;
  for (std::int64_t b = begin; b < end;) {
    std::int64_t last = std::min(end, b + batch_blocks);
    const BlockElements block = layout.block(b);
    if (ragged) {  // stop before the short block of the line, or take it alone
      const std::int64_t in_line = b % layout.per_line;
      last = in_line == layout.per_line - 1 ? b + 1
                                            : std::min(last, b - in_line + layout.per_line - 1);
    }
    Batch batch{.layout = layout,
                .x = x,
                .first_block = b,
                .first_element = block.first,
                .blocks = last - b,
                .size = block.count,
                .tensor_scale = tensor_scale,
                .arrays = arrays,
                .y = y,
                .counts = counts};
    survey(batch);
    if (scale_) {
      choose_nvfp4(batch);
    } else {
      choose_powers(batch);
    }
    convert(batch);
    if (batch.some_replaced) replace(batch);
    if (arrays.scales != nullptr)
      for (std::int64_t k = 0; k < batch.blocks; ++k)
        store_code(*how_.format->scale, arrays.scales, b + k, batch.codes[k]);
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
    for (std::int64_t b = 0; b < batch.blocks; ++b)
      for (std::int64_t i = 0; i < batch.size; ++i)
        batch.maxima[b] = std::max(
            batch.maxima[b], std::bit_cast<std::uint32_t>(x[b * batch.size + i]) & 0x7fffffffU);
  }
  std::int32_t nan_blocks = 0, zero_blocks = 0;
#pragma omp simd reduction(+ : nan_blocks, zero_blocks)
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const std::uint32_t bits = batch.maxima[b];
    nan_blocks += bits >= kInfinityBits ? 1 : 0;
    zero_blocks += bits == 0 ? 1 : 0;
    batch.amax[b] = std::bit_cast<float>(bits >= kInfinityBits ? 0U : bits);
  }
  batch.counts.nan_blocks += nan_blocks;
  batch.counts.zero_blocks += zero_blocks;
  batch.some_replaced = nan_blocks != 0;
}

}  // namespace numemu::policies

// Batches of blocks: their largest magnitudes, their scales, then their elements while they are in
// the first-level cache.
#include "formats/scaling/fast_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "formats/blocks/block_convert.hpp"
#include "formats/codec.hpp"
#include "formats/element_table.hpp"
#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"
#include "formats/simd/block_elements.hpp"
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
constexpr int kFloatBits = 24;
// Of numbers that quotients rounded to odd are compared with, and their divisors together.
constexpr int kOddBits = 51;
// Blocks with smaller magnitudes have errors near the end of float32's range.
constexpr float kSmallestCompared = 0x1p-90f;
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
  const float* padded_x = nullptr;  ///< of the batch, blocks of padded size
  alignas(64) float copied_x[kElements];

  alignas(64) std::uint32_t maxima[kBlocks];
  alignas(64) float amax[kBlocks];  ///< 1 for blocks with NaN or infinities
  alignas(64) float scale[kBlocks], rest[kBlocks], inverse[kBlocks];
  alignas(64) float low[kBlocks];
  alignas(64) std::uint32_t alone[kBlocks];  ///< not 0: converted by the reference
  alignas(64) std::uint8_t codes8[kBlocks];  ///< of the scales
  alignas(64) std::uint16_t codes16[kBlocks];
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
  bool whole() const { return size == padded(size); }
  /// All blocks under their scales, without outputs.
  simd::BlockRun elements() const {
    return {.x = padded_x,
            .blocks = blocks,
            .size = padded(size),
            .scale = scale,
            .scale_rest = rest,
            .inverse = inverse,
            .low = low};
  }
  std::uint64_t scale_code(std::int64_t b, const BlockFormat& f) const {
    if (nan(b)) return f.scale->nan_code();
    if (f.scale->bits <= 8) return codes8[b];
    return f.scale->bits <= 16 ? codes16[b] : std::bit_cast<std::uint32_t>(scale[b]);
  }
};

FastBlocks::FastBlocks(const BlockQuantization& how) : how_(how) {
  how_.element.format = how.format->element;
  const BlockFormat& f = *how.format;
  if (f.span != Span::block || f.affine != Affine::sym || f.element->bits > 8 ||
      how.element.overflow != Overflow::saturate || how.nonfinite != Nonfinite::propagate ||
      !f.scale->has_nan() || how.scales != nullptr || (f.tensor_scale && f.power_of_two_scale()))
    return;
  zero_ = static_cast<std::uint8_t>(encode(*f.element, {}, {}, Overflow::saturate).code);
  served_ = plan_elements() && plan_scales();
}

FastBlocks::~FastBlocks() = default;

bool FastBlocks::plan_elements() {
  element_ = plan_of(how_.element);
  if (element_ == nullptr) {
    table_ = ElementTable::find(how_.element);
    return table_ != nullptr;
  }
  return !element_->gap && !element_->flush && element_->is_signed &&
         element_->largest == element_->largest_negative;
}

bool FastBlocks::plan_scales() {
  const BlockFormat& f = *how_.format;
  const bool fine = element_ != nullptr && element_->smallest >= kSmallestOfQuotients;
  const Rounding& rounding = how_.element.rounding;
  if (f.power_of_two_scale()) {
    // Values of a block with the smallest scale are float32 numbers, so that they are exact; and a
    // quotient too small for float32 must not matter.
    const bool exact = table_ != nullptr || (fine && rounding.mode != RoundingMode::rodd);
    return exact && how_.rule->exponents != nullptr && !how_.rule->reads_elements;
  }
  if (how_.rule->lands_on != nullptr) {
    lands_on_ = how_.rule->lands_on(how_.element);
  } else if (!how_.rule->needs_largest_alone) {
    return false;
  }
  // The error of one element under stochastic rounding is an expectation.
  if (lands_on_.size() > 1 && rounding.stochastic()) return false;
  odd_ = !fine || rounding.mode != RoundingMode::rne || !simd::has_quotients();
  const bool is_float32 = f.scale->name == "float32";
  const int scale_bits =
      is_float32 ? kFloatBits : f.scale->mantissa_bits + 1 + (f.tensor_scale ? kFloatBits : 0);
  if (table_ != nullptr) {
    if (scale_bits > ElementTable::kMostScaleBits) return false;
  } else if (odd_determines(how_.element)) {
    const int compared = rounding.stochastic() ? kFloatBits - 1 : std::max(f.element->bits, 2) + 2;
    if (compared + scale_bits > kOddBits) return false;
  } else {
    return false;
  }
  if (is_float32) return f.element_exponent == 0;
  const RoundingMode scales = f.tensor_scale ? RoundingMode::rne : how_.scale_rounding;
  if (f.scale->bits > 16 || !simd::has_quotients()) return false;
  const Conversion rounded{.format = f.scale, .rounding = {.mode = scales}};
  scale_ = odd_determines(rounded) ? plan_of(rounded) : nullptr;
  if (scale_ == nullptr) return false;
  narrow_ = f.tensor_scale && scale_->smallest * kSmallestTensorScale >= kSmallestScale &&
            scale_->largest <= kLargestScale / kLargestTensorScale;
  const Value one = value_of(1.0f);
  empty_ =
      f.tensor_scale
          ? 0.0f
          : nearest_float(decode(*f.scale, encode(*f.scale, one, {}, Overflow::saturate).code));
  return true;
}

bool FastBlocks::serves(const BlockLayout& layout, float tensor_scale) const {
  const bool in_range = tensor_scale >= kSmallestTensorScale && tensor_scale <= kLargestTensorScale;
  return served_ && layout.inner == 1 && padded(layout.size) <= kElements && in_range;
}

void FastBlocks::survey(Batch& batch) const {
  const std::int64_t size = padded(batch.size);
  batch.padded_x = batch.x + batch.first_element;
  if (!batch.whole()) {
    std::fill_n(batch.copied_x, batch.blocks * size, 0.0f);
    for (std::int64_t b = 0; b < batch.blocks; ++b)
      std::copy_n(batch.padded_x + b * batch.size, batch.size, batch.copied_x + b * size);
    batch.padded_x = batch.copied_x;
  }
  simd::block_maxima(batch.padded_x, batch.blocks, size, batch.maxima);
  const simd::BlockSurvey seen = simd::survey_maxima(batch.maxima, batch.blocks, batch.amax);
  batch.counts.nan_blocks += seen.nonfinite;
  batch.counts.zero_blocks += seen.zero;
  batch.some_nan = seen.nonfinite != 0;
}

void FastBlocks::choose_powers(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  alignas(64) std::int32_t exponents[kBlocks];
  how_.rule->exponents({&f, &how_.element, batch.blocks, batch.amax, nullptr, nullptr, exponents});
  // Beyond float32's range the last rounding counts too, and it is to nearest.
  const bool directed = element_ != nullptr && element_->host != HostRounding::nearest;
  const std::int32_t highest = directed ? 126 - std::ilogb(element_->largest) : 127;
  batch.some_alone =
      simd::powers_of_two(exponents, batch.amax, batch.blocks, f.element_exponent, highest,
                          batch.scale, batch.inverse, batch.low, batch.alone);
  std::fill_n(batch.rest, batch.blocks, 0.0f);
  if (table_ != nullptr) {  // any scale serves, and zeros may become other elements
    batch.some_alone = false;
    for (std::int64_t b = 0; b < batch.blocks; ++b)
      batch.scale[b] = std::ldexp(1.0f, exponents[b] + f.element_exponent);
  }
  if (batch.arrays.scales == nullptr && !batch.some_alone) return;
  for (std::int64_t b = 0; b < batch.blocks; ++b)
    batch.codes8[b] = static_cast<std::uint8_t>(exponents[b] + f.scale->bias);
}

/// For rules that need the largest magnitude alone.
ScaleRequest FastBlocks::request(const Batch& batch, std::int64_t b) const {
  return {.x = batch.amax + b,
          .n = 1,
          .conversion = &how_.element,
          .block = how_.format,
          .tensor_scale = batch.tensor_scale,
          .scale_rounding = how_.format->tensor_scale ? RoundingMode::rne : how_.scale_rounding};
}

// A scale is amax / (element * tensor scale), rounded once. float32 scales are as the host rounds
// them; others are rounded to nearest by the loop of elements, or from quotients rounded to odd.
// What these do not decide, or what leaves the positive finite numbers, is left to the rules' own
// arithmetic.
void FastBlocks::scales_for(const Batch& batch, double element, float* scales) const {
  const BlockFormat& f = *how_.format;
  if (scale_ != nullptr && round_scales(batch, element, scales)) {
    const float smallest = scale_->smallest, empty = empty_;
    const float* const amax = batch.amax;
#pragma omp simd
    for (std::int64_t b = 0; b < batch.blocks; ++b)
      scales[b] = amax[b] > 0 ? std::max(scales[b], smallest) : empty;
    return;
  }
  const auto rounding = host_rounding(how_.scale_rounding);
  const auto narrow = static_cast<float>(element);
  const bool by_host = scale_ == nullptr && rounding && narrow == element;
  if (by_host) {
    const FloatGuard guard(*rounding);
    simd::divide_all(batch.amax, batch.blocks, narrow, scales);
  }
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    if (batch.amax[b] == 0) {
      scales[b] = empty_;
    } else if (!by_host || !(scales[b] > 0 && std::isfinite(scales[b]))) {
      Value at = shortest(value_of(element));
      at.exponent += f.element_exponent;
      scales[b] = block_scale_to(request(batch, b), at);
    }
  }
}

/// Of blocks that are not zeros, to the scale format; false where no loop is exact.
bool FastBlocks::round_scales(const Batch& batch, double element, float* scales) const {
  const BlockFormat& f = *how_.format;
  const double divisor = std::ldexp(element, f.element_exponent) * batch.tensor_scale;
  const int divisor_bits =
      significant_bits(value_of(element)) + significant_bits(value_of(batch.tensor_scale));
  const int compared = f.scale->mantissa_bits + 2;
  const bool nearest = f.tensor_scale || how_.scale_rounding == RoundingMode::rne;
  if (nearest && compared + std::max(0, divisor_bits - kFloatBits) <= kFloatBits && !scale_->gap &&
      !scale_->flush) {
    const auto high = static_cast<float>(divisor);
    simd::round_quotients(*scale_, batch.amax, batch.blocks, high,
                          static_cast<float>(divisor - high), scales);
    return true;
  }
  if (compared + divisor_bits > kOddBits) return false;
  alignas(64) float quotients[kBlocks];
  {
    const FloatGuard guard(HostRounding::toward_zero);
    odd_quotients_wide(batch.amax, batch.blocks, divisor, quotients);
  }
  const FloatGuard guard(scale_->host);
  simd::convert_vectors(*scale_, {.x = quotients, .n = batch.blocks, .values = scales});
  return true;
}

// Products with the tensor scale are split exactly in two.
void FastBlocks::set_scales(Batch& batch, const float* scales) const {
  const double unit = std::ldexp(1.0, how_.format->element_exponent) * batch.tensor_scale;
  if (simd::has_quotients()) {
    simd::split_products(scales, batch.blocks, static_cast<float>(unit), batch.scale, batch.rest,
                         batch.inverse);
    return;
  }
  for (std::int64_t b = 0; b < batch.blocks; ++b) {  // float32 scales, unit 1
    batch.scale[b] = scales[b];
    batch.rest[b] = 0;
    batch.inverse[b] = 1 / scales[b];
  }
}

void FastBlocks::choose_real(Batch& batch) const {
  alignas(64) float best[kBlocks], other[kBlocks];
  if (lands_on_.empty()) {
    for (std::int64_t b = 0; b < batch.blocks; ++b) best[b] = how_.rule->scale(request(batch, b));
  } else {
    scales_for(batch, lands_on_.front(), best);
  }
  set_scales(batch, best);
  double least[kBlocks], least_bound[kBlocks], error[kBlocks], bound[kBlocks];
  if (lands_on_.size() > 1) errors(batch, least, least_bound);
  for (std::size_t k = 1; k < lands_on_.size(); ++k) {
    scales_for(batch, lands_on_[k], other);
    set_scales(batch, other);
    errors(batch, error, bound);
    for (std::int64_t b = 0; b < batch.blocks; ++b) {
      if (other[b] == best[b] || batch.amax[b] == 0 || batch.nan(b)) continue;
      const bool decided = std::fabs(error[b] - least[b]) > bound[b] + least_bound[b] &&
                           batch.amax[b] >= kSmallestCompared;
      if (!decided) {
        ScaleRequest all = request(batch, b);
        all.x = batch.x + batch.first_element + b * batch.size;
        all.n = batch.size;
        best[b] = how_.rule->scale(all);
        least[b] = -1;  // nothing is less
      } else if (error[b] < least[b]) {
        best[b] = other[b];
        least[b] = error[b];
        least_bound[b] = bound[b];
      }
    }
    set_scales(batch, best);
  }
  if (batch.arrays.scales == nullptr || scale_ == nullptr) return;
  const bool bytes = how_.format->scale->bits <= 8;
  const FloatGuard guard(scale_->host);  // nothing rounds: these are values of the format
  simd::convert_vectors(*scale_, {.x = best,
                                  .n = batch.blocks,
                                  .codes8 = bytes ? batch.codes8 : nullptr,
                                  .codes16 = bytes ? nullptr : batch.codes16});
}

// With y = v s rounded to float32, off by at most 2^-24 Y, Y the largest magnitude times s, an
// error d = y - x is off by so much, and the sum of n squares by at most 2^-23 Y sqrt(n sum) +
// 2^-48 n Y^2 (Cauchy and Schwarz); rounding the sum itself in float64 is far less, and twice all
// that covers it.
void FastBlocks::errors(const Batch& batch, double* sums, double* bounds) const {
  const std::int64_t size = padded(batch.size);
  alignas(64) float values[kElements];
  simd::BlockRun to = batch.elements();
  to.values = values;
  run(batch, to);
  const auto n = static_cast<double>(batch.size);
  const double largest_element = table_ != nullptr ? table_->largest() : element_->largest;
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const float* const x = batch.padded_x + b * size;
    const float* const y = values + b * size;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const double d = double{y[i]} - double{x[i]};
      sum += d * d;
    }
    const double largest = largest_element * batch.scale[b];
    sums[b] = sum;
    bounds[b] = 0x1p-22 * largest * std::sqrt(n * sum) + 0x1p-47 * n * largest * largest;
  }
}

/// Whether the loop of exact quotients serves the scales.
bool FastBlocks::has_exact_quotients(const Batch& batch) const {
  if (odd_ || narrow_) return !odd_;
  std::int32_t outside = 0;
#pragma omp simd reduction(+ : outside)
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const float scale = batch.scale[b];
    outside += scale != 0 && !(scale >= kSmallestScale && scale <= kLargestScale) ? 1 : 0;
  }
  return outside == 0;
}

void FastBlocks::convert(Batch& batch) const {
  const std::int64_t size = padded(batch.size), n = batch.blocks * size;
  const std::int64_t first = batch.first_element;
  const bool whole = batch.whole();
  auto* codes = static_cast<std::uint8_t*>(batch.arrays.codes);
  alignas(64) float y_copy[kElements];
  alignas(64) std::uint8_t code_copy[kElements], flags[kElements];
  alignas(64) std::uint32_t random[kElements];
  const auto each = [&](auto copy) {  // short blocks, into and out of the padded copies
    for (std::int64_t b = 0; b < batch.blocks; ++b) copy(b * size, first + b * batch.size);
  };
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
  simd::BlockRun to = batch.elements();
  to.random = random;
  to.stream = batch.stream && whole;
  to.ask_ahead = whole && simd::worth_asking(batch.layout.elements()) ? n : 0;
  to.flags = how_.count_flags ? flags : nullptr;
  if (batch.y != nullptr) {
    to.values = whole ? batch.y + first : y_copy;
    run(batch, to);
    if (!whole)
      each([&](std::int64_t from, std::int64_t at) {
        std::copy_n(y_copy + from, batch.size, batch.y + at);
      });
    to.values = nullptr;
    to.flags = codes == nullptr ? to.flags : nullptr;
  }
  if (codes != nullptr) {
    to.codes = whole ? codes + first : code_copy;
    to.flags = how_.count_flags ? flags : nullptr;
    run(batch, to);
    if (!whole)
      each([&](std::int64_t from, std::int64_t at) {
        std::copy_n(code_copy + from, batch.size, codes + at);
      });
  }
  batch.counts.elements.elements += batch.blocks * batch.size;
  if (!how_.count_flags) return;
  for (std::int64_t b = 0; b < batch.blocks && (batch.some_nan || batch.some_alone || !whole);
       ++b) {
    const bool left_out = batch.nan(b) || (batch.some_alone && batch.alone[b] != 0);
    if (left_out) std::fill_n(flags + b * size, size, std::uint8_t{0});
    if (!whole) std::fill_n(flags + b * size + batch.size, size - batch.size, std::uint8_t{0});
  }
  FlagCounts counted = count_flags(flags, n);
  counted.elements = 0;
  batch.counts.elements += counted;
}

void FastBlocks::run(const Batch& batch, const simd::BlockRun& to) const {
  if (table_ != nullptr) return run_table(batch, to);
  const bool real = !how_.format->power_of_two_scale();
  if (real && !has_exact_quotients(batch)) return run_odd(to);
  const FloatGuard guard(element_->host);
  (real ? simd::convert_quotients : simd::convert_powers)(*element_, to);
}

void FastBlocks::run_odd(const simd::BlockRun& to) const {
  const std::int64_t n = to.blocks * to.size;
  alignas(64) float quotients[kElements];
  const auto divisor = [&](std::int64_t b) { return double{to.scale[b]} + to.scale_rest[b]; };
  {
    const FloatGuard guard(HostRounding::toward_zero);
    for (std::int64_t b = 0; b < to.blocks; ++b) {
      const float* const x = to.x + b * to.size;
      float* const q = quotients + b * to.size;
      const bool narrow =
          has_fused_multiply_add() && to.scale_rest[b] == 0 && std::isnormal(to.scale[b]);
      if (!narrow || !odd_quotients(x, to.size, to.scale[b], q))
        odd_quotients_wide(x, to.size, divisor(b), q);
    }
  }
  {
    const FloatGuard guard(element_->host);
    simd::convert_vectors(*element_, {.x = quotients,
                                      .n = n,
                                      .values = to.values,
                                      .codes8 = to.codes,
                                      .flags = to.flags,
                                      .random = to.random});
  }
  if (to.values == nullptr) return;
  for (std::int64_t b = 0; b < to.blocks; ++b) {
    const double by = divisor(b);
    float* const values = to.values + b * to.size;
#pragma omp simd
    for (std::int64_t i = 0; i < to.size; ++i) values[i] = static_cast<float>(values[i] * by);
  }
}

// What comparisons in float64 leave open is the reference's.
void FastBlocks::run_table(const Batch& batch, const simd::BlockRun& to) const {
  const BlockFormat& f = *how_.format;
  std::uint8_t open[kElements];
  for (std::int64_t b = 0; b < to.blocks; ++b) {
    const std::int64_t at = b * to.size;
    const double factor = double{to.scale[b]} + to.scale_rest[b];
    if (batch.nan(b)) continue;  // see replace()
    const bool some = table_->convert(to.x + at, batch.size, factor,
                                      {.values = to.values == nullptr ? nullptr : to.values + at,
                                       .codes = to.codes == nullptr ? nullptr : to.codes + at,
                                       .flags = to.flags == nullptr ? nullptr : to.flags + at,
                                       .open = open});
    if (!some) continue;
    const BlockScale scale{.factor = shortest(value_of(factor))};
    for (std::int64_t i = 0; i < batch.size; ++i) {
      if (open[i] == 0) continue;
      const Encoded exact = encode_in_block(f, how_.element, scale, to.x[at + i], 0);
      if (to.values != nullptr) to.values[at + i] = decode_in_block(f, scale, exact.code);
      if (to.codes != nullptr) to.codes[at + i] = static_cast<std::uint8_t>(exact.code);
      if (to.flags != nullptr) to.flags[at + i] = exact.flags;
    }
  }
}

// Blocks of NaN, and those that the loops do not serve.
void FastBlocks::replace(Batch& batch) const {
  const BlockFormat& f = *how_.format;
  auto* codes = static_cast<std::uint8_t*>(batch.arrays.codes);
  for (std::int64_t b = 0; b < batch.blocks; ++b) {
    const std::int64_t first = batch.first_element + b * batch.size;
    if (batch.nan(b)) {
      if (codes != nullptr) std::fill_n(codes + first, batch.size, zero_);
      if (batch.y != nullptr) std::fill_n(batch.y + first, batch.size, kNaN);
    } else if (batch.some_alone && batch.alone[b] != 0) {
      const BlockScale scale = block_scale(f, {batch.codes8[b], 0}, batch.tensor_scale);
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
    const bool powers = how_.format->power_of_two_scale();
    powers ? choose_powers(batch) : choose_real(batch);
    if (arrays.codes != nullptr || y != nullptr) {
      // NaN times any element is that NaN; quotients are given their sign afterwards (see
      // replace()).
      for (std::int64_t k = 0; k < batch.blocks && batch.some_nan && powers; ++k)
        if (batch.nan(k)) batch.scale[k] = kNaN;
      convert(batch);
      if (batch.some_nan || batch.some_alone) replace(batch);
    } else {
      counts.elements.elements += batch.blocks * batch.size;
    }
    if (arrays.scales != nullptr)
      for (std::int64_t k = 0; k < batch.blocks; ++k)
        store_code(*how_.format->scale, arrays.scales, b + k, batch.scale_code(k, *how_.format));
    counts.blocks += batch.blocks;
    b = last;
  }
  return counts;
}

}  // namespace numemu

#include "policies/recipe/role_quantizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/blocks/block_convert.hpp"
#include "formats/quantize.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/simd/philox.hpp"

namespace numemu::policies {

namespace {

// Elements that a thread looks at together; shorter arrays stay in the calling thread.
constexpr std::int64_t kChunk = std::int64_t{1} << 16;

}  // namespace

Conversion conversion_of(const RolePolicy& policy, const RandomSource& random) {
  Conversion conversion;
  conversion.format = policy.format;
  conversion.rounding = policy.rounding;
  conversion.overflow = policy.overflow;
  conversion.symmetric = true;
  conversion.random = random;
  return conversion;
}

double parallel_magnitude(const float* x, std::int64_t n) {
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) if (chunks > 1)
  for (std::int64_t c = 0; c < chunks; ++c)
    largest =
        std::max(largest, largest_magnitude(x + c * kChunk, std::min(kChunk, n - c * kChunk)));
  return largest;
}

RoleQuantizer::RoleQuantizer(const RolePolicy& policy)
    : policy_(policy),
      rule_(policy.block != nullptr ? &find_scale_rule(policy.scale, *policy.block)
            : policy.fixed          ? &find_scale_rule("absmax")
                                    : &find_scale_rule(policy.scale)),
      largest_only_(std::string_view(rule_->name) == "absmax") {
  if (policy.granularity != Granularity::tile) return;
  BlockFormat tile = *policy.block;
  tile.size *= policy.tile_rows();
  tile.span = Span::block;
  tile.rows = 1;
  tile_ = std::make_shared<const BlockFormat>(std::move(tile));
}

Conversion RoleQuantizer::conversion(const RandomSource& random) const {
  return conversion_of(policy_, random);
}

float RoleQuantizer::scale(const float* x, std::int64_t n) const {
  if (const std::optional<TensorScale> fixed = policy_.fixed_scale()) return fixed->scale;
  if (largest_only_) return scale_of_magnitude(parallel_magnitude(x, n));
  const Conversion how = conversion();
  return rule_->scale({x, n, &how});
}

float RoleQuantizer::scale_of_magnitude(double magnitude) const {
  if (const std::optional<TensorScale> fixed = policy_.fixed_scale()) return fixed->scale;
  const Conversion how = conversion();
  if (largest_only_) return absmax_scale(magnitude, how);
  const auto x = static_cast<float>(magnitude);
  return rule_->scale({&x, 1, &how});
}

TensorScale RoleQuantizer::scale_of_range(float low, float high) const {
  if (const std::optional<TensorScale> fixed = policy_.fixed_scale()) return *fixed;
  const BlockFormat& format = shifted_format(*policy_.format);
  const Conversion how = conversion();
  const float range[] = {std::min(low, 0.0f), std::max(high, 0.0f)};
  const float scale = find_scale_rule(policy_.scale, format).scale({range, 2, &how, &format});
  const std::uint32_t code = numemu::zero_point(format, value_of(scale), range[0]);
  return {scale, static_cast<std::int32_t>(decode_table(*policy_.format)[code])};
}

TensorScale RoleQuantizer::scale_of_elements(const float* x, std::int64_t n) const {
  float low = 0, high = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return scale_of_range(low, high);
}

const BlockFormat& shifted_format(const Format& element) {
  return find_block_format(fmt::format("group({},tensor,float32,zp)", element.name));
}

Conversion RoleQuantizer::conversion(const RandomPiece& random, std::int64_t elements) const {
  Conversion element = conversion(random.source);
  if (!stochastic() || random.first == 0) return element;
  thread_local std::vector<std::uint32_t> words;
  words.resize(static_cast<std::size_t>(elements));
  simd::fill_random(random.source, policy_.rounding.random_bits,
                    static_cast<std::uint64_t>(random.first), elements, words.data());
  element.random_words = words.data();
  return element;
}

BlockQuantization RoleQuantizer::quantization(const BlockFormat& format,
                                              const Conversion& element) const {
  BlockQuantization how;
  how.format = &format;
  how.rule = rule_;
  how.element = element;
  return how;
}

BlockCounts RoleQuantizer::quantize(const BlockLayout& layout, const float* x,
                                    const RandomPiece& random, const BlockArrays& arrays,
                                    float* y) const {
  return quantize_blocks(quantization(block_format(), conversion(random, layout.elements())),
                         layout, x, arrays, y);
}

BlockCounts RoleQuantizer::quantize_columns(std::int64_t outer, std::int64_t length,
                                            std::int64_t across, const float* x,
                                            const RandomPiece& random, float* y) const {
  return numemu::quantize_columns(
      quantization(block_format(), conversion(random, outer * length * across)), outer, length,
      across, x, y);
}

BlockCounts RoleQuantizer::quantize(const BlockFormat& format, const BlockLayout& layout,
                                    const float* x, const std::uint32_t* words,
                                    const BlockArrays& arrays, float* y) const {
  Conversion element = conversion();
  element.random_words = words;
  return quantize_blocks(quantization(format, element), layout, x, arrays, y);
}

}  // namespace numemu::policies

#include "policies/recipe/role_quantizer.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

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
                                    : &find_scale_rule(policy.scale)),
      largest_only_(std::string_view(rule_->name) == "absmax") {}

Conversion RoleQuantizer::conversion(const RandomSource& random) const {
  return conversion_of(policy_, random);
}

float RoleQuantizer::scale(const float* x, std::int64_t n) const {
  if (largest_only_) return scale_of_magnitude(parallel_magnitude(x, n));
  const Conversion how = conversion();
  return rule_->scale({x, n, &how});
}

float RoleQuantizer::scale_of_magnitude(double magnitude) const {
  const Conversion how = conversion();
  if (largest_only_) return absmax_scale(magnitude, how);
  const auto x = static_cast<float>(magnitude);
  return rule_->scale({&x, 1, &how});
}

BlockCounts RoleQuantizer::quantize(const BlockLayout& layout, const float* x,
                                    const RandomPiece& random, const BlockArrays& arrays,
                                    float* y) const {
  BlockQuantization how;
  how.format = policy_.block;
  how.rule = rule_;
  how.element = conversion(random.source);
  thread_local std::vector<std::uint32_t> words;
  if (stochastic() && random.first != 0) {
    words.resize(static_cast<std::size_t>(layout.elements()));
    simd::fill_random(random.source, policy_.rounding.random_bits,
                      static_cast<std::uint64_t>(random.first), layout.elements(), words.data());
    how.element.random_words = words.data();
  }
  return quantize_blocks(how, layout, x, arrays, y);
}

}  // namespace numemu::policies

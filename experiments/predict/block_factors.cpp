#include "experiments/predict/block_factors.hpp"

#include <algorithm>
#include <cmath>

#include "formats/scaling/quantize_blocks.hpp"
#include "formats/simd/block_scales.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {
namespace {

/// The elements of a tensor block after block, and where each block begins.
struct Elements {
  const float* x;
  std::vector<float> copy;
  std::vector<std::int64_t> offsets = {0};

  Elements(const BlockLayout& layout, const float* tensor) : x(tensor) {
    const bool ordered = layout.blocks == 0 || layout.block(0).contiguous();
    if (!ordered) {
      copy.resize(static_cast<std::size_t>(layout.elements()));
      x = copy.data();
    }
    offsets.reserve(static_cast<std::size_t>(layout.blocks) + 1);
    for (std::int64_t b = 0; b < layout.blocks; ++b) {
      const BlockElements block = layout.block(b);
      if (!ordered) block.gather(tensor, copy.data() + offsets.back());
      offsets.push_back(offsets.back() + block.size());
    }
  }
  std::int64_t size(std::int64_t b) const { return offsets[b + 1] - offsets[b]; }
};

/// The largest magnitude, an infinity included; NaN does not count.
float largest_number(const float* x, std::int64_t n) {
  const simd::FiniteRange range = simd::finite_range(x, n);
  float most = std::max(std::fabs(range.low), std::fabs(range.high));
  for (std::int64_t i = 0; !range.all && i < n; ++i) most = std::max(most, std::fabs(x[i]));
  return most;
}

std::vector<double> powers(const policies::RolePolicy& policy, const Elements& blocks) {
  const BlockFormat& format = *policy.block;
  const auto count = static_cast<std::int64_t>(blocks.offsets.size()) - 1;
  std::vector<float> largest(static_cast<std::size_t>(count));
  for (std::int64_t b = 0; b < count; ++b)
    largest[b] = largest_number(blocks.x + blocks.offsets[b], blocks.size(b));
  const Conversion conversion = policies::conversion_of(policy);
  std::vector<std::int32_t> exponents(largest.size());
  find_scale_rule(policy.scale, format)
      .exponents({&format, &conversion, count, largest.data(), blocks.x, blocks.offsets.data(),
                  exponents.data()});
  std::vector<double> factors(largest.size());
  for (std::int64_t b = 0; b < count; ++b)
    factors[b] = std::ldexp(1.0, exponents[b] + format.element_exponent);
  return factors;
}

std::vector<double> real_scales(const policies::RolePolicy& policy, const Elements& blocks) {
  const BlockFormat& format = *policy.block;
  const ScaleRule& rule = find_scale_rule(policy.scale, format);
  const Conversion conversion = policies::conversion_of(policy);
  BlockQuantization how;
  how.format = &format;
  how.element = conversion;
  ScaleRequest request;
  request.conversion = &conversion;
  request.block = &format;
  request.tensor_scale = tensor_scale_of(how, blocks.x, blocks.offsets.back());
  if (format.tensor_scale) request.scale_rounding = RoundingMode::rne;
  std::vector<double> factors(blocks.offsets.size() - 1);
  for (std::size_t b = 0; b < factors.size(); ++b) {
    request.x = blocks.x + blocks.offsets[b];
    request.n = blocks.size(static_cast<std::int64_t>(b));
    factors[b] =
        std::ldexp(double{rule.scale(request)} * request.tensor_scale, format.element_exponent);
  }
  return factors;
}

}  // namespace

std::vector<double> block_factors(const policies::RolePolicy& policy, const BlockLayout& layout,
                                  const float* x) {
  const Elements blocks(layout, x);
  return policy.block->power_of_two_scale() ? powers(policy, blocks) : real_scales(policy, blocks);
}

}  // namespace numemu::experiments

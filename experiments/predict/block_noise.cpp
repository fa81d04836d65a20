#include "experiments/predict/block_noise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
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

namespace {

Grid grid_of(const policies::RolePolicy& policy) {
  const bool stochastic = policy.rounding.stochastic();
  return {
      stochastic ? brackets(*policy.format, true) : cells(*policy.format, policy.rounding, true),
      stochastic};
}

/// What a code is multiplied by in a block of that largest magnitude, for rules of power-of-two
/// scales that read nothing else.
class PowerRule {
 public:
  explicit PowerRule(const policies::RolePolicy& policy)
      : format_(*policy.block),
        rule_(find_scale_rule(policy.scale, format_)),
        conversion_(policies::conversion_of(policy)) {}

  bool reads_elements() const { return rule_.reads_elements; }

  int exponent(float amax) const {
    std::int32_t exponent = 0;
    ExponentRequest request;
    request.format = &format_;
    request.conversion = &conversion_;
    request.blocks = 1;
    request.amax = &amax;
    request.exponents = &exponent;
    rule_.exponents(request);
    return exponent + format_.element_exponent;
  }

 private:
  const BlockFormat& format_;
  const ScaleRule& rule_;
  Conversion conversion_;
};

}  // namespace

ErrorMoments block_moments(const policies::RolePolicy& policy, const BlockLayout& layout,
                           const float* x) {
  if (policy.block->affine != Affine::sym)
    throw Error("no prediction for " + policy.block->name + ": its codes are shifted");
  const Grid grid = grid_of(policy);
  const std::vector<double> factors = block_factors(policy, layout, x);
  // Blocks with the same factor are one sample: few factors for powers of two.
  std::map<double, std::vector<float>> samples;
  ErrorMoments total;
  const double n = static_cast<double>(std::max<std::int64_t>(1, layout.elements()));
  const auto flush = [&](double factor, std::vector<float>& sample) {
    if (!sample.empty()) {
      const auto count = static_cast<std::int64_t>(sample.size());
      accumulate(total, grid.moments(factor, sample.data(), count), count / n, 1);
    }
    sample.clear();
  };
  std::vector<float> block;
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const BlockElements elements = layout.block(b);
    block.resize(static_cast<std::size_t>(elements.size()));
    elements.gather(x, block.data());
    const auto amax = static_cast<float>(largest_magnitude(block.data(), elements.size()));
    if (amax == 0) continue;  // zeros are exact under any scale
    const double factor = factors[b];
    if (factor == 0) {  // a scale that underflowed: every element becomes zero
      for (const float v : block) {
        total.mse += double{v} * v / n;
        total.signal += double{v} * v / n;
      }
      continue;
    }
    std::vector<float>& sample = samples[factor];
    sample.insert(sample.end(), block.begin(), block.end());
  }
  for (auto& [factor, sample] : samples) flush(factor, sample);
  return total;
}

namespace {

/// Magnitudes of a density: P(|x| <= bound), and moments of what lies within.
struct Magnitudes {
  const Density& density;
  double within(double bound) const {
    return bound > 0 ? density.moments(-bound, bound).p0 + density.zero_mass()
                     : density.zero_mass();
  }
};

/// Moments under `exponent` of elements within `bound`, weighted by their probability.
void add_within(ErrorMoments& total, const Grid& grid,
                const std::shared_ptr<const Density>& density, int exponent, double bound,
                double weight) {
  const double mass = Magnitudes{*density}.within(bound);
  if (!(mass > 0) || weight == 0 || !(density->moments(-bound, bound).p0 > 0)) return;
  const ErrorMoments part =
      grid.moments(std::ldexp(1.0, exponent), *truncated(density, -bound, bound));
  accumulate(total, part, weight * mass, 1);
}

}  // namespace

std::optional<FittedNoise> fitted_block_noise(const policies::RolePolicy& policy,
                                              const BlockLayout& layout, const TensorSource& source,
                                              const float* x, FitCache& fits) {
  if (!policy.block->power_of_two_scale() || policy.block->affine != Affine::sym)
    return std::nullopt;
  const PowerRule rule(policy);
  if (rule.reads_elements()) return std::nullopt;
  const std::optional<stats::Fit> fit = fits.whole(source, x, layout.elements());
  if (!fit) return std::nullopt;
  FittedNoise noise{fit->family, fit->ks_distance, fit->threshold, fit->accepted(), {}};
  const Grid grid = grid_of(policy);
  const Magnitudes magnitudes{*fit->density};
  const double largest = largest_magnitude(x, layout.elements());

  std::map<std::int64_t, std::int64_t> lengths;  // block length -> elements in such blocks
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const std::int64_t size = layout.block(b).size();
    lengths[size] += size;
  }
  // The intervals of the largest magnitude that share an exponent, from the top down to where no
  // block's maximum is likely to lie. The rule is a step function: steps are found by bisection of
  // the float32 numbers.
  constexpr double kNegligible = 1e-12;
  auto high = static_cast<float>(largest);
  while (high > 0) {
    const int exponent = rule.exponent(high);
    std::uint32_t below = 0, above = std::bit_cast<std::uint32_t>(high);  // exponent(above) is it
    while (above - below > 1) {
      const std::uint32_t middle = below + (above - below) / 2;
      (rule.exponent(std::bit_cast<float>(middle)) == exponent ? above : below) = middle;
    }
    const auto low = std::bit_cast<float>(below);
    double likely = 0;
    for (const auto& [size, elements] : lengths) {
      const double share = static_cast<double>(elements) / static_cast<double>(layout.elements());
      const auto others = static_cast<double>(size - 1);
      const double top = portable::pow(magnitudes.within(high), others);
      const double bottom = portable::pow(magnitudes.within(low), others);
      add_within(noise.moments, grid, fit->density, exponent, high, share * top);
      add_within(noise.moments, grid, fit->density, exponent, low, -share * bottom);
      likely = std::max(likely, portable::pow(magnitudes.within(low), static_cast<double>(size)));
    }
    if (likely < kNegligible || low == 0) break;
    high = low;
  }
  return noise;
}

}  // namespace numemu::experiments

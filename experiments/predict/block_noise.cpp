#include "experiments/predict/block_noise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "formats/block_convert.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "policies/quantize_blocks.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::experiments {
namespace {

Grid grid_of(const policies::RolePolicy& policy) {
  const bool stochastic = policy.rounding.stochastic();
  return {
      stochastic ? brackets(*policy.format, true) : cells(*policy.format, policy.rounding, true),
      stochastic};
}

Conversion conversion_of(const policies::RolePolicy& policy) {
  Conversion conversion;
  conversion.format = policy.format;
  conversion.rounding = policy.rounding;
  conversion.overflow = policy.overflow;
  return conversion;
}

/// What a code is multiplied by in a block of that largest magnitude, for power-of-two scales.
class PowerRule {
 public:
  explicit PowerRule(const policies::RolePolicy& policy)
      : format_(*policy.block),
        rule_(policies::find_scale_rule(policy.scale, format_)),
        conversion_(conversion_of(policy)) {}

  bool reads_elements() const { return rule_.reads_elements; }

  int exponent(float amax, const float* x = nullptr, std::int64_t n = 0) const {
    std::int32_t exponent = 0;
    const std::int64_t offsets[] = {0, n};
    policies::ExponentRequest request;
    request.format = &format_;
    request.conversion = &conversion_;
    request.blocks = 1;
    request.amax = &amax;
    request.x = x;
    request.offsets = offsets;
    request.exponents = &exponent;
    rule_.exponents(request);
    return exponent + format_.element_exponent;
  }

 private:
  const BlockFormat& format_;
  const policies::ScaleRule& rule_;
  Conversion conversion_;
};

/// The factor of a block: a real scale, times the tensor's.
double real_factor(const policies::RolePolicy& policy, const Conversion& conversion,
                   float tensor_scale, const std::vector<float>& block) {
  policies::ScaleRequest request;
  request.x = block.data();
  request.n = static_cast<std::int64_t>(block.size());
  request.conversion = &conversion;
  request.block = policy.block;
  request.tensor_scale = tensor_scale;
  if (policy.block->tensor_scale) request.scale_rounding = RoundingMode::rne;
  const float scale = policies::find_scale_rule(policy.scale, *policy.block).scale(request);
  return std::ldexp(double{scale} * tensor_scale, policy.block->element_exponent);
}

}  // namespace

ErrorMoments block_moments(const policies::RolePolicy& policy, const BlockLayout& layout,
                           const float* x) {
  if (policy.block->affine != Affine::sym)
    throw Error("no prediction for " + policy.block->name + ": its codes are shifted");
  const Grid grid = grid_of(policy);
  const Conversion conversion = conversion_of(policy);
  const bool powers = policy.block->power_of_two_scale();
  std::optional<PowerRule> rule;
  float tensor_scale = 1;
  if (powers) {
    rule.emplace(policy);
  } else {
    policies::BlockQuantization how;
    how.format = policy.block;
    how.element = conversion;
    tensor_scale = policies::tensor_scale_of(how, x, layout.elements());
  }
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
    for (std::int64_t k = 0; k < elements.size(); ++k) block[k] = x[elements.at(k)];
    const auto amax =
        static_cast<float>(policies::largest_magnitude(block.data(), elements.size()));
    if (amax == 0) continue;  // zeros are exact under any scale
    const double factor = powers
                              ? std::ldexp(1.0, rule->exponent(amax, block.data(), elements.size()))
                              : real_factor(policy, conversion, tensor_scale, block);
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
  const double largest = policies::largest_magnitude(x, layout.elements());

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
      const double top = std::pow(magnitudes.within(high), others);
      const double bottom = std::pow(magnitudes.within(low), others);
      add_within(noise.moments, grid, fit->density, exponent, high, share * top);
      add_within(noise.moments, grid, fit->density, exponent, low, -share * bottom);
      likely = std::max(likely, std::pow(magnitudes.within(low), static_cast<double>(size)));
    }
    if (likely < kNegligible || low == 0) break;
    high = low;
  }
  return noise;
}

}  // namespace numemu::experiments

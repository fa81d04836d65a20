#include "experiments/predict/block_noise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/simd/block_scales.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {

namespace {

/// to[column][row] = from[row][column], runs of `width` elements.
void turn_runs(const float* from, std::int64_t rows, std::int64_t columns, std::int64_t width,
               float* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      std::copy_n(from + (r * columns + c) * width, width, to + (c * rows + r) * width);
}

}  // namespace

BlockLayout tile_layout(const policies::RolePolicy& policy, const net::Shape& shape) {
  BlockFormat format = *policy.block;
  format.span = Span::tile;
  format.rows = policy.tile_rows();
  const policies::WeightTiles weight(shape, format.rows, format.size);
  return block_layout(format, {weight.taps, weight.outputs, weight.inputs}, -1);
}

const float* in_layout(const BlockLayout& layout, const float* x, std::vector<float>& copy) {
  if (layout.span != Span::tile || layout.outer == 1) return x;
  copy.resize(static_cast<std::size_t>(layout.elements()));
  turn_runs(x, layout.length, layout.outer, layout.inner, copy.data());
  return copy.data();
}

void from_layout(const BlockLayout& tiles, const float* elements, float* x) {
  turn_runs(elements, tiles.outer, tiles.length, tiles.inner, x);
}

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

/// What a code is multiplied by in a block of that largest magnitude, for rules that read nothing
/// else of it.
class LargestRule {
 public:
  /// `largest` of the tensor, which decides a tensor scale.
  LargestRule(const policies::RolePolicy& policy, float largest)
      : format_(*policy.block),
        rule_(find_scale_rule(policy.scale, format_)),
        conversion_(policies::conversion_of(policy)) {
    BlockQuantization how;
    how.format = &format_;
    how.element = conversion_;
    tensor_scale_ = tensor_scale_of(how, &largest, 1);
  }

  /// Of real scales absmax alone reads no more.
  bool reads_elements() const {
    return rule_.reads_elements || (!format_.power_of_two_scale() && rule_.name != "absmax");
  }
  /// But for the rounding of the scale.
  bool puts_largest_on_grid() const { return !format_.power_of_two_scale(); }
  /// Few scales: the rule is a step function whose steps can be visited.
  bool has_steps() const { return format_.scale->bits <= 8; }

  double factor(float amax) const {
    if (format_.power_of_two_scale()) {
      std::int32_t exponent = 0;
      ExponentRequest request;
      request.format = &format_;
      request.conversion = &conversion_;
      request.blocks = 1;
      request.amax = &amax;
      request.exponents = &exponent;
      rule_.exponents(request);
      return std::ldexp(1.0, exponent + format_.element_exponent);
    }
    ScaleRequest request{.x = &amax, .n = 1, .conversion = &conversion_, .block = &format_};
    request.tensor_scale = tensor_scale_;
    if (format_.tensor_scale) request.scale_rounding = RoundingMode::rne;
    return std::ldexp(double{rule_.scale(request)} * tensor_scale_, format_.element_exponent);
  }

 private:
  const BlockFormat& format_;
  const ScaleRule& rule_;
  Conversion conversion_;
  float tensor_scale_ = 1;
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

/// Of a factor of two of the largest magnitude: scales differ by 2.2 % within one, errors by less.
constexpr double kIntervals = 32;

/// Magnitudes of a density: P(|x| <= bound), and moments of what lies within.
struct Magnitudes {
  const Density& density;
  double within(double bound) const {
    return bound > 0 ? density.moments(-bound, bound).p0 + density.zero_mass()
                     : density.zero_mass();
  }
};

/// Of the largest magnitude of blocks under the densities of a mixture's parts, by the extremal
/// index i of P(no element of a block of B beyond x) = F(x)^(i B): 1 where elements are
/// independent, less where neighbours vary together.
class Extremes {
 public:
  using Lengths = std::map<std::int64_t, std::int64_t>;

  Extremes(const FitCache::Mixture& mixture,
           const std::vector<std::shared_ptr<const Density>>& densities, const Lengths& lengths)
      : mixture_(mixture), lengths_(lengths) {
    for (std::size_t p = 0; p < densities.size(); ++p) {
      const double step = reach(p) / kSteps;
      for (int i = 0; i < kSteps; ++i)
        logs_.push_back(portable::log(Magnitudes{*densities[p]}.within((i + 0.5) * step)));
    }
  }

  /// As many independent elements as a block of that size has by its extremes.
  static double independent(double index, std::int64_t size) {
    return std::max(1.0, index * static_cast<double>(size));
  }

  /// That under which the mean square of the blocks' largest magnitudes is `squares`: errors grow
  /// with it, as scales do.
  double index(double squares) const {
    double low = kLeast, high = kMost;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = std::sqrt(low * high);
      (mean_square(middle) < squares ? low : high) = middle;
    }
    return std::sqrt(low * high);
  }

 private:
  static constexpr int kSteps = 256, kBisections = 30;
  static constexpr double kLeast = 1.0 / 4096, kMost = 16;

  double reach(std::size_t part) const {
    return mixture_.parts[part].largest / mixture_.parts[part].rms;
  }

  /// E M^2 is the integral of 2 m P(M > m).
  double mean_square(double index) const {
    double elements = 0, total = 0;
    for (const auto& [size, count] : lengths_) elements += static_cast<double>(count);
    for (std::size_t p = 0; p < mixture_.parts.size(); ++p) {
      const FitCache::Part& part = mixture_.parts[p];
      const double step = reach(p) / kSteps;
      for (const auto& [size, count] : lengths_) {
        const double alone = independent(index, size);
        double square = 0;
        for (std::size_t i = 0; i < kSteps; ++i)
          square += 2 * (static_cast<double>(i) + 0.5) * step * step *
                    (1 - portable::exp(alone * logs_[p * kSteps + i]));
        total += part.share * part.rms * part.rms * square * static_cast<double>(count) / elements;
      }
    }
    return total;
  }

  const FitCache::Mixture& mixture_;
  const Lengths& lengths_;
  std::vector<double> logs_;  ///< of F, at the middles of kSteps steps, part by part
};

/// Mean over elements of the square of their block's largest magnitude.
double square_of_largest(const BlockLayout& layout, const float* x) {
  double sum = 0;
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const BlockElements block = layout.block(b);
    float largest = 0;
    block.for_each([&](std::int64_t i) { largest = std::max(largest, std::fabs(x[i])); });
    sum += double{largest} * largest * static_cast<double>(block.size());
  }
  return sum / static_cast<double>(std::max<std::int64_t>(1, layout.elements()));
}

/// Moments under `factor` of elements within `bound`, weighted by their probability.
void add_within(ErrorMoments& total, const Grid& grid,
                const std::shared_ptr<const Density>& density, double factor, double bound,
                double weight) {
  const double mass = Magnitudes{*density}.within(bound);
  if (!(mass > 0) || weight == 0 || !(density->moments(-bound, bound).p0 > 0)) return;
  if (factor == 0) {  // a scale that underflowed: every element becomes zero
    const double power = density->moments(-bound, bound).p2;
    total.mse += weight * power;
    total.signal += weight * power;
    return;
  }
  const ErrorMoments part = grid.moments(factor, *truncated(density, -bound, bound));
  accumulate(total, part, weight * mass, 1);
}

/// Moments of elements near the largest magnitude of their block, anywhere in the last cell of the
/// grid.
void add_companions(ErrorMoments& total, const Grid& grid, double factor, double largest,
                    double weight) {
  constexpr std::size_t kPlaces = 32;
  if (factor == 0 || weight == 0) return;
  const std::size_t cells = grid.cells.size();
  const double last = grid.cells[cells - 1].value,
               step = cells > 1 && last > 0 ? 1 - grid.cells[cells - 2].value / last : 0;
  std::array<float, kPlaces> x;
  for (std::size_t i = 0; i < kPlaces; ++i)
    x[i] =
        static_cast<float>(largest * (1 - step * (static_cast<double>(i) + 0.5) / double{kPlaces}));
  accumulate(total, grid.moments(factor, x.data(), kPlaces), weight, 1);
}

/// Of the elements of a part over its root mean square, which follow the density; `index` is the
/// extremal index. Sums over the
/// intervals of a block's largest magnitude that share a scale, from the top down to where no
/// block's is likely to lie. A rule of few scales is a step function: steps are found by bisection
/// of the float32 numbers. Scales of many bits are those in the middle of intervals, whose largest
/// number they put on the grid.
ErrorMoments part_moments(const LargestRule& rule, const Grid& grid,
                          const std::shared_ptr<const Density>& density, const FitCache::Part& part,
                          const std::map<std::int64_t, std::int64_t>& lengths, double index) {
  constexpr double kNegligible = 1e-12;
  const double interval = portable::exp(-portable::log(2.0) / kIntervals);
  const Magnitudes magnitudes{*density};
  const double zeros = density->zero_mass();  // blocks of zeros are exact
  double elements = 0;
  for (const auto& [size, count] : lengths) elements += static_cast<double>(count);
  ErrorMoments moments;
  float high = part.largest;
  while (high > 0) {
    auto low = static_cast<float>(high * interval);
    const auto middle = static_cast<float>(std::sqrt(double{high} * low));
    const double factor = rule.factor(rule.has_steps() ? high : middle);
    if (rule.has_steps()) {
      std::uint32_t below = 0, above = std::bit_cast<std::uint32_t>(high);  // factor(above) is it
      while (above - below > 1) {
        const std::uint32_t half = below + (above - below) / 2;
        (rule.factor(std::bit_cast<float>(half)) == factor ? above : below) = half;
      }
      low = std::bit_cast<float>(below);
    }
    const double top = high / part.rms, bottom = low / part.rms;
    const double within_top = magnitudes.within(top), within_bottom = magnitudes.within(bottom);
    double likely = 0;
    for (const auto& [size, count] : lengths) {
      const double share = static_cast<double>(count) / elements;
      const auto all = static_cast<double>(size);
      const double alone = Extremes::independent(index, size);
      const double likely_here =
          share * (portable::pow(within_top, alone) - portable::pow(within_bottom, alone));
      if (rule.has_steps()) {
        add_within(moments, grid, density, factor / part.rms, top,
                   share * portable::pow(within_top, alone - 1));
        add_within(moments, grid, density, factor / part.rms, bottom,
                   -share * portable::pow(within_bottom, alone - 1));
        // 1 / i elements have the size of the largest; the largest alone has its place on the grid.
        if (within_top > within_bottom && alone != all) {
          const double companions = likely_here * (1 / alone - 1 / all);
          const double each = companions / (within_top - within_bottom);
          add_within(moments, grid, density, factor / part.rms, top, -each);
          add_within(moments, grid, density, factor / part.rms, bottom, each);
          add_companions(moments, grid, factor / part.rms, top, companions);
        }
      } else {  // the largest is on the grid, and the others lie within it
        const auto largest = static_cast<float>(middle / part.rms);
        accumulate(moments, grid.moments(factor / part.rms, &largest, 1), likely_here / all, 1);
        add_companions(moments, grid, factor / part.rms, largest,
                       likely_here * (1 / alone - 1 / all));
        add_within(moments, grid, density, factor / part.rms, largest,
                   likely_here * (1 - 1 / alone) / magnitudes.within(largest));
      }
      likely = std::max(likely, portable::pow(within_bottom, alone) - portable::pow(zeros, alone));
    }
    if (likely < kNegligible || low == 0) break;
    high = low;
  }
  return moments;
}

/// Elements of a line that whole tiles cut.
std::int64_t tile_width(const BlockLayout& tiles) {
  const std::int64_t height = std::min(tiles.rows, tiles.length);
  return (height > 0 && tiles.length % height == 0 ? height : tiles.length) * tiles.inner;
}

}  // namespace

std::optional<FittedNoise> fitted_block_noise(const policies::RolePolicy& policy,
                                              const BlockLayout& layout, std::int64_t width,
                                              const TensorSource& source, const float* x,
                                              FitCache& fits) {
  if (policy.block->affine != Affine::sym) return std::nullopt;
  const LargestRule rule(policy, static_cast<float>(largest_magnitude(x, layout.elements())));
  if (rule.reads_elements()) return std::nullopt;
  const bool tiles = layout.span == Span::tile;
  const FitCache::Mixture& mixture = fits.mixture(
      source, x, layout.elements(), tiles ? tile_width(layout) : width, tiles ? layout.outer : 1);
  if (!mixture.best) return std::nullopt;
  const stats::Fit& fit = *mixture.best;
  FittedNoise noise{fit.family, fit.ks_distance, fit.threshold, fit.accepted(), {}};
  const Grid grid = grid_of(policy);
  std::map<std::int64_t, std::int64_t> lengths;  // block length -> elements in such blocks
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const std::int64_t size = layout.block(b).size();
    lengths[size] += size;
  }
  std::vector<std::shared_ptr<const Density>> densities;
  for (const FitCache::Part& part : mixture.parts) {
    const double reach = part.largest / part.rms;  // no element of the part lies beyond
    densities.push_back(truncated(fit.density, -reach, reach));
  }
  // Scales in powers of two hardly depend on it: a block's largest magnitude decides an octave.
  const double index =
      rule.puts_largest_on_grid()
          ? Extremes(mixture, densities, lengths).index(square_of_largest(layout, x))
          : 1;
  double power = 0;
  for (std::size_t p = 0; p < densities.size(); ++p) {
    const FitCache::Part& part = mixture.parts[p];
    accumulate(noise.moments, part_moments(rule, grid, densities[p], part, lengths, index),
               part.share, part.rms);
    power += part.share * part.rms * part.rms;
  }
  // What truncation takes away.
  if (noise.moments.signal > 0) {
    ErrorMoments whole;
    accumulate(whole, noise.moments, 1, std::sqrt(power / noise.moments.signal));
    whole.saturated = noise.moments.saturated;
    whole.flushed = noise.moments.flushed;
    noise.moments = whole;
  }
  return noise;
}

}  // namespace numemu::experiments

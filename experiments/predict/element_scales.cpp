#include "experiments/predict/element_scales.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/predict/block_noise.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/operands/scale_groups.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/stored_tensor.hpp"

namespace numemu::experiments {

std::int64_t samples_of(const InjectedRoles::Operand& operand, const net::Product& p,
                        net::Side which) {
  return policies::separable_samples(p, which,
                                     operand.one_sample || p.side(which).role == net::Role::weight);
}

namespace {

/// Scales of the elements of an operand without blocks, in its order.
void plain_scales(const InjectedRoles::Operand& operand, const net::Product& p, net::Side which,
                  float* scales) {
  const net::ProductSide& side = p.side(which);
  const std::int64_t n = side.source->size();
  if (operand.scale) {
    std::fill_n(scales, n, operand.scale->scale);
    return;
  }
  const policies::ScaleGroups groups = policies::scale_groups(
      operand.quantizer.policy(), operand.role, p, side, samples_of(operand, p, which));
  thread_local std::vector<float> copy;
  const float* const x = policies::in_groups(groups, side, copy);
  const std::vector<float> chosen = policies::choose_scales(operand.quantizer, x, n, groups.count);
  const std::int64_t each = n / groups.count;
  std::vector<float> expanded(static_cast<std::size_t>(n));
  for (std::int64_t g = 0; g < groups.count; ++g)
    std::fill_n(expanded.data() + g * each, each, chosen[g]);
  policies::from_groups(groups, side, expanded);
  std::copy(expanded.begin(), expanded.end(), scales);
}

/// The factor of its block for every element.
void expand(const BlockLayout& layout, const std::vector<double>& factors, float* scales) {
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const BlockElements block = layout.block(b);
    const auto factor = static_cast<float>(factors[b]);
    if (block.contiguous()) {
      std::fill_n(scales + block.first, block.size(), factor);
    } else {
      block.for_each([&](std::int64_t i) { scales[i] = factor; });
    }
  }
}

/// The least element of its block for every element, where codes count from there.
void expand_minima(const BlockLayout& layout, const float* x, float* shifts) {
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const BlockElements block = layout.block(b);
    float low = HUGE_VALF;
    block.for_each([&](std::int64_t i) { low = std::min(low, x[i]); });
    block.for_each([&](std::int64_t i) { shifts[i] = low; });
  }
}

/// The same of one in blocks, which run along the lines that the product reduces; of minima the
/// shifts, too.
void line_scales(const InjectedRoles::Operand& operand, const net::Product& p, net::Side which,
                 float* scales, std::vector<float>& shifts) {
  const net::ProductSide& side = p.side(which);
  const policies::RolePolicy& policy = operand.quantizer.policy();
  const bool along_depth = policy.axis == policies::BlockAxis::reduction || operand.slices;
  const bool in_order =
      along_depth && side.role == net::Role::weight && policies::reads_in_order(p, which);
  const policies::Lines lines = in_order ? policies::Lines(side, p.k) : policies::Lines(p, which);
  const bool turned = lines.transposed && lines.across != 1;
  const float* x = side.source->data.data();
  thread_local std::vector<float> copy, factors;
  if (turned) {
    copy.resize(static_cast<std::size_t>(lines.elements()));
    factors.resize(copy.size());
    transpose(x, lines.outer, lines.length, lines.across, copy.data());
    x = copy.data();
  }
  float* const to = turned ? factors.data() : scales;
  const std::int64_t samples = policy.block->tensor_scale ? samples_of(operand, p, which) : 1;
  const std::int64_t share = lines.lines / samples;
  const BlockLayout layout = block_layout(*policy.block, {share, lines.length}, 1);
  for (std::int64_t s = 0; s < samples; ++s)
    expand(layout, block_factors(policy, layout, x + s * share * lines.length),
           to + s * share * lines.length);
  if (turned) transpose(to, lines.outer, lines.across, lines.length, scales);
  if (policy.block->affine != Affine::min) return;
  shifts.resize(static_cast<std::size_t>(lines.elements()));
  std::vector<float> minima(turned ? shifts.size() : 0);
  expand_minima(layout, x, turned ? minima.data() : shifts.data());
  if (turned) transpose(minima.data(), lines.outer, lines.across, lines.length, shifts.data());
}

/// The same of a weight in tiles.
void tile_scales(const InjectedRoles::Operand& operand, const net::Tensor& weight, float* scales) {
  const policies::RolePolicy& policy = operand.quantizer.policy();
  const std::int64_t outputs = weight.dim(0);
  const BlockLayout tiles = tile_layout(
      policy, operand.slices ? net::Shape{outputs, weight.size() / outputs} : weight.shape);
  std::vector<float> elements;
  const std::vector<double> factors =
      block_factors(policy, tiles, in_layout(tiles, weight.data.data(), elements));
  elements.resize(weight.data.size());
  expand(tiles, factors, elements.data());
  from_layout(tiles, elements.data(), scales);
}

}  // namespace

ElementScales operand_scales(const InjectedRoles::Operand& operand, const net::Product& p,
                             net::Side which) {
  const net::Tensor& x = *p.side(which).source;
  ElementScales out{std::vector<float>(x.data.size()), {}};
  if (operand.quantizer.policy().granularity == policies::Granularity::tile) {
    tile_scales(operand, x, out.scales.data());
  } else if (operand.quantizer.blocks()) {
    line_scales(operand, p, which, out.scales.data(), out.shifts);
  } else {
    plain_scales(operand, p, which, out.scales.data());
  }
  return out;
}

std::vector<float> table_scales(const InjectedRoles::Operand& operand,
                                const net::Tensor& parameter) {
  const policies::RolePolicy& policy = operand.quantizer.policy();
  const std::int64_t n = parameter.size();
  const float* const x = parameter.data.data();
  std::vector<float> scales(parameter.data.size());
  if (operand.quantizer.blocks()) {
    const BlockLayout layout = block_layout(*policy.block, parameter.shape, -1);
    expand(layout, block_factors(policy, layout, x), scales.data());
  } else {
    const std::int64_t groups =
        policy.granularity == policies::Granularity::channel ? parameter.dim(0) : 1;
    const std::vector<float> chosen = policies::choose_scales(operand.quantizer, x, n, groups);
    for (std::int64_t g = 0; g < groups; ++g)
      std::fill_n(scales.data() + g * (n / groups), n / groups, chosen[g]);
  }
  return scales;
}

ElementScales stored_scales(const InjectedRoles::Operand& operand, const net::Shape& shape,
                            std::int64_t samples, const net::Tensor& finite) {
  const policies::RolePolicy& policy = operand.quantizer.policy();
  const std::int64_t n = finite.size(), last = finite.shape.back();
  std::vector<float> scales(finite.data.size()), shifts;
  if (operand.quantizer.blocks()) {
    const std::int64_t shares = policy.block->tensor_scale && n % samples == 0 ? samples : 1;
    const std::int64_t share = n / shares;
    const BlockLayout layout = block_layout(*policy.block, {share / last, last}, 1);
    for (std::int64_t s = 0; s < shares; ++s)
      expand(layout, block_factors(policy, layout, finite.data.data() + s * share),
             scales.data() + s * share);
    if (policy.block->affine == Affine::min) {
      shifts.resize(scales.size());
      expand_minima(layout, finite.data.data(), shifts.data());
    }
  } else {
    const std::int64_t groups = policies::stored_groups(policy, shape, samples);
    const std::vector<float> chosen =
        policies::choose_scales(operand.quantizer, finite.data.data(), n, groups);
    for (std::int64_t g = 0; g < groups; ++g)
      std::fill_n(scales.data() + g * (n / groups), n / groups, chosen[g]);
  }
  return {std::move(scales), std::move(shifts)};
}

}  // namespace numemu::experiments

#include "policies/recipe/clipped.hpp"

#include <cmath>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "policies/recipe/block_lines.hpp"

namespace numemu::policies {
namespace {

/// What the elements of a role's format reach, before the scale.
struct Reach {
  double low, high;
};
Reach reach_of(const RoleQuantizer& quantizer) {
  const double high = largest_element(quantizer.conversion());
  return {quantizer.policy().format->is_signed ? -high : 0, high};
}

}  // namespace

Saturated saturated_elements(const RoleQuantizer& quantizer, const net::Tensor& x,
                             const std::vector<float>& scales) {
  const Reach reach = reach_of(quantizer);
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  const std::int64_t size = groups == 0 ? 0 : x.size() / groups;
  Saturated mask(x.data.size());
  net::for_each_row(groups, size, [&](std::int64_t g) {
    // At most 24 + 24 bits: exact.
    const double low = reach.low * scales[g], high = reach.high * scales[g];
    for (std::int64_t i = g * size; i < (g + 1) * size; ++i)
      mask[i] = x.data[i] > high || x.data[i] < low;
  });
  return mask;
}

Saturated saturated_blocks(const RoleQuantizer& quantizer, const net::ProductSide& side,
                           const RandomPiece& random) {
  const Format& element = *quantizer.policy().block->element;
  if (element.bits > 8)
    throw Error("straight_through clipped: expected block elements of at most 8 bits, found " +
                element.name);
  LineCodes codes;
  std::vector<float> y;
  quantize_lines(quantizer, side, random, 1, codes);
  quantize_lines(quantizer, side, random, 1, y);
  Conversion conversion = quantizer.conversion();
  conversion.format = &element;
  const double high = largest_element(conversion), low = element.is_signed ? -high : 0;
  const float* const values = decode_table(element);
  const Lines lines(side);
  const std::int64_t matrix = lines.length * lines.across;
  Saturated mask(y.size());
  net::for_each_element(static_cast<std::int64_t>(y.size()), [&](std::int64_t i) {
    const std::int64_t in = i % matrix;
    const std::int64_t at =
        lines.transposed ? i - in + in % lines.across * lines.length + in / lines.across : i;
    const double value = values[codes.codes[at]];
    const float x = side.source->data[i];
    mask[i] = (value == high && x > y[i]) || (value == low && x < y[i]);
  });
  return mask;
}

void ClippedMasks::push(Saturated a, Saturated b) {
  if (a.empty() && b.empty()) return;
  entries_.push_back({{std::move(a), std::move(b)}, {false, false}});
}

void ClippedMasks::apply(const net::Product& p) {
  const std::size_t side = p.kind == net::GemmKind::dgrad ? 0 : 1;
  for (std::size_t e = entries_.size(); e-- > 0;) {
    Entry& entry = entries_[e];
    if (entry.used[side]) continue;
    entry.used[side] = true;
    const Saturated& mask = entry.mask[side];
    if (mask.empty()) return;
    const std::int64_t size = p.d_stack.count() * p.m * p.n;
    if (size != static_cast<std::int64_t>(mask.size())) {
      throw Error("layer " + std::string(p.layer) + ", " + std::string(net::to_string(p.kind)) +
                  ": straight_through clipped: a gradient of " + std::to_string(size) +
                  " elements for an operand of " + std::to_string(mask.size()));
    }
    net::for_each_element(size, [&](std::int64_t i) { p.d[i] = mask[i] != 0 ? 0.0f : p.d[i]; });
    while (!entries_.empty() && entries_.back().used[0] && entries_.back().used[1])
      entries_.pop_back();
    return;
  }
}

}  // namespace numemu::policies

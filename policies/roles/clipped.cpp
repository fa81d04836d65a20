// The clipped straight-through estimator: gradients of elements that saturated in forward are zero.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/random_identity.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/fixed_ranges.hpp"

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

/// 1 where an element of the source lies beyond the largest (or below the smallest) element of the
/// format under its scale, in the order of the source.
using Saturated = std::vector<std::uint8_t>;

/// Of a source under one scale for every equal share.
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

/// Of a source quantized by blocks along its lines (`axis` channel).
Saturated saturated_blocks(const RoleQuantizer& quantizer, const net::Product& product,
                           net::Side which, const RandomPiece& random) {
  const net::ProductSide& side = product.side(which);
  const Format& element = *quantizer.policy().block->element;
  if (element.bits > 8)
    throw Error("straight_through clipped: expected block elements of at most 8 bits, found " +
                element.name);
  LineCodes codes;
  std::vector<float> y;
  const Lines lines(product, which);
  quantize_lines(quantizer, side, lines, random, 1, codes);
  quantize_lines(quantizer, side, lines, random, 1, y);
  Conversion conversion = quantizer.conversion();
  conversion.format = &element;
  const double high = largest_element(conversion), low = element.is_signed ? -high : 0;
  const float* const values = decode_table(element);
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

/// The masks of one layer in one step. A layer may multiply several times in a step (recurrence):
/// backward meets its products in the opposite order.
class ClippedMasks {
 public:
  /// Of a forward product, empty for a side that is not clipped.
  void push(Saturated a, Saturated b) {
    if (a.empty() && b.empty()) return;
    entries_.push_back({{std::move(a), std::move(b)}, {false, false}});
  }

  /// Zeros in the result of dgrad (the gradient of A) or wgrad (that of B). Throws Error when the
  /// result has another size than the operand of the forward product it belongs to.
  void apply(const net::Product& p) {
    const std::size_t side = p.kind == net::GemmKind::dgrad ? 0 : 1;
    for (std::size_t e = entries_.size(); e-- > 0;) {
      Entry& entry = entries_[e];
      if (entry.used[side]) continue;
      entry.used[side] = true;
      const Saturated& mask = entry.mask[side];
      if (mask.empty()) return;
      const std::int64_t size = p.d_stack.count() * p.m * p.n;
      if (size != static_cast<std::int64_t>(mask.size())) {
        throw Error(
            fmt::format("layer {}, {}: straight_through clipped: a gradient of {} elements for an "
                        "operand of {}",
                        p.layer, net::to_string(p.kind), size, mask.size()));
      }
      net::for_each_element(size, [&](std::int64_t i) { p.d[i] = mask[i] != 0 ? 0.0f : p.d[i]; });
      while (!entries_.empty() && entries_.back().used[0] && entries_.back().used[1])
        entries_.pop_back();
      return;
    }
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Saturated mask[2];
    bool used[2] = {false, false};
  };
  std::vector<Entry> entries_;
};

/// The mask of the right operand in the order of its gradient: where it is read along its rows,
/// [outer, k, inner, n], wgrad gives [outer, inner, n, k].
Saturated as_gradient(const net::ProductSide& b, Saturated mask) {
  if (mask.empty() || !b.along_rows) return mask;
  const net::Stack& stack = b.stack;
  const std::int64_t rows = stack.rows(b.source->size());
  Saturated turned(mask.size());
  std::size_t to = 0;
  for (std::int64_t matrix = 0; matrix < stack.count(); ++matrix) {
    for (std::int64_t column = 0; column < stack.width; ++column) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t line =
            (matrix / stack.inner * rows + row) * stack.inner + matrix % stack.inner;
        turned[to++] = mask[static_cast<std::size_t>(line * stack.width + column)];
      }
    }
  }
  return turned;
}

bool clips(const std::optional<RolePolicy>& role) {
  return role && role->straight_through == StraightThrough::clipped;
}

struct ClippedLayer {
  std::optional<RoleQuantizer> weight, activation;  ///< of the roles that are clipped
  bool apart = false;  ///< the right operand is a key or value with a role of its own
  ClippedMasks masks;  ///< of the step that is running
};

class Clipped final : public Policy, public LeavesWeights {
 public:
  Clipped(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const auto& [gemm, recipe] : binding().recipe.products()) {
      if (!binding().layers.contains(gemm.name)) continue;
      ClippedLayer& layer = layers_[gemm.name];
      layer.apart = recipe.apart(gemm.right);
      if (clips(recipe[RolePart::weight])) layer.weight.emplace(*recipe[RolePart::weight]);
      if (clips(recipe[RolePart::activation]))
        layer.activation.emplace(*recipe[RolePart::activation]);
    }
  }

  void begin_step(const net::Step& step) override {
    Forwarding::begin_step(step);
    if (step.phase == net::Phase::inference) return;
    for (auto& [name, layer] : layers_) layer.masks.clear();
  }

  void product(const net::Step& step, const net::Product& product) override {
    Forwarding::product(step, product);
    if (step.phase == net::Phase::inference) return;
    const auto found = layers_.find(product.layer);
    if (found == layers_.end()) return;
    const net::Section section(net::SectionKind::quantize, product.layer,
                               net::to_string(product.kind));
    ClippedLayer& layer = found->second;
    if (product.kind != net::GemmKind::fprop) return layer.masks.apply(product);
    layer.masks.push(saturated(step, layer, product, net::Side::a),
                     as_gradient(product.b, saturated(step, layer, product, net::Side::b)));
  }

 private:
  Saturated saturated(const net::Step& step, const ClippedLayer& layer, const net::Product& product,
                      net::Side which) const {
    const net::ProductSide& side = product.side(which);
    const std::optional<RoleQuantizer>& quantizer =
        side.role == net::Role::weight ? layer.weight : layer.activation;
    if (!quantizer || (layer.apart && which == net::Side::b)) return {};
    const net::Tensor& x = *side.source;
    const RolePolicy& policy = quantizer->policy();
    if (quantizer->blocks()) {
      if (policy.axis == BlockAxis::reduction) {
        throw Error(
            fmt::format("layer {}: roles.{}.straight_through: clipped has no meaning for "
                        "blocks of axis reduction, where an element has several codes",
                        product.layer, net::to_string(side.role)));
      }
      RandomPiece random;
      if (quantizer->stochastic())
        random.source = operand_random(binding().recipe->seed(), product.layer, side.role,
                                       step.index, product.kind, product.repetition_in(step));
      return saturated_blocks(*quantizer, product, which, random);
    }
    if (policy.zero_point) {
      const ValueRange range =
          range_of(policy, quantizer->scale_of_elements(x.data.data(), x.size()));
      Saturated mask(x.data.size());
      net::for_each_element(x.size(), [&](std::int64_t i) {
        mask[i] = x.data[i] > range.high || x.data[i] < range.low;
      });
      return mask;
    }
    if (side.scale) return saturated_elements(*quantizer, x, {*side.scale});
    const std::int64_t groups = policy.granularity == Granularity::channel ? x.dim(0)
                                : policy.granularity == Granularity::row
                                    ? x.size() / side.stack.width
                                    : 1;
    return saturated_elements(*quantizer, x,
                              choose_scales(*quantizer, x.data.data(), x.size(), groups));
  }

  std::map<std::string, ClippedLayer, std::less<>> layers_;
};

}  // namespace

extern const PolicyKind roles_clipped{
    .key = "roles.ste",
    .name = "clipped",
    .summary = "gradients of weights and activations that saturated in forward are zero",
    .source = "Hubara et al., NeurIPS 2016 (arXiv 1602.02830)",
    .bind = make_policy<Clipped>,
    .chosen_by = [](const Recipe&, const LayerRecipe& layer) {
      return clips(layer[RolePart::weight]) || clips(layer[RolePart::activation]);
    }};

}  // namespace numemu::policies

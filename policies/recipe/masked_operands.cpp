#include "policies/recipe/masked_operands.hpp"

#include <fmt/format.h>

#include "emu/net/profile.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

using net::GemmKind;
using net::Phase;
using net::Role;

std::string_view axis_name(const MaskPolicy& mask, bool along_rows) {
  if (mask.propagated) return "mask-input";
  if (mask.rule->span == MaskSpan::tensor) return "mask-element";
  return along_rows ? "mask-batch" : "mask-channel";
}

}  // namespace

RandomSource activation_mask_random(std::uint64_t seed, std::string_view layer,
                                    const MaskPolicy& mask) {
  return mask_random(seed, fmt::format("{}/activation/0/{}", layer, axis_name(mask, false)));
}

MaskedOperands::MaskedOperands(RecipeLayer& layer, const net::Product& product,
                               const ProductRun& run)
    : layer_(layer), run_(run), product_(product) {
  if (!layer.masked) return;
  for (net::ProductSide* side : {&product_.a, &product_.b}) {
    try {
      mask_side(*side, side == &product_.a ? a_ : b_);
    } catch (const Error& error) {
      throw Error(fmt::format("layer {}, {}: roles.{}: {}", product.layer,
                              net::to_string(product.kind), net::to_string(side->role),
                              error.what()));
    }
  }
}

RandomSource MaskedOperands::random(Role role, std::string_view axis) const {
  const std::string times = run_.repetition == 0 ? "" : fmt::format(".{}", run_.repetition);
  return mask_random(run_.seed, fmt::format("{}/{}/{}{}/{}", product_.layer, net::to_string(role),
                                            run_.step, times, axis));
}

double MaskedOperands::threshold(const MaskPolicy& mask, Role role, const float* x,
                                 std::int64_t n) {
  if (mask.rule->threshold == nullptr) return 0;
  const auto own = [&] { return mask.rule->threshold(mask, x, n); };
  if (run_.phase == Phase::inference || role != Role::gradient) return own();
  return layer_.gradient_thresholds(product_.kind, mask.propagated)
      .of(run_.repetition, n, mask.history, own);
}

void MaskedOperands::prune(const MaskPolicy& mask, Role role, const RandomSource& random,
                           const MaskLayout& layout, std::int64_t samples, const float* x,
                           float* y) {
  std::uint64_t first = 0;
  if (run_.phase == Phase::inference && samples > 0)
    first =
        static_cast<std::uint64_t>(run_.first_sample) * (decision_count(mask, layout) / samples);
  if (mask.rule->span != MaskSpan::tensor || run_.phase == Phase::training) {
    mask_tensor(mask, random, layout, first, threshold(mask, role, x, layout.size()), x, y,
                nullptr);
    return;
  }
  // In inference a sample's result does not depend on its neighbours.
  const std::int64_t each = layout.size() / std::max<std::int64_t>(1, samples);
  for (std::int64_t s = 0; s < samples; ++s) {
    const float* const from = x + s * each;
    mask_tensor(mask, random, {.width = each}, first + static_cast<std::uint64_t>(s * each),
                threshold(mask, role, from, each), from, y + s * each, nullptr);
  }
}

void MaskedOperands::require_maskable(const MaskPolicy& mask, const net::ProductSide& side,
                                      bool along_rows) const {
  const auto refuse = [&](const char* why) {
    throw Error(fmt::format("mask {}: {}", to_string(mask), why));
  };
  if (run_.repetition > 0 && side.role == Role::activation && mask.rule->random)
    refuse(
        "expected a rule without draws for an activation that is multiplied time step by time "
        "step, which wgrad reads at once");
  if (run_.repetition > 0 && mask.history > 0)
    refuse("expected history=0 for a layer that multiplies several times in a step");
  if (!along_rows || product_.kind != GemmKind::wgrad || mask.rule->span == MaskSpan::tensor)
    return;
  const std::vector<std::int32_t>& depth = side.gather->depth;
  for (std::size_t k = 0; k < depth.size(); ++k) {
    if (depth[k] != static_cast<std::int64_t>(k) * side.stack.width)
      refuse("expected no groups over the batch of a recurrence, whose wgrad leaves out rows");
  }
}

void MaskedOperands::mask_side(net::ProductSide& side, net::Tensor& copy) {
  const std::optional<MaskPolicy>& mask = layer_.recipe.mask(side.role, product_.kind);
  if (!mask || mask->propagated) return;
  const net::Section section(net::SectionKind::mask, product_.layer, net::to_string(product_.kind));
  const net::Tensor& x = *side.source;
  if (side.role == Role::weight) {
    WeightMask& weight = *layer_.weight_mask;
    const std::int64_t matrices = side.stack.count();
    weight_ = run_.phase == Phase::training ? weight.in_step(x, matrices, run_.step)
              : run_.frozen                 ? weight.fixed(x, matrices)
                                            : weight.passing(x, matrices);
    side.source = weight_.get();
    return;
  }
  const bool along_rows = side.role == Role::gradient &&
                          (product_.kind == GemmKind::wgrad || mask->axis == MaskAxis::batch);
  require_maskable(*mask, side, along_rows);
  const MaskLayout layout{side.stack.outer, side.stack.rows(x.size()), side.stack.inner,
                          side.stack.width, along_rows};
  copy.shape = x.shape;
  copy.data.resize(x.data.size());
  prune(*mask, side.role, random(side.role, axis_name(*mask, along_rows)), layout,
        separable_samples(product_, side), x.data.data(), copy.data.data());
  side.source = &copy;
}

void MaskedOperands::prune_result() {
  if (!layer_.masked || product_.kind != GemmKind::dgrad) return;
  const std::optional<MaskPolicy>& mask = layer_.recipe.gradient_dgrad_mask;
  if (!mask || !mask->propagated) return;
  const net::Section section(net::SectionKind::mask, product_.layer, "dgrad");
  const net::Stack& stack = product_.d_stack;
  const MaskLayout layout{stack.outer, product_.m, stack.inner, product_.n,
                          mask->axis == MaskAxis::batch};
  a_.data.assign(product_.d, product_.d + layout.size());
  prune(*mask, Role::gradient, random(Role::gradient, "mask-input"), layout, 1, a_.data.data(),
        product_.d);
}

}  // namespace numemu::policies

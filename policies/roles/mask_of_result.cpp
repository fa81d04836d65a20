// Masks of the gradient that dgrad gives (at=input): they prune it before clipped straight-through
// estimators write their zeros.
#include <fmt/format.h>

#include "emu/net/profile.hpp"
#include "policies/mask/prune.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

std::string threshold_name(std::string_view layer) {
  return fmt::format("recipe/threshold/{}/input", layer);
}

bool prunes_result(const Recipe&, const LayerRecipe& layer) {
  return layer.masks[RolePart::gradient_dgrad] && layer.masks[RolePart::gradient_dgrad]->propagated;
}

class MaskOfResult final : public Policy {
 public:
  MaskOfResult(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const auto& [gemm, recipe] : binding().recipe.products()) {
      if (binding().layers.contains(gemm.name))
        layers_[gemm.name].mask = *recipe.masks[RolePart::gradient_dgrad];
    }
  }

  void begin_step(const net::Step& step) override {
    Forwarding::begin_step(step);
    if (step.phase == net::Phase::inference) return;
    for (auto& [name, layer] : layers_) layer.thresholds.begin_step();
  }

  void product(const net::Step& step, const net::Product& product) override {
    Forwarding::product(step, product);
    if (product.kind != net::GemmKind::dgrad) return;
    const auto found = layers_.find(product.layer);
    if (found == layers_.end()) return;
    const net::Section section(net::SectionKind::mask, product.layer, "dgrad");
    Layer& layer = found->second;
    Pruning pruning = pruning_of(binding().recipe->seed(), step, product, net::Role::gradient);
    pruning.axis = "mask-input";
    if (step.phase == net::Phase::training) pruning.thresholds = &layer.thresholds;
    const net::Stack& stack = product.d_stack;
    const MaskLayout layout{stack.outer, product.m, stack.inner, product.n,
                            layer.mask.axis == MaskAxis::batch};
    const std::vector<float> dense(product.d, product.d + layout.size());
    prune(layer.mask, pruning, layout, 1, dense.data(), product.d);
  }

  void save_state(net::NamedState& state) const override {
    for (const auto& [name, layer] : layers_)
      state.emplace_back(threshold_name(name), layer.thresholds.state());
    Forwarding::save_state(state);
  }

  void load_state(const net::NamedState& state) override {
    const std::map<std::string, std::string> by_name(state.begin(), state.end());
    for (auto& [name, layer] : layers_) {
      const auto found = by_name.find(threshold_name(name));
      layer.thresholds.load(threshold_name(name), found == by_name.end() ? "" : found->second);
    }
    Forwarding::load_state(state);
  }

 private:
  struct Layer {
    MaskPolicy mask;
    StepThresholds thresholds;
  };
  std::map<std::string, Layer, std::less<>> layers_;
};

}  // namespace

extern const PolicyKind roles_mask_of_result{
    .key = "roles.gradient.mask",
    .name = "at=input",
    .summary = "what dgrad gives keeps the elements of its mask",
    .source = "see [masks.md](masks.md)",
    .bind = make_policy<MaskOfResult>,
    .chosen_by = prunes_result};

}  // namespace numemu::policies

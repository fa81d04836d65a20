// Masks of operands: a weight has one mask in all its products; so has an activation, whose groups
// run along the channels; a gradient is masked for the product that reads it: along the channels in
// dgrad, over batch and space in wgrad or with axis=batch. Draws of weights do not depend on the
// step (weight_mask_random()), those of others do (prune()): products that read one tensor along
// one axis read the same pruned tensor.
#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/adaprune.hpp"
#include "policies/mask/prune.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

using net::GemmKind;
using net::Phase;
using net::Role;

constexpr std::array<const char*, 2> kThresholdPlaces = {"dgrad", "wgrad"};

std::string mask_name(std::string_view layer) { return fmt::format("recipe/mask/{}", layer); }

std::string threshold_name(std::string_view layer, std::size_t place) {
  return fmt::format("recipe/threshold/{}/{}", layer, kThresholdPlaces[place]);
}

std::string_view axis_name(const MaskPolicy& mask, bool along_rows) {
  if (mask.rule->span == MaskSpan::tensor) return "mask-element";
  return along_rows ? "mask-batch" : "mask-channel";
}

/// Whether the mask is one of an operand, not of what dgrad gives.
bool reads(const std::optional<MaskPolicy>& mask) { return mask && !mask->propagated; }

/// The parameter that is a layer's weight.
std::string parameter_name(const net::GemmLayer& layer) {
  for (const net::Parameter& parameter : std::as_const(*layer.node->op).parameters()) {
    if (&parameter.value == layer.weight) return parameter.name;
  }
  return "";
}

struct MaskedLayer {
  PerRolePart<std::optional<MaskPolicy>> masks;
  std::unique_ptr<WeightMask> weight;  ///< null without one
  /// Training: thresholds of the gradients that dgrad reads (and wgrad where its mask is the same),
  /// and that wgrad reads.
  std::array<StepThresholds, 2> thresholds;

  StepThresholds& thresholds_of(GemmKind kind) {
    const std::optional<MaskPolicy>& dgrad = masks[RolePart::gradient_dgrad];
    const std::optional<MaskPolicy>& wgrad = masks[RolePart::gradient_wgrad];
    const bool one = dgrad && wgrad && to_string(*dgrad) == to_string(*wgrad);
    return thresholds[kind == GemmKind::dgrad || one ? 0 : 1];
  }
};

class Masks final : public Policy, public RewritesInputs {
 public:
  Masks(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const BoundProduct& product : binding().recipe.products()) {
      if (binding().layers.contains(product.gemm.name)) add(product);
    }
  }

  void begin_step(const net::Step& step) override {
    Forwarding::begin_step(step);
    if (step.phase == Phase::inference) return;
    for (auto& [name, layer] : layers_) {
      for (StepThresholds& thresholds : layer.thresholds) thresholds.begin_step();
    }
  }

  void product(const net::Step& step, const net::Product& given) override {
    const auto found = layers_.find(given.layer);
    if (found == layers_.end()) return Forwarding::product(step, given);
    net::Product product = given;
    net::Tensor a, b;
    std::shared_ptr<const net::Tensor> weight;
    for (const net::Side which : {net::Side::a, net::Side::b}) {
      try {
        mask_side(step, found->second, product, which, which == net::Side::a ? a : b, weight);
      } catch (const Error& error) {
        throw Error(
            fmt::format("layer {}, {}: roles.{}: {}", given.layer, net::to_string(given.kind),
                        net::to_string(product.side(which).role), error.what()),
            error.kind());
      }
    }
    Forwarding::product(step, product);
  }

  void update(const net::Step& step, const net::Update& update) override {
    Forwarding::update(step, update);
    const auto masked = parameters_.find(update.parameter);
    if (masked != parameters_.end()) masked->second->settle(*update.value);
  }

  void freeze(const net::Graph& graph, const Calibration& calibration) override {
    frozen_ = true;
    std::set<std::string, std::less<>> repaired;
    for (auto& [name, layer] : layers_) {
      if (layer.weight == nullptr) continue;
      layer.weight->forget();
      if (layer.weight->policy().repair == Repair::adaprune) repaired.insert(name);
    }
    if (repaired.empty()) return;
    AdaPrune adaprune(repaired);
    calibration.for_each([&](std::int64_t, std::vector<net::Tensor> inputs) {
      net::forward(graph, std::move(inputs), adaprune);
    });
    for (const std::string& name : repaired) {
      WeightMask& mask = *layers_.find(name)->second.weight;
      const net::Tensor& weight = net::weight_of(graph, name);
      const std::int64_t matrices = adaprune.matrices(name);
      const std::vector<std::uint8_t> keep = mask.keep_of(weight, matrices);
      mask.fix(adaprune.solve(name, *mask.passing(weight, matrices), keep));
    }
  }

  void read_input(std::string_view name, std::int64_t first_sample, net::Tensor& x) const override {
    const auto found = layers_.find(name);
    if (found == layers_.end() || x.shape.empty() || x.size() == 0) return;
    const std::optional<MaskPolicy>& mask = found->second.masks[RolePart::activation];
    if (!mask) return;
    const Pruning pruning{.seed = binding().recipe->seed(),
                          .layer = name,
                          .axis = axis_name(*mask, false),
                          .first_sample = first_sample};
    const MaskLayout layout{.rows = x.size() / x.shape.back(), .width = x.shape.back()};
    const net::Tensor dense = x;
    prune(*mask, pruning, layout, x.dim(0), dense.data.data(), x.data.data());
  }

  void require_trainable(const std::string& where) const override {
    for (const auto& [name, layer] : layers_) {
      const std::optional<MaskPolicy>& mask = layer.masks[RolePart::weight];
      if (!mask || mask->repair != Repair::adaprune) continue;
      throw Error(
          fmt::format("{}: roles.weight.mask: layer {}: expected repair=none or "
                      "repair=absorb in training: adaprune solves trained weights",
                      where, name));
    }
  }

  void save_state(net::NamedState& state) const override {
    for (const auto& [name, layer] : layers_) {
      if (layer.weight) state.emplace_back(mask_name(name), layer.weight->state());
      for (std::size_t place = 0; place < layer.thresholds.size(); ++place)
        state.emplace_back(threshold_name(name, place), layer.thresholds[place].state());
    }
    Forwarding::save_state(state);
  }

  void load_state(const net::NamedState& state) override {
    const std::map<std::string, std::string> by_name(state.begin(), state.end());
    const auto load = [&](auto& part, const std::string& name) {
      const auto found = by_name.find(name);
      part.load(name, found == by_name.end() ? "" : found->second);
    };
    for (auto& [name, layer] : layers_) {
      if (layer.weight) load(*layer.weight, mask_name(name));
      for (std::size_t place = 0; place < layer.thresholds.size(); ++place)
        load(layer.thresholds[place], threshold_name(name, place));
    }
    Forwarding::load_state(state);
  }

 private:
  void add(const BoundProduct& product) {
    const auto& [gemm, roles] = product;
    MaskedLayer& layer = layers_[gemm.name];
    layer.masks = roles.masks;
    if (gemm.weight == nullptr) {
      if (!roles.masks[RolePart::activation]) return;
      throw Error(fmt::format(
          "{}: roles.activation.mask: layer {} multiplies two activations: expected null there (a "
          "layers entry of its own)",
          binding().where, gemm.name));
    }
    if (!roles.masks[RolePart::weight]) return;
    const MaskPolicy& mask = *roles.masks[RolePart::weight];
    at(fmt::format("{}: roles.weight.mask: layer {}", binding().where, gemm.name),
       [&mask, &gemm = gemm] { require_layout(mask, weight_layout(mask, gemm.weight->shape, 1)); });
    layer.weight = std::make_unique<WeightMask>(
        mask, weight_mask_random(binding().recipe->seed(), gemm.name, mask));
    parameters_[parameter_name(gemm)] = layer.weight.get();
  }

  void require_maskable(const net::Step& step, const MaskPolicy& mask, const net::Product& product,
                        const net::ProductSide& side, bool along_rows) const {
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("mask {}: {}", to_string(mask), why));
    };
    if (step.phase == Phase::training && product.repetition_in(step) > 0) {
      const bool recurrence = product.repetitions > 1;
      if (side.role == Role::activation && mask.rule->random) {
        refuse(recurrence
                   ? "expected a rule without draws for an activation that is multiplied time step "
                     "by time step, which wgrad reads at once"
                   : "expected a rule without draws for an activation where several workers or "
                     "micro-batches share a step");
      }
      if (mask.history > 0) {
        refuse(recurrence ? "expected history=0 for a layer that multiplies several times in a step"
                          : "expected history=0 where several workers or micro-batches share a "
                            "step: each gives a threshold");
      }
    }
    if (!along_rows || product.kind != GemmKind::wgrad || mask.rule->span == MaskSpan::tensor)
      return;
    const std::vector<std::int32_t>& depth = side.gather->depth;
    for (std::size_t k = 0; k < depth.size(); ++k) {
      if (depth[k] != static_cast<std::int64_t>(k) * side.stack.width)
        refuse("expected no groups over the batch of a recurrence, whose wgrad leaves out rows");
    }
  }

  /// Puts the masked source in place: `weight`, or in `copy`.
  void mask_side(const net::Step& step, MaskedLayer& layer, net::Product& product, net::Side which,
                 net::Tensor& copy, std::shared_ptr<const net::Tensor>& weight) const {
    net::ProductSide& side = product.side(which);
    const std::optional<MaskPolicy>& mask = layer.masks[operand_part(side.role, product.kind)];
    if (!reads(mask)) return;
    const net::Section section(net::SectionKind::mask, product.layer, net::to_string(product.kind));
    const net::Tensor& x = *side.source;
    const bool training = step.phase == Phase::training;
    if (side.role == Role::weight) {
      const std::int64_t matrices = side.stack.count();
      weight = training  ? layer.weight->in_step(x, matrices, step.index)
               : frozen_ ? layer.weight->fixed(x, matrices)
                         : layer.weight->passing(x, matrices);
      side.source = weight.get();
      return;
    }
    const bool along_rows = side.role == Role::gradient &&
                            (product.kind == GemmKind::wgrad || mask->axis == MaskAxis::batch);
    require_maskable(step, *mask, product, side, along_rows);
    Pruning pruning = pruning_of(binding().recipe->seed(), step, product, side.role);
    pruning.axis = axis_name(*mask, along_rows);
    if (training && side.role == Role::gradient)
      pruning.thresholds = &layer.thresholds_of(product.kind);
    const MaskLayout layout{side.stack.outer, side.stack.rows(x.size()), side.stack.inner,
                            side.stack.width, along_rows};
    copy.shape = x.shape;
    copy.data.resize(x.data.size());
    prune(*mask, pruning, layout, separable_samples(product, which, one_sample_), x.data.data(),
          copy.data.data());
    side.source = &copy;
  }

  std::map<std::string, MaskedLayer, std::less<>> layers_;
  std::map<std::string, WeightMask*, std::less<>> parameters_;  ///< weights with a mask
  const bool one_sample_ = takes_one_sample(binding().recipe.graph());
  bool frozen_ = false;
};

}  // namespace

extern const PolicyKind roles_mask{.key = "roles.mask",
                                   .name = "",
                                   .summary = "operands keep the elements of their masks",
                                   .source = "see [masks.md](masks.md)",
                                   .bind = make_policy<Masks>,
                                   .chosen_by = [](const Recipe&, const LayerRecipe& layer) {
                                     return layer.masks[RolePart::weight] ||
                                            layer.masks[RolePart::activation] ||
                                            reads(layer.masks[RolePart::gradient_dgrad]) ||
                                            reads(layer.masks[RolePart::gradient_wgrad]);
                                   }};

}  // namespace numemu::policies

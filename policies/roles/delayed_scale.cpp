// Delayed scales: the scale rule is applied to the largest magnitude of the last steps, as FP8
// training stacks do (NVIDIA's Transformer Engine, "max" over the history). The scale goes to the
// numerics below with the operand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "emu/net/profile.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

using Operand = std::pair<net::Role, net::GemmKind>;

constexpr std::array kKinds = {net::GemmKind::fprop, net::GemmKind::dgrad, net::GemmKind::wgrad};
constexpr std::array kRoles = {net::Role::weight, net::Role::activation, net::Role::gradient};

std::string history_name(std::string_view layer, const Operand& operand) {
  return fmt::format("recipe/history/{}/{}/{}", layer, net::to_string(operand.first),
                     net::to_string(operand.second));
}

/// One tensor's largest magnitudes, the last step's last.
class AmaxHistory {
 public:
  /// The largest magnitude of a tensor of the step that is running.
  void see(double magnitude) { running_ = std::max(running_.value_or(0), magnitude); }
  /// Keeps the last `length` steps.
  void end_step(std::int64_t length) {
    if (!running_) return;
    steps_.push_back(*running_);
    running_.reset();
    const auto size = static_cast<std::int64_t>(steps_.size());
    if (size > length) steps_.erase(steps_.begin(), steps_.begin() + (size - length));
  }
  /// Over the steps kept; nothing before the first has ended.
  std::optional<double> largest() const {
    if (steps_.empty()) return std::nullopt;
    return *std::max_element(steps_.begin(), steps_.end());
  }

  /// Of the steps that have ended.
  std::string state() const {
    std::vector<std::uint64_t> numbers;
    for (const double step : steps_) numbers.push_back(bits_of(step));
    return to_bytes(numbers);
  }
  void load(const std::string& name, const std::string& state) {
    steps_.clear();
    running_.reset();
    for (const std::uint64_t number : from_bytes(name, state)) steps_.push_back(double_of(number));
  }

 private:
  std::vector<double> steps_;
  std::optional<double> running_;
};

bool delayed(const std::optional<RolePolicy>& role) { return role && role->history > 0; }

struct DelayedLayer {
  std::map<Operand, RoleQuantizer> quantizers;  ///< of the operands with delayed scales
  std::map<Operand, AmaxHistory> histories;     ///< of those that were read
};

class DelayedScale final : public Policy {
 public:
  DelayedScale(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const auto& [gemm, recipe] : binding().recipe.products()) {
      if (!binding().layers.contains(gemm.name)) continue;
      for (const net::Role role : kRoles) {
        for (const net::GemmKind kind : kKinds) {
          const std::optional<RolePolicy>& policy = recipe.role(role, kind);
          if (delayed(policy))
            layers_[gemm.name].quantizers.emplace(Operand(role, kind), RoleQuantizer(*policy));
        }
      }
    }
  }

  void product(const net::Step& step, const net::Product& given) override {
    const auto found = layers_.find(given.layer);
    if (found == layers_.end()) return Forwarding::product(step, given);
    net::Product product = given;
    {
      const net::Section section(net::SectionKind::quantize, given.layer,
                                 net::to_string(given.kind));
      for (net::ProductSide* side : {&product.a, &product.b})
        side->scale = scale(step, found->second, product.kind, *side);
    }
    Forwarding::product(step, product);
  }

  void end_step(const net::Step& step) override {
    Forwarding::end_step(step);
    if (step.phase != net::Phase::training) return;
    for (auto& [name, layer] : layers_) {
      for (auto& [operand, history] : layer.histories)
        history.end_step(layer.quantizers.at(operand).policy().history);
    }
  }

  void save_state(net::NamedState& state) const override {
    for (const auto& [name, layer] : layers_) {
      for (const auto& [operand, history] : layer.histories)
        state.emplace_back(history_name(name, operand), history.state());
    }
    Forwarding::save_state(state);
  }

  void load_state(const net::NamedState& state) override {
    const std::map<std::string, std::string> by_name(state.begin(), state.end());
    for (auto& [name, layer] : layers_) {
      layer.histories.clear();
      for (const auto& [operand, quantizer] : layer.quantizers) {
        const auto history = by_name.find(history_name(name, operand));
        if (history != by_name.end())
          layer.histories[operand].load(history->first, history->second);
      }
    }
    Forwarding::load_state(state);
  }

 private:
  /// In inference that of the last steps, and only for activations: weights are at rest and have
  /// the scale of the tensor.
  static std::optional<float> scale(const net::Step& step, DelayedLayer& layer, net::GemmKind kind,
                                    const net::ProductSide& side) {
    const Operand operand(side.role, kind);
    const auto quantizer = layer.quantizers.find(operand);
    if (quantizer == layer.quantizers.end()) return std::nullopt;
    if (step.phase == net::Phase::inference) {
      const auto history = layer.histories.find(operand);
      if (side.role == net::Role::weight || history == layer.histories.end() ||
          !history->second.largest())
        return std::nullopt;
      return quantizer->second.scale_of_magnitude(*history->second.largest());
    }
    AmaxHistory& history = layer.histories[operand];
    const std::optional<double> largest = history.largest();
    history.see(parallel_magnitude(side.source->data.data(), side.source->size()));
    return largest ? quantizer->second.scale_of_magnitude(*largest) : 1.0f;
  }

  std::map<std::string, DelayedLayer, std::less<>> layers_;
};

}  // namespace

extern const PolicyKind roles_delayed_scale{
    .key = "roles.scale",
    .name = "delayed",
    .summary = "an operand's scale is that of the largest magnitude of the last steps",
    .source = "NVIDIA Transformer Engine, delayed scaling",
    .bind = make_policy<DelayedScale>,
    .chosen_by = [](const Recipe&, const LayerRecipe& layer) {
      return delayed(layer[RolePart::weight]) || delayed(layer[RolePart::activation]) ||
             delayed(layer[RolePart::gradient_dgrad]) || delayed(layer[RolePart::gradient_wgrad]);
    }};

}  // namespace numemu::policies

#include "experiments/predict/injected_network.hpp"

#include <algorithm>
#include <array>

namespace numemu::experiments {

/// Injected noise of every step that runs.
class InjectedNetwork::Draws final : public net::Numerics {
 public:
  explicit Draws(const UnitErrors& units) : units_(units) {}

  void set(const InjectedRoles& roles) { roles_ = &roles; }

  void begin_step(const net::Step& step) override {
    auto noise = std::make_unique<InjectedNoise>(*roles_, static_cast<int>(step.index), &units_,
                                                 lends_ ? &known_ : nullptr);
    const std::lock_guard lock(mutex_);
    steps_[step.index] = std::move(noise);
  }
  void end_step(const net::Step& step) override {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(step.index);
    if (!lends_) ended_[step.index] = {found->second->units(), found->second->unit_errors()};
    steps_.erase(found);
  }
  void product(const net::Step& step, const net::Product& p) override { at(step).product(step, p); }
  net::SharedTensor table(const net::Step& step, std::string_view node,
                          const net::Tensor& parameter) override {
    return at(step).table(step, node, parameter);
  }
  void vector_result(const net::Step& step, std::string_view layer, std::string_view op,
                     net::Tensor& x) override {
    at(step).vector_result(step, layer, op, x);
  }

  /// Sums in the order of the steps.
  std::map<std::string, UnitErrors::Sample> samples() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, UnitErrors::Sample> out;
    for (const auto& [step, ended] : ended_) {
      for (const auto& [layer, sample] : ended.samples) out[layer].add(sample);
    }
    return out;
  }

  void lend() {
    for (const auto& [step, ended] : ended_) {
      for (const auto& [layer, errors] : ended.errors) {
        std::vector<ResultError>& all = known_[layer];
        all.insert(all.end(), errors.begin(), errors.end());
      }
    }
    for (auto& [layer, errors] : known_) {
      std::ranges::stable_sort(errors, {}, &ResultError::result);
      const std::int64_t all = std::ssize(errors), kept = std::min(all, kKnownErrors);
      for (std::int64_t i = 0; i < kept; ++i) errors[i] = errors[i * all / kept];
      errors.resize(static_cast<std::size_t>(kept));
    }
    lends_ = true;
  }

 private:
  InjectedNoise& at(const net::Step& step) const {
    const std::lock_guard lock(mutex_);
    return *steps_.at(step.index);
  }

  struct Ended {
    std::map<std::string, UnitErrors::Sample> samples;
    InjectedNoise::KnownErrors errors;
  };
  const UnitErrors& units_;
  const InjectedRoles* roles_ = nullptr;
  InjectedNoise::KnownErrors known_;
  bool lends_ = false;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::unique_ptr<InjectedNoise>> steps_;
  std::map<std::int64_t, Ended> ended_;
};

bool acts_on_noise(std::string_view key) {
  constexpr std::array<std::string_view, 4> kKeys = {"transform", "norm", "roles.mask",
                                                     "roles.vector.mask"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

InjectedNetwork::InjectedNetwork(const policies::BoundRecipe& recipe,
                                 const policies::FloatReference& reference,
                                 const policies::StaticScales& static_scales)
    : recipe_(recipe),
      units_(recipe),
      draws_(std::make_unique<Draws>(units_)),
      stack_(recipe, *draws_,
             [](const policies::PolicyKind& kind) { return acts_on_noise(kind.key); }) {
  stack_.freeze(recipe.graph(), {std::min(reference.samples(), recipe->calibration().samples),
                                 [&reference](std::int64_t from, std::int64_t count) {
                                   std::vector<net::Tensor> batch;
                                   for (const net::Tensor& x : reference.batch)
                                     batch.push_back(policies::samples_of(x, from, count));
                                   return batch;
                                 }});
  roles_ = std::make_unique<InjectedRoles>(recipe, reference, static_scales, stack_.read_input());
  draws_->set(*roles_);
}
InjectedNetwork::~InjectedNetwork() = default;

void InjectedNetwork::begin_step(const net::Step& step) { stack_.top().begin_step(step); }
void InjectedNetwork::end_step(const net::Step& step) { stack_.top().end_step(step); }
void InjectedNetwork::product(const net::Step& step, const net::Product& p) {
  stack_.top().product(step, p);
}
net::SharedTensor InjectedNetwork::table(const net::Step& step, std::string_view node,
                                         const net::Tensor& parameter) {
  return stack_.top().table(step, node, parameter);
}
void InjectedNetwork::vector_result(const net::Step& step, std::string_view layer,
                                    std::string_view op, net::Tensor& x) {
  stack_.top().vector_result(step, layer, op, x);
}
net::NormRule InjectedNetwork::norm(const net::Step& step, std::string_view layer) {
  return stack_.top().norm(step, layer);
}

std::map<std::string, UnitError> InjectedNetwork::units() const {
  return units_.errors(draws_->samples());
}

void InjectedNetwork::begin_evaluation() { draws_->lend(); }

}  // namespace numemu::experiments

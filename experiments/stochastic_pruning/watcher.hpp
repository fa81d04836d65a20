// Watches the gradients of one training run: what models say pruning does to them, and what it
// does.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "experiments/stochastic_pruning/pruned.hpp"
#include "formats/storage/json.hpp"
#include "policies/mask/threshold_history.hpp"

namespace numemu::experiments::stochastic_pruning {

/// A law, and whether its second moments leave out the largest elements: which changes its
/// errors and cosines, not its zeros.
struct Model {
  const char* name;
  ThresholdLaw law;
  bool cut;
};
inline constexpr std::array<Model, 3> kModels = {
    {{"normal", ThresholdLaw::normal, false},
     {"lognormal", ThresholdLaw::lognormal, false},
     {"lognormal, cut", ThresholdLaw::lognormal, true}}};

/// What is looked at, and when.
struct WatchPlan {
  double share = 0;
  std::int64_t history = 0, observations = 0, steps = 0;
  std::uint64_t seed = 0;

  bool observes(std::int64_t step) const {
    return step == 0 || step * observations / steps != (step - 1) * observations / steps;
  }
};

class Watcher {
 public:
  explicit Watcher(const WatchPlan& plan) : plan_(plan) {}
  /// A product of a training step; only weight gradients matter, whose left operand is looked at.
  void see(const net::Product&, std::int64_t step);
  /// One record per layer and observed step: {step, layer, n, nonzero, MODEL: {scale, spread, cut,
  /// threshold, below, predicted, expected, measured}, history: {threshold, own, zeros}}.
  const Json& records() const { return records_; }

 private:
  Json of_model(const Model&, const std::vector<float>& g, const RandomSource&) const;

  WatchPlan plan_;
  std::map<std::string, policies::ThresholdHistory> histories_;
  Json records_ = Json::array();
};

}  // namespace numemu::experiments::stochastic_pruning

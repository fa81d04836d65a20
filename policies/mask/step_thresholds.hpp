// The pruning threshold of each tensor of a training step, its own or predicted from earlier ones.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "policies/mask/threshold_history.hpp"

namespace numemu::policies {

/// Of one mask of a layer's gradients. Products that read the same tensor in one step share its
/// threshold: it is known by the product's repetition in the step and the tensor's size.
class StepThresholds {
 public:
  /// history 0: own(). Else the mean of the last `history` thresholds, 0 (nothing is pruned) until
  /// there are that many; own() then joins them.
  double of(std::int64_t repetition, std::int64_t size, std::int64_t history,
            const std::function<double()>& own);
  void begin_step() { step_.clear(); }

  std::string state() const { return history_.state(); }
  void load(const std::string& name, const std::string& state) {
    step_.clear();
    history_.load(name, state);
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, double> step_;
  ThresholdHistory history_;
};

}  // namespace numemu::policies

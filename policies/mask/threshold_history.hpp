// The thresholds of the last steps, whose mean serves the next one before its tensor is known.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace numemu::policies {

/// One layer's first-in-first-out list (Ye et al.; specs/sparsity.md): a step prunes while it
/// streams, at the mean of the last thresholds, and appends the threshold of its own tensor.
class ThresholdHistory {
 public:
  /// Mean of the last `length` thresholds; nothing, and no pruning, until there are as many.
  std::optional<double> prediction(std::int64_t length) const;
  /// Appends the threshold of the step that ended and keeps the last `length`. One that is not
  /// finite and positive (a tensor of zeros, an overflow) is left out.
  void push(double threshold, std::int64_t length);

  /// For checkpoints, oldest first.
  std::string state() const;
  void load(const std::string& name, const std::string& state);

 private:
  std::vector<double> thresholds_;
};

// The pruning threshold of each tensor of a training step, its own or predicted from earlier ones.

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

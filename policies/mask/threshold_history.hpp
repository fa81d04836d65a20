// The thresholds of the last steps, whose mean serves the next one before its tensor is known.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
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

}  // namespace numemu::policies

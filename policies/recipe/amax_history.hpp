// Delayed scaling: the largest magnitudes of the last steps, as FP8 training stacks keep them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace numemu::policies {

/// One tensor's largest magnitudes, the last step's last. The rule of NVIDIA's Transformer Engine
/// ("max" over the history).
class AmaxHistory {
 public:
  /// The largest magnitude of a tensor of the step that is running.
  void see(double magnitude);
  /// Keeps the last `length` steps.
  void end_step(std::int64_t length);
  /// Over the steps kept; nothing before the first has ended.
  std::optional<double> largest() const;

  /// Of the steps that have ended.
  std::string state() const;
  void load(const std::string& name, const std::string& state);

 private:
  std::vector<double> steps_;
  std::optional<double> running_;
};

}  // namespace numemu::policies

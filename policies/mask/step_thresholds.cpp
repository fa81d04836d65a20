// Cold: a negligible share of any run (docs/build.md).
#include "policies/mask/step_thresholds.hpp"

namespace numemu::policies {

double StepThresholds::of(std::int64_t repetition, std::int64_t size, std::int64_t history,
                          const std::function<double()>& own) {
  const std::pair key(repetition, size);
  const auto found = step_.find(key);
  if (found != step_.end()) return found->second;
  double threshold = 0;
  if (history == 0) {
    threshold = own();
  } else {
    threshold = history_.prediction(history).value_or(0);
    history_.push(own(), history);
  }
  step_.emplace(key, threshold);
  return threshold;
}

}  // namespace numemu::policies

// Cold: a negligible share of any run (docs/build.md).
#include "policies/mask/threshold_history.hpp"

#include <cmath>

#include "policies/state_bytes.hpp"

namespace numemu::policies {

std::optional<double> ThresholdHistory::prediction(std::int64_t length) const {
  const auto size = static_cast<std::int64_t>(thresholds_.size());
  if (length < 1 || size < length) return std::nullopt;
  double sum = 0;
  for (std::int64_t i = size - length; i < size; ++i) sum += thresholds_[i];
  return sum / static_cast<double>(length);
}

void ThresholdHistory::push(double threshold, std::int64_t length) {
  if (!(threshold > 0) || !std::isfinite(threshold)) return;
  thresholds_.push_back(threshold);
  const auto size = static_cast<std::int64_t>(thresholds_.size());
  if (size > length) thresholds_.erase(thresholds_.begin(), thresholds_.begin() + (size - length));
}

std::string ThresholdHistory::state() const {
  std::vector<std::uint64_t> numbers;
  for (const double threshold : thresholds_) numbers.push_back(bits_of(threshold));
  return to_bytes(numbers);
}

void ThresholdHistory::load(const std::string& name, const std::string& state) {
  std::vector<double> thresholds;
  for (const std::uint64_t number : from_bytes(name, state)) {
    const double threshold = double_of(number);
    if (!(threshold > 0) || !std::isfinite(threshold))
      throw Error("state " + name + ": expected thresholds that are finite and positive");
    thresholds.push_back(threshold);
  }
  thresholds_ = std::move(thresholds);
}

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

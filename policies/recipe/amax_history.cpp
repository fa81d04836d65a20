#include "policies/recipe/amax_history.hpp"

#include <algorithm>

#include "policies/state_bytes.hpp"

namespace numemu::policies {

void AmaxHistory::see(double magnitude) { running_ = std::max(running_.value_or(0), magnitude); }

void AmaxHistory::end_step(std::int64_t length) {
  if (!running_) return;
  steps_.push_back(*running_);
  running_.reset();
  const auto size = static_cast<std::int64_t>(steps_.size());
  if (size > length) steps_.erase(steps_.begin(), steps_.begin() + (size - length));
}

std::optional<double> AmaxHistory::largest() const {
  if (steps_.empty()) return std::nullopt;
  return *std::max_element(steps_.begin(), steps_.end());
}

std::string AmaxHistory::state() const {
  std::vector<std::uint64_t> numbers;
  for (const double step : steps_) numbers.push_back(bits_of(step));
  return to_bytes(numbers);
}

void AmaxHistory::load(const std::string& name, const std::string& state) {
  steps_.clear();
  running_.reset();
  for (const std::uint64_t number : from_bytes(name, state)) steps_.push_back(double_of(number));
}

}  // namespace numemu::policies

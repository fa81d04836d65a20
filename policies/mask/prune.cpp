#include "policies/mask/prune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/mask/weight_mask.hpp"
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

namespace {

double threshold(const MaskPolicy& mask, const Pruning& pruning, const float* x, std::int64_t n) {
  if (mask.rule->threshold == nullptr) return 0;
  const auto own = [&] { return mask.rule->threshold(mask, x, n); };
  if (pruning.thresholds == nullptr) return own();
  return pruning.thresholds->of(pruning.repetition, n, mask.history, own);
}

}  // namespace

Pruning pruning_of(std::uint64_t seed, const net::Step& step, const net::Product& product,
                   net::Role role) {
  Pruning pruning{.seed = seed,
                  .phase = step.phase,
                  .layer = product.layer,
                  .role = role,
                  .first_sample = step.first_sample()};
  if (step.phase == net::Phase::training) {
    pruning.step = step.index;
    pruning.repetition = product.repetition_in(step);
  }
  return pruning;
}

void prune(const MaskPolicy& mask, const Pruning& pruning, const MaskLayout& layout,
           std::int64_t samples, const float* x, float* y) {
  const std::string times = pruning.repetition == 0 ? "" : fmt::format(".{}", pruning.repetition);
  const RandomSource random = mask_source(
      pruning.seed, fmt::format("{}/{}/{}{}/{}", pruning.layer, net::to_string(pruning.role),
                                pruning.step, times, pruning.axis));
  const bool training = pruning.phase == net::Phase::training;
  std::uint64_t first = 0;
  if (!training && samples > 0) {
    first = static_cast<std::uint64_t>(pruning.first_sample) *
            (decision_count(mask, layout) / static_cast<std::uint64_t>(samples));
  }
  if (mask.rule->span != MaskSpan::tensor || training) {
    mask_tensor(mask, random, layout, first, threshold(mask, pruning, x, layout.size()), x, y,
                nullptr);
    return;
  }
  // In inference a sample's result does not depend on its neighbours.
  const std::int64_t each = layout.size() / std::max<std::int64_t>(1, samples);
  for (std::int64_t s = 0; s < samples; ++s) {
    const float* const from = x + s * each;
    mask_tensor(mask, random, {.width = each}, first + static_cast<std::uint64_t>(s * each),
                threshold(mask, pruning, from, each), from, y + s * each, nullptr);
  }
}

}  // namespace numemu::policies

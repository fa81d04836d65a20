#include "experiments/optimizer_state/watch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/blocks/block_format.hpp"

namespace numemu::experiments::optimizer_state {
namespace {

constexpr int kBfloat16Mantissa = 7, kSmallestExponent = -126;

}  // namespace

Lost lost_update(float w, float d) {
  const int exponent = w == 0 ? kSmallestExponent : std::max(std::ilogb(w), kSmallestExponent);
  const double ratio = std::fabs(d) / std::ldexp(1.0, exponent - kBfloat16Mantissa);
  return {ratio < 0.5 ? 1.0 : 0.0, std::max(0.0, 1 - ratio)};
}

Watch::Watch(net::Numerics& inner, const net::TrainOptions& options, std::int64_t zeros_after,
             std::int64_t every, std::vector<Method> predicted)
    : Forwarding(inner),
      zeros_after_(zeros_after),
      every_(every),
      rate_(options.learning_rate),
      rest_(1 - options.beta2),
      predicted_(std::move(predicted)),
      zeros_of_(predicted_.size()) {}

void Watch::update(const net::Step& step, const net::Update& update) {
  const std::vector<float>& delta = *update.delta;
  const net::Elements& gradient = update.gradient->data;
  std::vector<float>& peak = peaks_[std::string(update.parameter)];
  peak.resize(delta.size());
  for (std::size_t i = 0; i < delta.size(); ++i) {
    peak[i] = std::max(peak[i], gradient[i] * gradient[i]);
    largest_ = std::max(largest_, std::fabs(delta[i]) / rate_);
  }
  const bool counted = step.index % every_ == every_ - 1;
  const net::Elements before = counted ? update.value->data : net::Elements();
  Forwarding::update(step, update);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (delta[i] == 0) continue;
    const Lost lost = lost_update(before[i], delta[i]);
    ++updates_;
    lost_ += before[i] == update.value->data[i];
    nearest_ += lost.nearest;
    stochastic_ += lost.stochastic;
  }
}

void Watch::for_each_block(const net::Tensor& tensor, const OfBlock& use) const {
  const auto size = static_cast<std::size_t>(find_block_format(predicted_[0].second).size);
  const auto length = static_cast<std::size_t>(tensor.shape.back());
  for (std::size_t first = 0; first < tensor.data.size();) {
    const std::size_t end = std::min(first + size, (first / length + 1) * length);
    use(first, end);
    first = end;
  }
}

/// A second moment below half of the smallest number of its block becomes 0 to nearest, and then
/// the next gradient g alone makes it (1 - beta2) g^2: it stays 0 unless one gradient lifts it.
/// What is above does not decay, nor does the largest of a block: beta2 takes off less than half a
/// step. Unbiased rounding leaves 0 with the probability 1 - v / smallest.
void Watch::predict(std::string_view parameter, const net::Tensor& second) {
  const std::vector<float>& peak = peaks_.find(parameter)->second;
  const std::vector<float>& highest = highest_.find(parameter)->second;
  for (std::size_t m = 0; m < predicted_.size(); ++m) {
    const Format& element = *find_block_format(predicted_[m].second).element;
    const double smallest = smallest_value(element) / largest_value(element);
    for_each_block(second, [&](std::size_t first, std::size_t end) {
      const auto* const v = second.data.data();
      const double most =
          predicted_[m].stochastic ? *std::max_element(v + first, v + end) : highest[first];
      for (std::size_t i = first; i < end; ++i) {
        if (peak[i] == 0) continue;
        const double steps =
            (predicted_[m].stochastic ? v[i] : rest_ * peak[i]) / (smallest * most);
        zeros_of_[m] += predicted_[m].stochastic ? std::max(0.0, 1 - steps) : steps < 0.5;
      }
    });
  }
}

void Watch::optimizer_state(const net::Step& step, std::string_view parameter,
                            std::string_view name, net::Tensor& state) {
  const bool second = name == "second", last = step.index + 1 == zeros_after_;
  if (second && !predicted_.empty()) {
    std::vector<float>& highest = highest_[std::string(parameter)];
    highest.resize(state.data.size());
    for_each_block(state, [&](std::size_t first, std::size_t end) {
      const auto* const v = state.data.data();
      highest[first] = std::max(highest[first], *std::max_element(v + first, v + end));
    });
    if (last) predict(parameter, state);
  }
  Forwarding::optimizer_state(step, parameter, name, state);
  if (!second || !last) return;
  const std::vector<float>& peak = peaks_.find(parameter)->second;
  for (std::size_t i = 0; i < peak.size(); ++i) {
    seconds_ += peak[i] > 0;
    zeros_ += peak[i] > 0 && state.data[i] == 0;
  }
}

Watched Watch::watched() const {
  Watched watched{.lost = lost_ / updates_,
                  .lost_nearest = nearest_ / updates_,
                  .lost_stochastic = stochastic_ / updates_,
                  .zeros = zeros_ / seconds_,
                  .largest = largest_};
  for (std::size_t m = 0; m < predicted_.size(); ++m)
    watched.zeros_of.emplace_back(predicted_[m].name, zeros_of_[m] / seconds_);
  return watched;
}

}  // namespace numemu::experiments::optimizer_state

// Sums over the steps of an epoch, and their means.
#include "emu/net/train/metrics.hpp"

#include <algorithm>
#include <numeric>

#include "emu/net/math.hpp"
#include "emu/net/train/step.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

double EpochSums::add(const StepResult& step, double rate) {
  const auto count = static_cast<std::int64_t>(step.seen.loss.size());
  const double step_loss = pairwise_sum(count, [&](std::int64_t i) { return step.seen.loss[i]; });
  const std::int64_t counted = step.seen.counted;
  loss += step_loss + step.penalty * static_cast<double>(counted);
  if (step.dropped > 0) dropped = dropped.value_or(0) + step.dropped;
  if (wire.empty()) wire.resize(step.wire.size());
  for (std::size_t p = 0; p < step.wire.size(); ++p) {
    wire[p].sent += step.wire[p].sent;
    wire[p].returned += step.wire[p].returned;
  }
  targets += counted;
  right += std::accumulate(step.seen.right.begin(), step.seen.right.end(), std::int64_t{0});
  ++steps;
  learning_rate = rate;
  loss_scale = double{step.loss_scale};
  if (step.accepted) {
    gradient_norm += step.gradient_norm;
  } else {
    ++skipped;
  }
  return (counted > 0 ? step_loss / static_cast<double>(counted) : 0) + step.penalty;
}

EpochMetrics EpochSums::metrics(std::int64_t epoch, std::int64_t step) const {
  EpochMetrics metrics;
  metrics.epoch = epoch;
  metrics.step = step;
  metrics.learning_rate = learning_rate;
  metrics.train_loss = loss / static_cast<double>(targets);
  metrics.train_top1 = static_cast<double>(right) / static_cast<double>(targets);
  const auto accepted = static_cast<double>(std::max<std::int64_t>(1, steps - skipped));
  if (steps > skipped) metrics.gradient_norm = gradient_norm / accepted;
  if (dropped) metrics.dropped = *dropped / static_cast<double>(steps);
  for (const WireBits& bits : wire)
    metrics.wire.push_back({bits.sent / accepted, bits.returned / accepted});
  metrics.skipped = skipped;
  metrics.loss_scale = loss_scale;
  return metrics;
}

double perplexity(double loss) { return double{exp(static_cast<float>(loss))}; }

double bits_per_character(double loss) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  return loss / kLn2;
}

}  // namespace numemu::net

#include "experiments/layer_parallel/speed.hpp"

#include <algorithm>

namespace numemu::experiments::layer_parallel {

using delayed_weights::Stage;

Ticks Rounds::serial() const {
  Ticks sum = 0;
  for (const Stage& stage : stages) sum += stage.forward + stage.backward;
  return sum;
}

double Rounds::period() const {
  double longest = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const auto own = static_cast<double>(stages[k].forward + stages[k].backward);
    longest = std::max(longest, own);
    if (k + 1 == stages.size()) break;
    const auto next = static_cast<double>(stages[k + 1].forward + stages[k + 1].backward);
    longest = std::max(longest, (own + next) / 2 + static_cast<double>(stages[k].link));
  }
  return longest;
}

double Rounds::step_time() const {
  const double parallel = static_cast<double>(rounds) * period();
  if (serial_every == 0) return parallel;
  auto through = static_cast<double>(serial());
  for (std::size_t k = 0; k + 1 < stages.size(); ++k)
    through += 2 * static_cast<double>(stages[k].link);
  const auto every = static_cast<double>(serial_every);
  return ((every - 1) * parallel + through) / every;
}

Ticks simulated_time(const Rounds& of, std::int64_t steps) {
  const std::vector<Stage>& stages = of.stages;
  const std::size_t count = stages.size();
  std::vector<Ticks> free(count, 0);  // when a stage has ended its last pass
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (of.serial_every > 0 && step % of.serial_every == 0) {
      Ticks arrived = 0;
      for (std::size_t k = 0; k < count; ++k) {
        free[k] = std::max(free[k], arrived) + stages[k].forward;
        arrived = free[k] + stages[k].link;
      }
      for (std::size_t k = count; k-- > 0;) {
        const Ticks gradient = k + 1 == count ? 0 : free[k + 1] + stages[k].link;
        free[k] = std::max(free[k], gradient) + stages[k].backward;
      }
      continue;
    }
    for (std::int64_t round = 0; round < of.rounds; ++round) {
      std::vector<Ticks> ends(count);
      for (std::size_t k = 0; k < count; ++k) {
        Ticks begin = free[k];
        if (k > 0) begin = std::max(begin, free[k - 1] + stages[k - 1].link);
        if (k + 1 < count) begin = std::max(begin, free[k + 1] + stages[k].link);
        ends[k] = begin + stages[k].forward + stages[k].backward;
      }
      free = std::move(ends);
    }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace numemu::experiments::layer_parallel

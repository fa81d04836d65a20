#include "experiments/dropcompute/simulation.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::experiments::dropcompute {
namespace {

constexpr std::int64_t kBlock = 2048;  // workers that a thread draws at a time
constexpr std::int64_t kThresholds = 200, kSixth = 6;

RandomSource source_of(const Simulation& simulation, std::int64_t step) {
  return stats::latency_source(simulation.seed, "dropcompute", step, "compute");
}

/// Calls see(m, end) for each micro-batch m of the workers of a block, in order.
template <class See>
void draw_block(const Simulation& simulation, const RandomSource& source, std::int64_t block,
                const See& see) {
  const std::int64_t last = std::min(simulation.workers, (block + 1) * kBlock);
  for (std::int64_t n = block * kBlock; n < last; ++n) {
    double time = 0;
    for (std::int64_t m = 0; m < simulation.micro_batches; ++m) {
      time += simulation.law.draw(source, stats::latency_element(n, m));
      see(m, time);
    }
  }
}

std::int64_t blocks_of(const Simulation& simulation) {
  return (simulation.workers + kBlock - 1) / kBlock;
}

/// Of blocks: maxima and integer sums alone, which any order gives.
struct Seen {
  explicit Seen(std::size_t thresholds) : ended(thresholds + 1), left(thresholds) {}

  /// Counts a micro-batch at the first threshold above its end; at those between its start and its
  /// end, and at all after the last one, its worker leaves with it.
  void add(std::span<const double> thresholds, bool last, std::size_t from, std::size_t until,
           double end) {
    ++ended[until];
    const std::size_t leaves = last ? thresholds.size() : until;
    for (std::size_t k = from; k < leaves; ++k) left[k] = std::max(left[k], end);
    if (last) time = std::max(time, end);
  }
  void merge(const Seen& other) {
    time = std::max(time, other.time);
    for (std::size_t k = 0; k < ended.size(); ++k) ended[k] += other.ended[k];
    for (std::size_t k = 0; k < left.size(); ++k) left[k] = std::max(left[k], other.left[k]);
  }

  double time = 0;
  std::vector<std::int64_t> ended;  ///< behind threshold k - 1, before threshold k
  std::vector<double> left;
};

}  // namespace

DrawnStep draw_step(const Simulation& simulation, std::int64_t step,
                    std::span<const double> thresholds) {
  const RandomSource source = source_of(simulation, step);
  const std::int64_t blocks = blocks_of(simulation);
  Seen all(thresholds.size());
#pragma omp parallel if (blocks > 1)
  {
    Seen own(thresholds.size());
#pragma omp for schedule(dynamic) nowait
    for (std::int64_t block = 0; block < blocks; ++block) {
      std::size_t from = 0;
      draw_block(simulation, source, block, [&](std::int64_t m, double end) {
        if (m == 0) from = 0;
        const auto until = static_cast<std::size_t>(
            std::upper_bound(thresholds.begin() + static_cast<std::ptrdiff_t>(from),
                             thresholds.end(), end) -
            thresholds.begin());
        own.add(thresholds, m + 1 == simulation.micro_batches, from, until, end);
        from = until;
      });
    }
#pragma omp critical
    all.merge(own);
  }
  DrawnStep drawn{.time = all.time, .finished = {}, .checked = std::move(all.left)};
  std::int64_t count = 0;
  for (std::size_t k = 0; k < thresholds.size(); ++k)
    drawn.finished.push_back(count += all.ended[k]);
  return drawn;
}

std::pair<double, double> accumulation_times(const Simulation& simulation, std::int64_t steps) {
  const std::int64_t sixth = std::min(kSixth, simulation.micro_batches) - 1;
  const std::int64_t blocks = blocks_of(simulation);
  double least = HUGE_VAL, most = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const RandomSource source = source_of(simulation, step);
#pragma omp parallel for schedule(dynamic) reduction(min : least) reduction(max : most)
    for (std::int64_t block = 0; block < blocks; ++block) {
      draw_block(simulation, source, block, [&](std::int64_t m, double end) {
        if (m == sixth) least = std::min(least, end);
        if (m + 1 == simulation.micro_batches) most = std::max(most, end);
      });
    }
  }
  return {least, most};
}

std::vector<double> published_thresholds(const Simulation& simulation, std::int64_t steps) {
  const auto [least, most] = accumulation_times(simulation, steps);
  std::vector<double> thresholds;
  for (std::int64_t i = 0; i < kThresholds; ++i) {
    thresholds.push_back(least + (most - least) * static_cast<double>(i) /
                                     static_cast<double>(kThresholds - 1));
  }
  return thresholds;
}

}  // namespace numemu::experiments::dropcompute

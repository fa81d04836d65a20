#include "experiments/engine/bench_memory.hpp"

#include <algorithm>

#include "emu/net/train/evaluation_pass.hpp"
#include "experiments/engine/workbench.hpp"

namespace numemu::experiments {

std::int64_t most_samples(std::int64_t elements) {
  return Workbench::kReferenceElements / std::max<std::int64_t>(1, elements);
}

void require_bench_memory(const net::Graph& graph, const net::Graph& baseline,
                          const net::Dataset& dataset, std::int64_t images, std::int64_t most) {
  const auto kept = [&](std::int64_t samples) {
    return net::kept_products(graph, net::batch_shapes(graph, samples));
  };
  const std::int64_t samples =
      std::clamp<std::int64_t>(std::min(most, most_samples(kept(1))), 1,
                               std::max<std::int64_t>(1, dataset.calibration_count()));
  // Also a batch on its way to a pass, codes of weights and what units prepare of them, small
  // tables.
  constexpr std::int64_t kSmall = std::int64_t{1} << 18;
  std::int64_t beside = kSmall + 2 * graph.parameter_count();
  for (const net::Shape& shape : net::batch_shapes(graph, net::kEvaluationBatch))
    beside += net::element_count(shape);
  const std::vector<net::Shape> all = net::batch_shapes(graph, samples);
  const std::int64_t behind = beside + kept(samples);
  const net::PlannedPass passes[] = {{graph, all, net::Keeps::products, 1, beside},
                                     {graph, all, net::Keeps::nothing, 1, behind},
                                     net::evaluation_pass(baseline, images, behind),
                                     net::evaluation_pass(graph, images, behind)};
  net::require_memory(passes);
}

}  // namespace numemu::experiments

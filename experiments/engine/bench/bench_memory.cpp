#include "experiments/engine/bench/bench_memory.hpp"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "emu/net/memory_plan.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "policies/calibrate/observers.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {

namespace {

/// float32 elements that threads hold beside the tensors of a pass: tiles of products, a batch on
/// its way, small tables.
std::int64_t scratch_elements() {
  constexpr std::int64_t kOfThread = std::int64_t{1} << 20;
  return kOfThread * omp_get_max_threads();
}

}  // namespace

std::int64_t most_samples(std::int64_t elements) {
  return Workbench::kReferenceElements / std::max<std::int64_t>(1, elements);
}

std::int64_t calibration_elements(const policies::BoundRecipe& recipe) {
  // Counts of 8 bytes of one sign, and of both for a few layers.
  constexpr std::int64_t kHistogram = policies::MagnitudeHistogram::kBins * 5 / 2;
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  const net::Graph& graph = recipe.graph();
  const std::vector<net::Shape> values = net::value_shapes(graph, net::batch_shapes(graph, 1));
  std::int64_t elements = 0;
  for (const auto& [gemm, policy] : policies::calibrated_operands(recipe, calibration)) {
    if (calibration.rule != policies::CalibrationPolicy::Rule::absmax) {
      elements += kHistogram;
    } else if (!policies::RoleQuantizer(policy).largest_only()) {
      const net::Shape& read = values[static_cast<std::size_t>(gemm.node->inputs[0])];
      elements += std::min(policies::StaticScale::kMostElements,
                           calibration.samples * net::element_count(read));
    }
  }
  return elements;
}

std::int64_t require_bench_memory(const net::Graph& graph, const net::Graph& baseline,
                                  const net::Dataset& dataset, std::int64_t images,
                                  std::int64_t beside, std::int64_t most, std::int64_t points) {
  const auto kept = [&](std::int64_t samples) {
    return net::kept_products(graph, net::batch_shapes(graph, samples));
  };
  const std::int64_t samples =
      std::clamp<std::int64_t>(std::min(most, most_samples(kept(1))), 1,
                               std::max<std::int64_t>(1, dataset.calibration_count()));
  const std::vector<net::Shape> all = net::batch_shapes(graph, samples);
  const std::int64_t scratch = scratch_elements(),
                     // Also codes of weights and what units prepare of them.
      behind = points * (beside + 2 * graph.parameter_count()) + scratch + kept(samples);
  net::PlannedPass evaluation = net::evaluation_pass(graph, images, behind);
  evaluation.at_once = std::max(evaluation.at_once, points);
  const net::PlannedPass passes[] = {{graph, all, net::Keeps::products, 1, scratch},
                                     {graph, all, net::Keeps::nothing, points, behind},
                                     net::evaluation_pass(baseline, images, behind),
                                     evaluation};
  return net::require_memory(passes);
}

void require_export_memory(const policies::BoundRecipe& recipe, std::int64_t samples,
                           std::int64_t calibration) {
  constexpr std::int64_t kAtOnce = 32;  // policies::Calibration::for_each
  const net::Graph& graph = recipe.graph();
  const std::int64_t scratch = scratch_elements(), parameters = graph.parameter_count();
  const std::vector<net::Shape> compared = net::batch_shapes(graph, samples);
  // Codes and what units prepare of them, the file, its tensors, the network that is read back.
  std::int64_t beside = scratch + 6 * parameters;
  for (const net::Shape& shape : compared) beside += net::element_count(shape);
  beside += net::element_count(net::value_shapes(graph, compared).back());
  const net::PlannedPass passes[] = {
      {graph, net::batch_shapes(graph, std::max<std::int64_t>(1, std::min(kAtOnce, calibration))),
       net::Keeps::nothing, 1, scratch + calibration_elements(recipe)},
      {graph, compared, net::Keeps::nothing, 1, beside}};
  net::require_memory(passes);
}

}  // namespace numemu::experiments

// Memory of a float32 reference and of what runs beside it, before anything is computed.
#pragma once
#include <cstdint>
#include <limits>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"

namespace numemu::policies {
class BoundRecipe;
}  // namespace numemu::policies

namespace numemu::experiments {

/// How many samples a float32 reference may hold where one has so many elements.
std::int64_t most_samples(std::int64_t elements);

/// float32 elements of what calibration keeps of the activations of a recipe: histograms of those
/// that a rule clips, elements where a scale rule reads them.
std::int64_t calibration_elements(const policies::BoundRecipe&);

/// Throws Error where the memory budget does not hold a float32 reference of at most `most`
/// calibration samples and what is measured beside it and `beside` elements, by so many points at
/// the same time: passes over its samples, the evaluation of `images` by the network and by its
/// baseline. It names a budget that does, by estimate the least, which is returned where it fits (0
/// where no budget is set).
std::int64_t require_bench_memory(const net::Graph&, const net::Graph& baseline,
                                  const net::Dataset&, std::int64_t images, std::int64_t beside = 0,
                                  std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                                  std::int64_t points = 1);

/// Throws Error where the budget is too small for an export, before anything is computed or
/// written: `calibration` samples, the `samples` that are compared, and beside their outputs the
/// network that is read back.
void require_export_memory(const policies::BoundRecipe&, std::int64_t samples,
                           std::int64_t calibration);

}  // namespace numemu::experiments

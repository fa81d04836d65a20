// Refuses, before any of it runs, a workbench that the memory budget does not hold.
#pragma once
#include <cstdint>
#include <limits>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"

namespace numemu::experiments {

/// How many samples a float32 reference may hold where one has so many elements.
std::int64_t most_samples(std::int64_t elements);

/// Throws Error where the memory budget does not hold a float32 reference of at most `most`
/// calibration samples and what is measured beside it: passes over its samples, the evaluation of
/// `images` by the network and by its baseline. It names the least budget that does.
void require_bench_memory(const net::Graph&, const net::Graph& baseline, const net::Dataset&,
                          std::int64_t images,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace numemu::experiments

// Passes that are still to come, whose memory is checked before any work of theirs begins.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emu/net/memory_plan.hpp"

namespace numemu::net {

/// A pass that is about to run, or will.
struct PlannedPass {
  const Graph& graph;
  std::vector<Shape> inputs;  ///< with the batch
  Keeps keeps = Keeps::nothing;
  std::int64_t at_once = 1;  ///< such passes run at the same time
  std::int64_t beside = 0;   ///< float32 elements held by then that are not held yet
};

/// require_memory() of several passes, each alone; the message has the least budget that does for
/// all. Inside a parallel region what the process holds is not counted again: who began the region
/// did, and the passes beside this one hold some of it.
void require_memory(std::span<const PlannedPass>);

/// Elements that a pass with Keeps::products leaves to its caller.
std::int64_t kept_products(const Graph&, const std::vector<Shape>& inputs);

/// The shapes of the inputs of a graph for so many samples.
std::vector<Shape> batch_shapes(const Graph&, std::int64_t samples);

}  // namespace numemu::net

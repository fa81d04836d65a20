// What each simulated worker sends: the float32 mean of its micro-batches.
#pragma once
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// The float32 mean of gradients of equal shapes in their order. There is at least one.
std::vector<Tensor> mean_of(std::vector<std::vector<Tensor>> parts);

/// One gradient per worker, of micro-batch 0, from those of its micro-batches, which lie together.
/// Throws Error naming a worker whose gradients have other shapes than those of the first.
std::vector<WorkerGradient> worker_means(std::vector<WorkerGradient>);

}  // namespace numemu::net

// Running statistics of batch normalisation re-estimated, under the numerics that will use them.
#pragma once
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// Runs the batches (each one tensor per input of the graph) through the graph with every
/// batch_norm node normalising by the statistics of the batch, and sets its running_mean and
/// running_variance to their means over the batches, weighted by samples: after quantization the
/// statistics of training no longer fit. The numerics get an inference step, so calibrated
/// scales stay; operators run as in training, dropout too. Statistics come out of float32 running
/// values, relative error 2^-24. Returns the number of nodes. Throws Error for no batches, and for
/// a node whose momentum is 0; the graph is then as it was.
int reestimate_batch_norm(net::Graph&, const std::vector<std::vector<net::Tensor>>& batches,
                          net::Numerics&);

}  // namespace numemu::policies

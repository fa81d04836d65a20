// What a run reads of its network: part of the identity of everything that is stored of the run.
#pragma once
#include <string>

#include "emu/net/train/run_state.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// By name: net, weights; of a file that has them its graph, the network before tuning, ranges, how
/// many weights are codes, and that it was trained under a recipe. No path: moving a file changes
/// nothing.
net::RunIdentity identity_of(const TrainedNet&);
/// Adds it to the point of a row or a trial.
void identify(Json& point, const TrainedNet&);

}  // namespace numemu::experiments

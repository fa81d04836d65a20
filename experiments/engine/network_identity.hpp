// What a run reads of its network: part of the identity of everything that is stored of the run.
#pragma once
#include <string>

#include "emu/net/train/run_state.hpp"
#include "experiments/engine/row.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

NetworkIdentity identity_of(const TrainedNet&);
/// Its members by name.
net::RunIdentity run_identity(const TrainedNet&);
/// Adds it to the point of a trial.
void identify(Json& point, const TrainedNet&);

}  // namespace numemu::experiments

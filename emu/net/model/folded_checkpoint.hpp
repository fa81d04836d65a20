// Checkpoints of networks whose batch normalisation was folded into the weights before it.
#pragma once
#include <string>
#include <string_view>

#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// The value of a key of the metadata; "" without.
std::string metadata_of(const Checkpoint&, std::string_view key);

/// Says that the parameters are those of the folded graph (fold_batch_norm()).
void mark_folded(Checkpoint&);
bool is_folded(const Checkpoint&);
/// load_parameters() into the graph as it is built, which is folded first where the checkpoint says
/// so.
void load_checkpoint(Graph&, const Checkpoint&, const std::string& path);

}  // namespace numemu::net

// The network that a tuned one came from, kept in its checkpoint: what accuracy is compared with.
#pragma once
#include <string>
#include <string_view>

#include "emu/net/graph.hpp"
#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// Whether a tensor of a checkpoint belongs to the network before tuning.
bool is_tuned_from(std::string_view tensor);
/// The parameter whose value a tensor of a checkpoint is, before tuning or after.
std::string name_in_graph(std::string_view tensor);

/// Adds the parameters of the network before tuning, which has the nodes of the tuned one.
void add_tuned_from(Checkpoint&, const Graph& before);

bool has_tuned_from(const Checkpoint&);
/// Gives the parameters before tuning to a graph with the nodes of the tuned network. Throws Error
/// naming `path` and the tensor where they do not fit.
void load_tuned_from(Graph&, const Checkpoint&, const std::string& path);

}  // namespace numemu::net

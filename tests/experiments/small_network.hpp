// A network whose data set is made in no time, for tests that need both by name.
#pragma once
#include <string>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"

namespace numemu::experiments::testing {

/// Writes an untrained dlrm-small for the data set "clicks"; the file names its network.
inline void write_click_network(const std::string& path) {
  net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  net::initialize(graph, 11);
  net::Checkpoint checkpoint = net::parameters_of(graph);
  checkpoint.metadata = {{"net", "dlrm-small"}};
  net::write_safetensors(path, checkpoint);
}

}  // namespace numemu::experiments::testing

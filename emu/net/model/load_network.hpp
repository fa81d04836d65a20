// A network by what a user calls it: a reference network, or a file.
#pragma once
#include <string>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"

namespace numemu::net {

struct LoadedNetwork {
  Graph graph;
  bool has_weights = false;  ///< the file gave them; a reference network awaits initialize()
};

/// Whether `name` is taken for an ONNX file: it ends in ".onnx".
bool names_onnx_file(const std::string& name);

/// A reference network built for the data set, or the network of an ONNX file, which must fit it.
/// Throws Error with the nearest known name, or naming the file.
LoadedNetwork load_network(const std::string& name, const Dataset&);

}  // namespace numemu::net

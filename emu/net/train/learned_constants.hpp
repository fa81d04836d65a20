// Constants of a file that are parameters by what reads them: training changes them, inference and
// rows take them for constants.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// Makes parameters of the constants whose origin says so (emu/net/ops/views.hpp): biases behind
/// products, gains and biases of normalisations in pieces, weights of stacked products. Not those
/// that have an infinite element, that another parameter has the elements of, or that are all
/// equal and read several times, because exporters merge such by value.
void train_learned_constants(Graph&);

/// Tensors of the file, of more than one element, that no training changes.
struct UntrainedTensors {
  std::vector<std::string> names;  ///< in the order of the network
  std::int64_t elements = 0;       ///< of these
  std::int64_t of = 0;             ///< of these and all trained parameters
};
UntrainedTensors untrained_tensors(const Graph&);

}  // namespace numemu::net

// How many multiply-adds forward passes take.
#pragma once
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// Of a product as the network asks for it, and of all products of a forward pass on a batch, which
/// is run in float32.
double multiply_adds(const Product&);
double multiply_adds(const Graph&, const std::vector<Tensor>& batch);

}  // namespace numemu::net

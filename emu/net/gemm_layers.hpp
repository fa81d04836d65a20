// The layers of a graph that multiply or look up, with their weights and tables.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// A product of a node: what recipes match and rows report as a layer.
struct GemmLayer {
  std::string name;  ///< the node's name and the product's suffix
  const Node* node = nullptr;
  const Tensor* weight = nullptr;  ///< its right operand; null where that is an activation too
  /// The right operand in fprop: weight, activation, or in attention key (the product's result goes
  /// to a softmax) and value (its left operand comes from one).
  Role right = Role::weight;
};

/// Every layer, in the order of forward.
std::vector<GemmLayer> gemm_layers(const Graph&);
std::vector<std::string> gemm_layer_names(const Graph&);
/// Layers with an operand or a result whose samples do not follow each other, each in one piece, as
/// where networks put the sequence before the batch. Judged by shapes; in doubt a layer is one.
std::set<std::string> layers_across_samples(const Graph&);
/// The table that the node looks rows up in (embedding, position_embedding); null for others.
const Tensor* table_of(const Node&);
/// The weight of the layer of that name; throws Error when no such layer has one.
const Tensor& weight_of(const Graph&, std::string_view layer);

}  // namespace numemu::net

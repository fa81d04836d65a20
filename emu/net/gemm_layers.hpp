// The layers of a graph that multiply or look up: their weights and tables, their multiply-adds,
// and maps by their names.
#pragma once
#include <set>
#include <stdexcept>
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

/// Of a product as the network asks for it, and of all products of a forward pass on a batch, which
/// is run in float32.
double multiply_adds(const Product&);
double multiply_adds(const Graph&, const std::vector<Tensor>& batch);

/// map.at(layer); throws std::logic_error that names the layer.
template <class Map>
const auto& at_layer(const Map& map, std::string_view layer) {
  const auto found = map.find(std::string(layer));
  if (found == map.end()) throw std::logic_error("layer '" + std::string(layer) + "' is not known");
  return found->second;
}

}  // namespace numemu::net

#include "policies/numerics/weight_release.hpp"

#include <malloc.h>

#include <set>

namespace numemu::policies {

void release_weights(net::Node& node, const RecipeNumerics& numerics) {
  std::set<int> held, read;
  for (const net::OpProduct& product : node.op->products()) {
    if (product.weight < 0) continue;
    (numerics.holds_weight(node.name + product.suffix) ? held : read).insert(product.weight);
  }
  bool any = false;
  for (const int weight : held) {
    net::Tensor& value = node.op->parameters()[static_cast<std::size_t>(weight)].value;
    if (read.contains(weight) || value.empty()) continue;
    value.release();
    any = true;
  }
  if (any) malloc_trim(0);  // weights lie between memory in use
}

}  // namespace numemu::policies

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// The memory of one node's result.
struct ReusePlace {
  static constexpr int kFresh = -1;
  int from = kFresh;      ///< the value whose memory it takes
  bool in_place = false;  ///< that value is the node's first input, which it overwrites
};

/// Memory is kept for later results only as far as the pass needs no more at any node than its
/// largest node needs alone: what is alive there and what the operator holds; and only for results
/// that fill at least half of it.
struct ReusePlan {
  std::vector<ReusePlace> places;       ///< by node
  std::vector<std::vector<int>> drops;  ///< by node: dead values whose memory goes back before it
};

/// `shapes` are those of all values (value_shapes), `last` their last readers.
ReusePlan plan_reuse(const Graph&, std::span<const Shape> shapes, const std::vector<int>& last);

}  // namespace numemu::net

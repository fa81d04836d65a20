// The peak memory of a pass over a network, computed from shapes before any allocation.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/memory.hpp"

namespace numemu::net {

/// The shape of every value, given those of the inputs with the batch.
std::vector<Shape> value_shapes(const Graph&, std::span<const Shape> inputs);

/// What the node's operator holds beside its tensors; `values` are the shapes of all values before
/// it.
OperatorMemory operator_memory(const Graph&, std::size_t node, std::span<const Shape> values);

/// The node that reads each value last; -1 for one that nobody reads.
std::vector<int> last_readers(const Graph&);

/// Whether inference writes node i's result over its first input.
bool works_in_place(const Graph&, std::size_t node, const std::vector<int>& last_readers,
                    const Shape& first_input, const Shape& result);

/// What a caller of forward keeps of the values.
enum class Keeps : std::uint8_t {
  nothing,       ///< inference: a value dies after its last reader
  for_backward,  ///< training, up to the update
  products       ///< inference that copies the operands and the result of every product
};

/// Throws Error naming the node and its result where a pass needs more than is left of the memory
/// budget. Counted are, each in float32: the inputs; the values alive and what the operator makes
/// for itself, in inference those of the largest node so far (ReusePlan); once more the operands
/// and the result of the largest product, which numerics hold as codes; the parameters three times
/// (their values, their codes and what units prepare of these), in training four times (with their
/// gradients and two tensors of an optimizer). All but the parameters also fits beside what the
/// process holds where that is counted (memory.hpp). Inside a parallel region as many passes
/// are taken to run as it has threads.
void require_memory(const Graph&, std::span<const Shape> inputs, Keeps);
void require_memory(const Graph&, std::span<const Tensor> inputs, Keeps);

/// A pass that is about to run, or will.
struct PlannedPass {
  const Graph& graph;
  std::vector<Shape> inputs;  ///< with the batch
  Keeps keeps = Keeps::nothing;
  std::int64_t at_once = 1;  ///< such passes run at the same time
  std::int64_t beside = 0;   ///< float32 elements held by then that are not held yet
};

/// require_memory() of several passes, each alone; the message has the least budget that does for
/// all, which is returned where they fit (0 where no budget is set). Inside a parallel region what
/// the process holds is not counted again: who began the region did, and the passes beside this one
/// hold some of it.
std::int64_t require_memory(std::span<const PlannedPass>);

/// Elements that a pass with Keeps::products leaves to its caller.
std::int64_t kept_products(const Graph&, const std::vector<Shape>& inputs);

/// The shapes of the inputs of a graph for so many samples.
std::vector<Shape> batch_shapes(const Graph&, std::int64_t samples);
/// The named outputs of a graph, with the shapes of one sample.
std::vector<NamedShape> output_shapes(const Graph&);

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

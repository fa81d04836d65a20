// The processes that share the simulated workers of a training, and what a worker leaves in a step.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Rank r of R computes the workers w with w R / W = r. Every rank then has all gradients,
/// exchanges them and updates its own copy of the weights: the same bits for any R. The default is
/// one process.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual std::int64_t count() const { return 1; }
  virtual std::int64_t rank() const { return 0; }
  /// Gives every rank the bytes of `owner`.
  virtual void broadcast(std::int64_t /*owner*/, std::string& /*bytes*/) {}

  std::int64_t owner(std::int64_t worker, std::int64_t workers) const {
    return worker * count() / workers;
  }
};

/// Throws Error where ranks have other texts than rank 0: "WHAT differ between ranks 0 and 2".
void require_equal(Ranks&, const std::string& text, const std::string& what);

/// What one worker leaves in a step, besides the state of numerics.
struct WorkerResult {
  std::vector<Tensor> gradients;     ///< the mean of its micro-batches, one per parameter
  Classified seen;                   ///< of its samples, in their order
  std::vector<NodeBuffer> buffers;   ///< of its micro-batches, one after the other
  std::vector<std::int64_t> counts;  ///< what it added to Numerics::counts()
};

/// Gives every rank the result of the rank that owns the worker.
void share(Ranks&, std::int64_t owner, WorkerResult&);

}  // namespace numemu::net

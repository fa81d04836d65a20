// Rules of exchange as the link model has them: what each puts on the wire, for a gradient of so
// many elements in one tensor, by what its policy counts (policies/exchange/). Scales of 32 bits of
// a tensor are left out.
#pragma once
#include <cstdint>

#include "experiments/workers/link_model.hpp"

namespace numemu::experiments::wire {

/// A share of the elements, values and places of each worker's own.
WireRule topk(double share, std::int64_t elements);
/// The same without places, which are a function of seed and step.
WireRule randomk(double share, std::int64_t elements);
/// The same with the places of one worker for all.
WireRule scalecom(double share, std::int64_t elements);
/// Codes of 8 or 16 bits for as many elements as the mean field of noise sends; once combined,
/// places and float32 values, since scales are each worker's own.
WireRule adacomp(std::int64_t bin, std::int64_t elements);
/// One sign each way, from every worker or from every node, within which float32 is summed.
WireRule birder_flat();
WireRule birder_nodes();
/// Signs with a scale of each worker's own: their sums are float32.
WireRule sign();
/// Values at places of one worker for all, `window` of them as one float32 code.
WireRule learned(double share, std::int64_t window, std::int64_t elements);

}  // namespace numemu::experiments::wire

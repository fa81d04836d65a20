// What evaluate() needs in memory, for those who refuse before they begin.
#pragma once
#include <cstdint>

#include "emu/net/planned_pass.hpp"
#include "emu/net/train/evaluate.hpp"

namespace numemu::net {

/// A batch of evaluate() on each thread; `beside` elements are held by then.
PlannedPass evaluation_pass(const Graph&, std::int64_t samples, std::int64_t beside = 0,
                            std::int64_t batch = kEvaluationBatch);

}  // namespace numemu::net

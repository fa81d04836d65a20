// The step that the calling thread is in: training, or a batch of an evaluation.
#pragma once
#include <cstdint>

#include "emu/net/numerics.hpp"

namespace numemu::policies {

struct ThreadStep {
  net::Phase phase = net::Phase::inference;
  /// Index of the first sample of the batch that the thread evaluates: random bits belong to
  /// samples, not to batches.
  std::int64_t first_sample = 0;
};

/// Of this thread; written by begin_step().
inline ThreadStep& thread_step() {
  thread_local ThreadStep step;
  return step;
}

}  // namespace numemu::policies

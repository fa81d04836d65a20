// The questions of adacomp: what it sends of noise, beside what is published.
#pragma once
#include <cstdint>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::adacomp {

/// Published rates, and those of the rule's own simulation on noise (specification of the
/// experiment).
struct Bin {
  std::int64_t bin;
  double published, simulated;
};
inline constexpr Bin kConvolution{50, 40, 40.2}, kMatrix{500, 200, 169.8};

/// Normal gradients of one worker over many steps, beside their laws (settings bins, elements,
/// warm, steps, repeats).
void add_noise(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::adacomp

// Differences paired by seed that are claimed to be above 0, judged together.
#pragma once
#include <string>
#include <vector>

#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"

namespace numemu::experiments {

struct PairedGain {
  std::string what;
  stats::PairedInterval difference;
};

/// One finding each, with " (claimed above 0)" behind `what`: judge_signs() of tails() at 0, with
/// Holm's procedure over all. One seed gives no verdict.
std::vector<Finding> judge_gains(const std::vector<PairedGain>&);

}  // namespace numemu::experiments

// Claims that differences paired by seed lie above 0, judged together.
#pragma once
#include <string>
#include <vector>

#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"

namespace numemu::experiments {

struct Gain {
  std::string what;
  stats::PairedInterval difference;
};

/// One finding each, by judge_signs() of Student's t tests; undecided where a single difference, or
/// equal ones, leave no spread to test by.
std::vector<Finding> judged_gains(const std::vector<Gain>&);

}  // namespace numemu::experiments

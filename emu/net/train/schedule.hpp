// Learning-rate schedules by name: a factor as a function of the step.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// Optimizer step `step` of `steps`, in epoch `epoch` of `epochs` (all from 0).
struct Progress {
  std::int64_t step = 0, steps = 1, epoch = 0, epochs = 1;
};

/// The factor on the learning rate.
using Schedule = double (*)(const Progress&);

/// Throws Error with the nearest known name.
Schedule find_schedule(std::string_view name);
std::vector<std::string> schedule_names();

/// The schedule after `warmup` steps in which the factor is 1/warmup, 2/warmup, ... 1 (Goyal et al.
/// 2017); the schedule's own steps are those that follow, its epochs are all.
double rate_factor(Schedule, const Progress&, std::int64_t warmup);

}  // namespace numemu::net

// How long a sweep will take, said within a second or two.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/engine/workbench.hpp"

namespace numemu::experiments {

struct Estimate {
  std::size_t points = 0, kept = 0;  ///< of the shard; rows that are there already
  double seconds = 0;                ///< of the points that are missing
};

/// Where `folder` holds times of this sweep's points, their mean; else the rate of test samples
/// under one point of each unit, tried for `budget` seconds in all (one product of one layer at
/// least), times the multiply-adds of a point. `clock` gives seconds. With Existing::fresh nothing
/// is kept.
Estimate estimate_sweep(const SweepConfig&, const Folders&, const std::string& folder, const Shard&,
                        Existing, const std::function<double()>& clock, double budget = 1.0);

}  // namespace numemu::experiments

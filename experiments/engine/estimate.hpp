// An estimate of the time of a sweep, within a second or two.
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
  /// Of loading, the float32 workbench and the points that are missing.
  double seconds = 0;
};

/// A point takes the mean of the times of this sweep's points that `folder` holds; without any, its
/// multiply-adds at the rate of test samples under one point of each unit. The workbench takes its
/// multiply-adds at the rate of float32. Rates are tried for `budget` seconds in all (one product
/// of one layer each at least). `clock` gives seconds. With Existing::fresh nothing is kept.
Estimate estimate_sweep(const SweepConfig&, const Folders&, const std::string& folder, const Shard&,
                        Existing, const std::function<double()>& clock, double budget = 1.0);

}  // namespace numemu::experiments

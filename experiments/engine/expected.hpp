// What accuracy a row was predicted to have, beside what it has.
#pragma once
#include "experiments/engine/row.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/predict/accuracy.hpp"

namespace numemu::experiments {

/// Sets `predicted.accuracy` of a row with its metrics, and `predicted` of its scores.
void add_expected(Row&, const Workbench&, const AccuracyReference&, const AccuracyPrediction&);

}  // namespace numemu::experiments

// One point of a sweep: accuracy on the test images, noise measured and predicted, as a row.
#pragma once

#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/row.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::experiments {

/// The point of the row: what the configuration says and the digest of the weights.
RowPoint identify(const Point&, const Workbench&);
/// The point of the row without a workbench, for `images` test samples.
RowPoint identify(const Point&, const net::Dataset&, const TrainedNet&, std::int64_t images);

/// Samples that static scales are calibrated on, of those available; 0 without such scales, and
/// where ranges fix them all.
std::int64_t calibration_samples(const policies::BoundRecipe&, std::int64_t available);

/// The data set; where all its samples are of the test, with these as the reference that noise is
/// measured and predicted on. Throws Error then where the recipe calibrates.
net::Dataset with_reference(net::Dataset, const policies::BoundRecipe&);
/// The data set with the reference that any of the recipes of points needs.
net::Dataset with_reference(net::Dataset, const TrainedNet&, const std::vector<Point>&);

/// Sets the metrics but those of noise, and scores.
void add_metrics(Row&, const net::Dataset&, const std::vector<net::OutputScore>&,
                 const net::Evaluation&, const net::Evaluation& baseline);

/// Of run_point(), as work.hpp counts it.
double cost_of(const Point&, const Workbench&);

/// Computes the row (schema version 1) without losses, whose sums are written to `judged`. A pure
/// function of the point and the workbench: no clock, no thread count, nor what the cache holds of
/// other points. Where the point turns predictions off, every predicted figure is null.
Row run_point(const Point&, const Workbench&, PointCache&, const OnWork& = {},
              JudgedSums* judged = nullptr);
/// The row of one point alone.
Row run_point(const Point&, const Workbench&, const OnWork& = {});

}  // namespace numemu::experiments

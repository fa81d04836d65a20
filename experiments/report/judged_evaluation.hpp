// Evaluations of an experiment's own, judged by the figure that rows of the same data are judged
// by.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/report/measure.hpp"

namespace numemu::experiments {

/// The figure of an evaluation with judged_scores() and its difference from the baseline's, with
/// the intervals of rows: of samples, of blocks of windows, or of single classes.
JudgedFigure judged_of(const net::Dataset&, const std::vector<net::OutputScore>&,
                       const net::Evaluation&, const net::Evaluation& baseline);

/// A value or a difference as columns have it: "81.25" of a share, in the measure's digits else.
/// "-" for none.
std::string figure_text(const Measure&, const std::optional<double>&, bool sign = false);
/// "[+0.10, +0.30]"; "-" where an end is missing.
std::string interval_text(const Measure&, const std::optional<double>& low,
                          const std::optional<double>& high, bool sign = false);
/// The header of a column of differences: "mean IoU difference, points".
std::string difference_title(const Measure&);
/// The header of a column of values: "mean IoU, %".
std::string value_title(const Measure&);

/// "50 images", of a text "20 windows"; with "test " as `split` "50 test images".
std::string samples_text(const net::Dataset&, std::int64_t samples, const char* split = "");
/// What top-1 is a share of: "200 images", or where a sample has several classes those that count
/// and the samples, "145600 pixels in 200 images".
std::string targets_text(const net::Dataset&, const net::Evaluation&);

/// What "float32" is where that is not the network before all of them: tuned weights, or quantizers
/// of its own. Sentences that begin with "Note: ".
std::vector<std::string> baseline_notes(const TrainedNet&);

/// Throws Error where a sample has several classes or none: `what` counts right answers by sample.
void require_one_class(const net::Dataset&, const std::string& what);

}  // namespace numemu::experiments

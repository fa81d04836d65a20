// Scores of a row: the figure, its interval, the paired difference from float32, and what was
// expected.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/row.hpp"

namespace numemu::experiments {

struct AccuracyReference;
struct AccuracyPrediction;

/// The scores of which the figure that rows are judged by needs tables: none for top-1 of one class
/// a sample. `metric` names a score; "" is what the data set is judged by. Throws Error for one
/// that does not fit.
std::vector<net::OutputScore> judged_scores(const net::Dataset&, const std::string& metric = "");

/// Intervals are percentiles of 1,000 resamples, which draw whole samples; of a text, whose windows
/// follow each other, blocks of ceil(n^(1/3)) consecutive windows. `resampled` names what is drawn.
/// A difference resamples both evaluations alike. A share of samples that are right or wrong, each
/// by itself, is counted instead: its intervals are Wilson's and that of the paired counts, which
/// are `gained` (right here alone) and `lost` (right in the baseline alone). The evaluations have a
/// table for each score. A figure that is no finite number has its reason in why_no_value, of the
/// baseline in why_no_baseline.
std::vector<RowScore> scores_of(const net::Dataset&, const std::vector<net::OutputScore>&,
                                const net::Evaluation&, const net::Evaluation& baseline);
/// Scores of samples that follow each other (`sequence`) or do not.
std::vector<RowScore> scores_of(bool sequence, const std::vector<net::OutputScore>&,
                                const net::Evaluation&, const net::Evaluation& baseline);

/// Of shares, at 95 %.
struct Top1Intervals {
  stats::Interval top1, difference;
};
/// Of top-1 and of its difference from the baseline's: Wilson's and that of the paired counts where
/// a sample has one class, whose errors are independent; else those of score top1 in `scores`, a
/// list of scores_of() of the same evaluations, NaN where it has none (of one sample).
Top1Intervals top1_intervals(const net::Dataset&, const net::Evaluation&,
                             const net::Evaluation& baseline, const std::vector<RowScore>& scores);

/// Share of the targets with a class of which both evaluations give another one.
double changed_answers(const net::Evaluation&, const net::Evaluation& baseline);

/// Targets that both evaluations classify rightly, the first alone, the second alone.
stats::PairedAnswers paired_answers(const net::Evaluation&, const net::Evaluation& baseline);

/// Sets `predicted.accuracy` of a row with its metrics, and `predicted` of its scores, for so many
/// evaluated samples.
void add_expected(Row&, const net::Dataset&, const AccuracyReference&, const AccuracyPrediction&,
                  std::int64_t evaluated);

/// The windows of a block: the least whole number whose cube is at least n.
std::int64_t block_length(std::int64_t n);

}  // namespace numemu::experiments

#include "experiments/engine/expected.hpp"

#include <algorithm>
#include <cmath>

#include "emu/stats/interval.hpp"
#include "experiments/engine/scores.hpp"

namespace numemu::experiments {
namespace {

RowExpected row_expected(const Expected& expected, const Member<double>& measured, bool share) {
  stats::Interval ends = expected.interval();
  if (share) ends = {std::max(0.0, ends.low), std::min(1.0, ends.high)};
  RowExpected out{row_number(expected.value), row_ends(ends.low, ends.high), {}};
  if (measured) out.verdict = expected_verdict(expected.value, *out.ci95, *measured);
  return out;
}

/// Float32's figure on all samples and the change on those that are predicted.
void add_scores(std::vector<RowScore>& scores, const Workbench& bench,
                const AccuracyReference& reference, const AccuracyPrediction& predicted) {
  if (scores.empty()) return;
  const std::vector<RowScore> changes =
      scores_of(bench.dataset, reference.scores, predicted.noisy, reference.float32);
  const double longer = measured_too(predicted.noisy.samples, bench.baseline.samples);
  for (RowScore& score : scores) {
    const auto change = std::ranges::find(changes, score.name, &RowScore::name);
    if (change == changes.end() || !change->difference || !score.baseline) continue;
    const double by = *change->difference, value = *score.baseline + by;
    const Ends ends = change->difference_ci95.value_or(Ends());
    score.predicted = row_number(value);
    if (!ends.known()) continue;
    const double floor = stats::kNormal95 * kChangeFloor * std::fabs(by);
    score.predicted_ci95 = row_ends(value - std::hypot(longer * (by - *ends.low), floor),
                                    value + std::hypot(longer * (*ends.high - by), floor));
  }
}

}  // namespace

void add_expected(Row& row, const Workbench& bench, const AccuracyReference& reference,
                  const AccuracyPrediction& predicted) {
  RowAccuracy accuracy;
  accuracy.samples = predicted.noisy.samples;
  if (predicted.top1) accuracy.top1 = row_expected(*predicted.top1, row.metrics.top1, true);
  if (predicted.changed)
    accuracy.changed = row_expected(*predicted.changed, row.metrics.changed, true);
  accuracy.loss = row_expected(predicted.loss, row.metrics.loss, false);
  row.predicted.accuracy = accuracy;
  add_scores(row.scores, bench, reference, predicted);
}

}  // namespace numemu::experiments

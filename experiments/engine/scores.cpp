// The block length grows with the cube root of the sample, as the variance of a mean wants it
// (Hall, Horowitz and Jing, Biometrika 1995).
#include "experiments/engine/scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "emu/net/data/view.hpp"
#include "emu/stats/resampling.hpp"
#include "experiments/predict/accuracy.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kResamples = 1000;

/// Why a figure is no finite number; "" where it is one.
std::string why_no_figure(const net::ScoreTable& table, double value) {
  if (std::isfinite(value)) return "";
  std::int64_t nan = 0, infinite = 0;
  for (std::int64_t i = 0; i < table.samples(); ++i) {
    bool lost = false, endless = false;
    for (std::int64_t c = 0; c < table.columns; ++c) {
      lost = lost || std::isnan(table.sums[i * table.columns + c]);
      endless = endless || std::isinf(table.sums[i * table.columns + c]);
    }
    nan += lost;
    infinite += endless && !lost;
  }
  if (nan > 0)
    return fmt::format(
        "the figures of {} of {} samples are NaN, as outputs are NaN or nothing is compared", nan,
        table.samples());
  if (infinite > 0)
    return fmt::format("the figures of {} of {} samples are infinite", infinite, table.samples());
  return std::isinf(value) ? "infinite: no sample differs from what it is compared with"
                           : "no sample has anything to compare";
}

/// Where column 0 is 0 or 1 and column 1 is 1 in every sample: what both make of them.
std::optional<stats::PairedAnswers> counted(const net::ScoreTable& own,
                                            const net::ScoreTable& other) {
  for (const net::ScoreTable* table : {&own, &other}) {
    for (std::int64_t i = 0; i < table->samples(); ++i) {
      const double right = table->sums[i * table->columns];
      if ((right != 0 && right != 1) || table->sums[i * table->columns + 1] != 1) return {};
    }
  }
  return stats::count_answers(
      own.samples(), [&](std::int64_t i) { return own.sums[i * own.columns] == 1; },
      [&](std::int64_t i) { return other.sums[i * other.columns] == 1; });
}

/// Draws of one sort of samples, so that resamples have one figure: that of every unit drawn. The
/// units may still be of a population in which some differ, as large a share as the exact interval
/// of none among them allows; each then has a figure between `low` and `high`. `heaviest` is the
/// largest weight of a unit over the mean.
stats::Interval of_equal_units(double figure, double low, double high, std::int64_t units,
                               double heaviest) {
  const double differ = std::min(1.0, heaviest * stats::share_of_none(units));
  return {figure - differ * (figure - low), figure + differ * (high - figure)};
}

/// Of the blocks' weights, column 1 of a share.
double heaviest_block(const net::ScoreTable& table, std::int64_t block, std::int64_t blocks) {
  double most = 0, sum = 0, own = 0;
  for (std::int64_t i = 0; i < table.samples(); ++i) {
    own = (i % block == 0 ? 0 : own) + table.sums[i * table.columns + 1];
    most = std::max(most, own);
    sum += table.sums[i * table.columns + 1];
  }
  return most * static_cast<double>(blocks) / sum;
}

}  // namespace

std::vector<net::OutputScore> judged_scores(const net::Dataset& data, const std::string& metric) {
  if (!metric.empty()) {
    if (metric == "top1" && data.target() == net::TargetKind::classes &&
        data.targets_per_sample() == 1)
      return {};
    return {net::scores_for(data, {metric}).front()};
  }
  const std::vector<std::string> names = net::default_scores(net::at_output(data, 0));
  if (names.empty()) return {};
  // A text is judged by its bits, not by its first score.
  return {&net::find_score(data.kind() == net::DataKind::text ? "bits_per_token" : names.front())};
}

Top1Intervals top1_intervals(const net::Dataset& data, const net::Evaluation& evaluation,
                             const net::Evaluation& baseline, const std::vector<RowScore>& scores) {
  if (data.targets_per_sample() == 1)
    return {stats::wilson(evaluation.correct, evaluation.n),
            stats::paired_share(paired_answers(evaluation, baseline), 1, stats::kNormal95)};
  Top1Intervals intervals{{NAN, NAN}, {NAN, NAN}};
  const auto take = [](const Member<Ends>& ends, stats::Interval& interval) {
    if (ends && ends->known()) interval = {*ends->low, *ends->high};
  };
  for (const RowScore& score : scores) {
    if (score.name != "top1") continue;
    take(score.ci95, intervals.top1);
    take(score.difference_ci95, intervals.difference);
  }
  return intervals;
}

double changed_answers(const net::Evaluation& own, const net::Evaluation& baseline) {
  std::int64_t changed = 0;  // where there is no class, neither has an answer
  for (std::size_t i = 0; i < own.answers.size(); ++i)
    changed += own.answers[i] != baseline.answers.at(i);
  return static_cast<double>(changed) / static_cast<double>(std::max<std::int64_t>(1, own.n));
}

stats::PairedAnswers paired_answers(const net::Evaluation& own, const net::Evaluation& baseline) {
  // Ignored targets are right in neither and not counted in n.
  stats::PairedAnswers answers = stats::count_answers(
      static_cast<std::int64_t>(own.right.size()),
      [&](std::int64_t i) { return own.right[static_cast<std::size_t>(i)] != 0; },
      [&](std::int64_t i) { return baseline.right[static_cast<std::size_t>(i)] != 0; });
  answers.n = own.n;
  return answers;
}

std::int64_t block_length(std::int64_t n) {
  std::int64_t length = 1;
  while (length * length * length < n) ++length;
  return std::clamp<std::int64_t>(n / 2, 1, length);  // at least two blocks
}

std::vector<RowScore> scores_of(const net::Dataset& data,
                                const std::vector<net::OutputScore>& scores,
                                const net::Evaluation& evaluation,
                                const net::Evaluation& baseline) {
  return scores_of(data.kind() == net::DataKind::text, scores, evaluation, baseline);
}

std::vector<RowScore> scores_of(bool sequence, const std::vector<net::OutputScore>& scores,
                                const net::Evaluation& evaluation,
                                const net::Evaluation& baseline) {
  const std::int64_t n = evaluation.samples;
  const std::int64_t block = sequence ? block_length(n) : 1;
  const std::int64_t blocks = (n + block - 1) / block;
  std::vector<std::int64_t> times(static_cast<std::size_t>(n));
  std::vector<std::int64_t> once(static_cast<std::size_t>(n), 1);
  // One sample does not vary, and resamples without the one that has no figure would hide it.
  const auto interval = [&](const auto& figure) {
    if (blocks < 2 || !std::isfinite(figure(once))) return stats::Interval{NAN, NAN};
    return stats::bootstrap_interval(
        blocks, kResamples, 0, [&](const std::vector<std::int64_t>& drawn) {
          std::fill(times.begin(), times.end(), 0);
          for (const std::int64_t b : drawn) {
            for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) ++times[i];
          }
          return figure(times);
        });
  };
  std::vector<RowScore> list;
  for (std::size_t s = 0; s < scores.size(); ++s) {
    const net::ScoreTable &own = evaluation.tables.at(s), &other = baseline.tables.at(s);
    const net::Figure value = scores[s]->figure(own), reference = scores[s]->figure(other);
    const auto change = [&](const std::vector<std::int64_t>& t) { return value(t) - reference(t); };
    const std::optional<stats::PairedAnswers> answers =
        scores[s]->share && block == 1 ? counted(own, other) : std::nullopt;
    stats::Interval ends = answers ? stats::wilson(answers->both + answers->only1, answers->n)
                                   : interval(value),
                    difference_ends = answers ? stats::paired_share(*answers, 1, stats::kNormal95)
                                              : interval(change);
    std::vector<std::string> exact;
    if (scores[s]->share && ends.low == ends.high) {
      ends = of_equal_units(ends.low, 0, 1, blocks, heaviest_block(own, block, blocks));
      exact.emplace_back("ci95");
    }
    if (scores[s]->share && difference_ends.low == difference_ends.high) {
      const double float32 = reference(once);
      difference_ends =
          of_equal_units(difference_ends.low, -1, 1, blocks, heaviest_block(own, block, blocks));
      difference_ends.low = std::max(difference_ends.low, -float32);
      difference_ends.high = std::min(difference_ends.high, 1 - float32);
      exact.emplace_back("difference_ci95");
    }
    RowScore& score = list.emplace_back();
    score.name = scores[s].name;
    score.value = row_number(value(once));
    score.ci95 = row_ends(ends.low, ends.high);
    score.baseline = row_number(reference(once));
    score.difference = row_number(change(once));
    score.difference_ci95 = row_ends(difference_ends.low, difference_ends.high);
    score.exact = std::move(exact);
    if (answers) {
      score.gained = answers->only1;
      score.lost = answers->only2;
    } else {
      score.resampled = block == 1 ? "samples" : fmt::format("blocks of {} windows", block);
    }
    score.why_no_value = why_no_figure(own, value(once));
    score.why_no_baseline = why_no_figure(other, reference(once));
    if (!score.why_no_baseline.empty() && scores[s]->reference)
      score.why_no_baseline = "float32 is compared with itself";
  }
  return list;
}

namespace {

RowExpected row_expected(const Expected& expected, const Member<double>& measured, bool share) {
  stats::Interval ends = expected.interval();
  if (share) ends = {std::max(0.0, ends.low), std::min(1.0, ends.high)};
  RowExpected out{row_number(expected.value), row_ends(ends.low, ends.high), {}};
  if (measured) out.verdict = expected_verdict(expected.value, *out.ci95, *measured);
  return out;
}

/// Float32's figure on all samples and the change on those that are predicted.
void add_expected_scores(std::vector<RowScore>& scores, const net::Dataset& data,
                         const AccuracyReference& reference, const AccuracyPrediction& predicted,
                         std::int64_t evaluated) {
  if (scores.empty()) return;
  const std::vector<RowScore> changes =
      scores_of(data, reference.scores, predicted.noisy, predicted.float32);
  const double longer = measured_too(predicted.noisy.samples, evaluated);
  for (RowScore& score : scores) {
    const auto change = std::ranges::find(changes, score.name, &RowScore::name);
    if (change == changes.end() || !change->difference || !score.baseline) continue;
    const double by = *change->difference, value = *score.baseline + by;
    const Ends ends = change->difference_ci95.value_or(Ends());
    score.predicted = row_number(value);
    if (!ends.known()) continue;
    const double floor = stats::kNormal95 * kChangeFloor * std::fabs(by);
    score.predicted_ci95 = row_ends(value - portable::hypot(longer * (by - *ends.low), floor),
                                    value + portable::hypot(longer * (*ends.high - by), floor));
  }
}

}  // namespace

void add_expected(Row& row, const net::Dataset& data, const AccuracyReference& reference,
                  const AccuracyPrediction& predicted, std::int64_t evaluated) {
  RowAccuracy accuracy;
  accuracy.samples = predicted.noisy.samples;
  if (predicted.top1) accuracy.top1 = row_expected(*predicted.top1, row.metrics.top1, true);
  if (predicted.changed)
    accuracy.changed = row_expected(*predicted.changed, row.metrics.changed, true);
  accuracy.loss = row_expected(predicted.loss, row.metrics.loss, false);
  row.predicted.accuracy = accuracy;
  add_expected_scores(row.scores, data, reference, predicted, evaluated);
}

}  // namespace numemu::experiments

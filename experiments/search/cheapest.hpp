// The cheapest of some configurations that loses little accuracy: found by bisection over
// measurements, of networks as they are or tuned.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// A configuration, cheapest first in a list.
struct LossCandidate {
  std::string name;
  Json recipe;
};

/// Steps (docs/tune.md) by which each candidate is tuned before it is measured, as `tune` does.
struct LossTuning {
  std::string steps;
  std::int64_t samples = 512;  ///< of calibration, at most
};

/// What was measured of a candidate: the last stage of samples, and what its interval decided.
struct Tried {
  std::size_t candidate = 0;
  stats::PairedAnswers answers;    ///< only1: right in float32 alone; only2: in the recipe alone
  stats::Interval loss = {0, 0};   ///< of top-1 as a share, simultaneous over all that may be tried
  std::optional<bool> keeps = {};  ///< none: all samples did not decide

  double mean() const {
    return static_cast<double>(answers.only1 - answers.only2) / static_cast<double>(answers.n);
  }
};

/// Samples of successive stages: four times as many each time, the last of all.
std::vector<std::int64_t> stages_of(std::int64_t images);
inline constexpr std::int64_t kFirstStage = 250;

/// By bisection, as if candidates that cost more lose no more, then down from the one that was
/// found over at most kNeighbours cheaper ones, which shows where that is not so. A candidate is
/// measured on one stage after the other until its interval lies on one side of `limit`. The
/// intervals are Tango's at 95 % for all looks of all measurements together (Bonferroni, four
/// fifths of it for the looks at all samples), so that the answer is sure however it was chosen.
/// `order` has what was tried, in that order; `found` is the place of the answer in it, if one is
/// sure. Every look is a trial of the run. `searches`: so many share the 95 %.
struct Cheapest {
  std::vector<Tried> order;
  std::optional<std::size_t> found;
  std::size_t looks = 0;  ///< that the correction counts, of all searches
};
inline constexpr int kNeighbours = 2;
Cheapest cheapest_within(const ExperimentRun&, const Workbench&, const std::vector<LossCandidate>&,
                         double limit, std::size_t searches = 1,
                         const LossTuning* tuning = nullptr);

/// The same of any measurement: `measure` gives the answers of a candidate on the first `images`.
Cheapest cheapest_within(
    std::size_t candidates, std::int64_t images, double limit,
    const std::function<stats::PairedAnswers(std::size_t candidate, std::int64_t images)>& measure,
    std::size_t searches = 1);

}  // namespace numemu::experiments

// What a search shows: configurations on their way through its stages, their tables, charts and
// verdicts.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/report/record.hpp"
#include "experiments/search/ranking.hpp"

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

/// Noise over signal in dB; +inf without noise.
double search_db(double noise);

/// What refines a configuration.
struct RefinedNoise {
  double db = 0, gained_db = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("sqnr_db", self.db);
    visit("gained_db", self.gained_db);
    visit("error_db", self.error);
  }
};

/// A configuration on its way through the stages.
struct SearchEntry {
  Configured configured;
  std::string name;
  Json recipe;
  double linear_db = 0;
  RefinedNoise refined = {};
  bool random = false;  ///< of the control
  const Record* record = nullptr;

  double measured_db() const { return record != nullptr ? record->sqnr_db.value_or(NAN) : NAN; }
};

/// Everything that is ranked, with names and recipes.
struct SearchSpace : RankedSpace {
  std::string name(const Configured& c) const {
    const std::string &w = weights.options[c.weight].name,
                      &a = activations.options[c.activation].name;
    const std::string both = w == a ? w : w + " / " + a;
    return units.size() == 1 ? both : both + " / " + unit_name(c);
  }
  std::string unit_name(const Configured& c) const {
    const std::string& name = units[c.unit].name;
    return name.empty() ? "f32.sequential" : name;
  }
  Json recipe(const Configured& c) const {
    Json recipe = {{"numemu_recipe", 1},
                   {"roles",
                    {{"weight", weights.options[c.weight].role},
                     {"activation", activations.options[c.activation].role}}}};
    if (const std::string& unit = units[c.unit].name; !unit.empty())
      recipe["gemms"] = {{"fprop", {{"unit", unit}}}};
    return recipe;
  }
  SearchEntry entry(const Configured& c) const {
    return {.configured = c, .name = name(c), .recipe = recipe(c), .linear_db = search_db(c.noise)};
  }
};

/// The first `shown` of the linear ranking.
ResultTable ranked_table(const SearchSpace&, const SearchRanking&, std::size_t shown);

/// Of measured entries, at least one: predictions beside measurements; SQNR against bits, with what
/// was refined; accuracy against the cost of multiply-adds.
ResultTable measured_table(const SearchSpace&, const std::vector<SearchEntry>& measured);
Chart front_chart(const std::vector<SearchEntry>& refined,
                  const std::vector<SearchEntry>& measured);
Chart accuracy_chart(const std::vector<SearchEntry>& measured);
/// Loss against bits with the limit, a share; say_cheapest() adds what was tried.
Chart loss_chart(double limit);
/// The configuration that is predicted to be the best, beside what was measured of it and of the
/// best of all.
std::string best_sentence(const SearchSpace&, const SearchRanking&,
                          const std::vector<SearchEntry>& refined,
                          const std::vector<SearchEntry>& measured, const SearchBudget&);
/// Predictions beside measurements, how well they rank, and what was missed by trusting them.
void judge_search(const std::vector<SearchEntry>& measured, Conclusion&);

/// Writes FOLDER/recipe-NAME.json, which other commands take; returns the file's name.
/// The conclusion is the same in every folder.
std::string write_search_recipe(const std::string& folder, const char* name, const Json& recipe);
/// A table of what was tried, its points in the first chart, and the answer with its recipe;
/// `front` are the candidates. `tuning`: how each was tuned, or null.
void say_cheapest(const ExperimentRun&, const std::vector<SearchEntry>& front, const Cheapest&,
                  double limit, const LossTuning* tuning, Conclusion&);

}  // namespace numemu::experiments

// The stages of a search behind the linear ranking, and a configuration on its way through them:
// configurations are refined by noise of random phase, so are what units add, and the best are
// measured.
#pragma once
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/search/ranking.hpp"

namespace numemu::experiments {

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
  const ReportRow* record = nullptr;

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

/// Predicts every entry again by noise of random phase: trials of the run.
void refine(const ExperimentRun&, const Workbench&, std::vector<SearchEntry>&);

/// Gives units their noise: by noise of random phase, what a unit adds to the configuration of
/// least noise that it takes, of each size of numbers (RankedUnit::noise). Infinite where one of
/// both has no figure: a sentence for each unit of which that is so. Trials of the run.
std::vector<std::string> add_unit_noise(const ExperimentRun&, const Workbench&, SearchSpace&,
                                        const SearchBudget&);

/// What is refined and measured besides the random ones: of both, or along the front as far as it
/// goes, which is where a budget of accuracy is met.
enum class Along : unsigned char { both, front };

/// Those to refine: the random ones, half of `count` along the front, the rest the best.
std::vector<SearchEntry> entries_of(const SearchSpace&, const SearchRanking&, std::size_t count,
                                    Along = Along::both);

/// The best by refined noise first, without a figure last.
bool quieter(const SearchEntry&, const SearchEntry&);

/// Those to measure, in the order of `refined`, which is that of quieter(): the random ones and
/// `count` others, the best. On several units half of them are the best, the others lie along the
/// front of bits, cost and refined noise, as far as the noise is below the signal; so does all but
/// the best where all is to lie along the front.
std::vector<SearchEntry> to_measure(const std::vector<SearchEntry>& refined, std::size_t count,
                                    std::size_t units, Along = Along::both);

/// Runs the entries as the points of a sweep, whose rows the folder then has.
std::vector<Row> measure(const ExperimentRun&, const Workbench&, const std::vector<SearchEntry>&);

}  // namespace numemu::experiments

// What a search shows: configurations on their way through its stages, their tables, charts and
// verdicts.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/report/record.hpp"
#include "experiments/search/cheapest.hpp"
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

/// Writes FOLDER/recipe-NAME.json, which other commands take; returns its path.
std::string write_search_recipe(const std::string& folder, const char* name, const Json& recipe);
/// A table of what was tried, its points in the first chart, and the answer with its recipe;
/// `front` are the candidates. `tuning`: how each was tuned, or null.
void say_cheapest(const ExperimentRun&, const std::vector<SearchEntry>& front, const Cheapest&,
                  double limit, const LossTuning* tuning, Conclusion&);

}  // namespace numemu::experiments

// What a search shows: tables, charts and verdicts of its configurations.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/search/cheapest.hpp"
#include "experiments/search/stages.hpp"

namespace numemu::experiments {

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

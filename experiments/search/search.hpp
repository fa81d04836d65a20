// The stages of a search behind the linear ranking: configurations are refined by noise of random
// phase, so are what units add, and the best are measured.
#pragma once
#include <cstddef>
#include <vector>

#include "experiments/engine/workbench.hpp"
#include "experiments/search/conclusion.hpp"

namespace numemu::experiments {

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

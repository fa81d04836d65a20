// What a run found in one sentence, for the first line of a report, a page or a terminal.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu::experiments {

/// "3 hold, 1 is undecided": those that there are.
std::string verdict_words(const VerdictCounts&);

/// "mlp on glyphs; seeds: 5; steps: 512": the networks of a run beside their data, its seeds and
/// the steps of a training, by its settings; "-" is a network that the run does without.
std::string run_words(const ExperimentFile&);

/// The answer that a run has itself, or how many claims hold:
/// "Of 6 published claims 4 hold, 1 is undecided, 1 fails (mlp on glyphs; seeds: 5; steps: 512)."
/// The claims of our own count where a file has no published ones; "" without claims.
std::string answer_of(const ExperimentFile&);

/// What the papers have beside each claim: "12 x (abstract)", "" where they give no figure; empty
/// where no claim has one.
std::vector<std::string> published_figures(const ExperimentFile&);

}  // namespace numemu::experiments

// The published systems that run here: their papers, what these claim, and which claim of an
// experiment tests it; what a run found of them in one sentence.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu::experiments {

/// What a paper claims.
struct PublishedClaim {
  std::string_view text;   ///< with the paper's figure where it gives one
  std::string_view place;  ///< where it stands: "abstract", "theorem", "supplement", "repository";
                           ///< "paper": elsewhere in it
  std::string_view experiment = {};  ///< the experiment whose claim `key` tests it
  std::string_view key = {};         ///< empty: not tested here
  std::string_view nearest = {};     ///< of what is not tested: why, and the nearest run
  std::string_view figure = {};      ///< the paper's; empty: none
  /// What the paper tested it on, where no run here has that: larger networks, longer trainings,
  /// other machines. A verdict is then one on the set-up of the run. Empty where any run can test
  /// the claim: a formula, a count, a property of every network.
  std::string_view setup = {};
  /// Follows from the definition of the method (a count, a size, a rewriting, a proven bound), so
  /// that any correct program meets it: a test of it checks the program, not the method.
  bool identity = false;
};

struct System {
  std::string_view name, paper;
  std::vector<PublishedClaim> claims;
};

/// What claims are tested on whose set-up no run has, in a word for all.
inline constexpr std::string_view kElsewhere =
    "larger networks, longer trainings or other machines";

/// In the order of the page: sparsity, quantization, training, many workers.
std::span<const System> published_systems();

/// The first published claim that this claim of an experiment tests; null where it tests none.
const PublishedClaim* published_claim(std::string_view experiment, std::string_view key);

/// What the papers have beside that claim of an experiment, figure and set-up: "12 x (abstract)",
/// "no loss, ResNet-18 on ImageNet (abstract)"; "" where they give neither, or the claim is none of
/// theirs.
std::string published_figure(std::string_view experiment, std::string_view key);

/// "fails", of a claim that its paper tested on another set-up "fails in this set-up". "undecided"
/// says no more of either.
std::string verdict_text(Verdict, bool other_setup);
/// The same of a claim of a run; "not tested" without a verdict.
std::string verdict_text(const ExperimentFile&, const ClaimRow&);

/// "3 hold, 1 is undecided": those that there are.
std::string verdict_words(const VerdictCounts&);

/// "mlp on glyphs; seeds: 5; steps: 512": the networks of a run beside their data, its seeds and
/// the steps of a training, by its settings; "-" is a network that the run does without.
std::string run_words(const ExperimentFile&);

/// The answer that a run has itself, or how many claims hold: "Of 4 published claims 4 hold; of 2
/// whose papers test larger networks, longer trainings or other machines 1 is undecided, 1 fails in
/// this set-up (mlp on glyphs; seeds: 5; steps: 512)." The claims of our own count where a file has
/// no published ones; "" without claims.
std::string answer_of(const ExperimentFile&);

/// What the papers have beside each claim: "12 x (abstract)", "" where they give no figure; empty
/// where no claim has one.
std::vector<std::string> published_figures(const ExperimentFile&);

}  // namespace numemu::experiments

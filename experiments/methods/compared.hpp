// Methods of training, each a change of a trial's options or recipe, compared seed by seed under
// several recipes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/engine/study.hpp"

namespace numemu::experiments {

/// A method, and what sets it apart of a trial. The recipe is that of the comparison by then.
struct ComparedMethod {
  std::string name;
  std::function<void(TrainTrial&)> choose;
};

struct Comparison {
  TrainTrial trial;                     ///< without recipe and seed
  std::vector<ComparedMethod> methods;  ///< the first is the one the others are compared with
  std::vector<std::string> recipes;     ///< "float32", or names of shipped recipes and files
  bool at_once = true;
  /// Figures of the network that the last update left, part of the result; may be empty. `figured`
  /// says what they are, for the point.
  std::function<std::vector<double>(const TrainTrial&, const net::Graph&)> after = {};
  std::string figured = {};
};

/// A run: its accuracy, or minus its bits per character, so that more is better.
struct ComparedRun {
  TrainOutcome outcome;
  double state_bytes = 0;          ///< of the optimizers, for each trained parameter
  std::vector<double> after = {};  ///< Comparison::after

  /// Per cent, or minus bits per character; NaN where the run diverged.
  double better() const { return outcome.accuracy ? outcome.top1() : -outcome.metric; }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("state_bytes", self.state_bytes);
    visit("after", self.after, kIfAny);
  }
};

/// What ran under a recipe.
struct ComparedUnder {
  std::string recipe;
  Study<ComparedRun> study;
  SeedFigures better;  ///< ComparedRun::better()

  bool accuracy() const { return study.runs[0][0].outcome.accuracy; }
  /// "points of top-1" or "bits per character".
  std::string unit() const { return accuracy() ? "points of top-1" : "bits per character"; }
};

/// The base of the trial's recipe of that name; {} for float32.
Json recipe_named(const ExperimentRun&, const std::string& name);

/// Throws Error for a recipe that cannot train the network with one of the methods.
void require_trainable(const ExperimentRun&, const net::Dataset&, const Comparison&);

/// Trains every method with every seed under every recipe. Adds a table and a chart for each
/// recipe, and a sentence for each run that diverged.
std::vector<ComparedUnder> compare_methods(const ExperimentRun&, const net::Dataset&,
                                           const Comparison&, Conclusion&);

}  // namespace numemu::experiments

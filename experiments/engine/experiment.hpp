// An experiment: one question, its settings by size, and a conclusion with predictions beside
// measurements.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment_file.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/settings.hpp"
#include "experiments/engine/sweep.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Thrown by a shard of an experiment when its share is stored and that of others is not yet: it
/// cannot conclude.
struct OthersMissing {};

/// The input of an experiment.
struct ExperimentRun {
  Settings settings;
  std::uint64_t seed = 0;
  std::string out;  ///< folder for its rows, which a killed run finds again
  Existing existing = Existing::resume;
  /// Of its trials (trials.hpp) and points; one of several ends with OthersMissing or concludes.
  Shard shard = {};
  Folders folders;
  SweepHooks hooks;
  /// Told before long work without points ("loading ...").
  std::function<void(const std::string&)> say = [](const std::string&) {};
  /// Of a workbench, before its first point, and of integrals.
  OnWork on_bench = {};
  /// Whether run_trials dropped what --fresh drops: once, however often an experiment calls it.
  std::shared_ptr<bool> trials_dropped = std::make_shared<bool>(false);
};

/// The data set that the setting names; says that it is being loaded.
net::Dataset load_data(const ExperimentRun&, const std::string& key = "data");

struct Conclusion {
  /// To the question, in a sentence or two; "" where the claims are the answer. A conclusion that
  /// has one and no findings has no claims.
  std::string answer = {};
  std::vector<std::string> sentences;  ///< what was found, for people
  std::vector<ResultTable> tables;
  std::vector<Finding> findings;
  std::vector<Chart> charts;

  /// Adds findings about a claim; "": each knows its own.
  void add(Finding, const char* claim = "");
  void add(std::vector<Finding>, const char* claim = "");
};

/// What parts conclude, one after the other: functions of the run, or of the run and its data set
/// (the setting `data`, loaded for the first part that takes it), that add to a conclusion.
template <auto... parts>
Conclusion conclude(const ExperimentRun& run) {
  Conclusion conclusion;
  std::optional<net::Dataset> data;
  const auto add = [&]<class Part>(Part part) {
    if constexpr (std::is_invocable_v<Part, const ExperimentRun&, Conclusion&>) {
      part(run, conclusion);
    } else {
      if (!data) data = load_data(run);
      part(run, *data, conclusion);
    }
  };
  (add(parts), ...);
  return conclusion;
}

/// Something that an experiment puts to the test.
struct Claim {
  const char* key;   ///< findings name it
  const char* text;  ///< a sentence
  /// A setting at whose value of size smoke, where that is no other size's, the claim cannot be
  /// seen: its findings get no verdict there. Null: any run sees it.
  const char* needs = nullptr;
};

/// One file in experiments/ defines `const Experiment experiment_<stem>`.
struct Experiment {
  const char* name;
  const char* question;  ///< one line, without a question mark
  const char* source;    ///< what its source claims: a sentence that names it
  std::vector<Claim> claims;
  SettingList settings;
  Conclusion (*run)(const ExperimentRun&);
  /// Throws Error for settings that contradict each other; null: none can.
  void (*check)(const Settings&) = nullptr;
};

/// Of a run at that size. Throws Error for what the settings do not take or what contradicts.
Settings settings_of(const Experiment&, Size, const std::vector<std::string>& overrides,
                     GivenBy = GivenBy::set);

std::vector<const Experiment*> all_experiments();
/// Throws Error with the nearest known name.
const Experiment& find_experiment(std::string_view name);

struct ClaimResult {
  const Claim* claim = nullptr;
  VerdictCounts found = {};  ///< of its findings, self-checks left out
  /// Of those with the claim's verdict the one furthest from its prediction; null without findings.
  const Finding* worst = nullptr;
};

/// One for each claim, in their order. Throws Error for a finding, self-checks apart, that names
/// none of them.
std::vector<ClaimResult> claim_results(const std::vector<Claim>&, const std::vector<Finding>&);

/// Throws Error for a finding that is about no claim. Findings of claims that the run's settings
/// cannot show get no verdict.
ExperimentFile file_of(const Experiment&, const ExperimentRun&, const Conclusion&);

}  // namespace numemu::experiments

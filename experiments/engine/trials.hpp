// Independent pieces of an experiment's work, each remembered once it is done.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// A piece of work whose result is a function of `point` alone (numerics version aside).
struct Trial {
  Json point;         ///< an object: everything the result depends on
  std::string label;  ///< for the progress line
  std::function<Json()> run;
};

/// The results in the order of the trials. Each is appended durably to `run.out`/trials.jsonl as
/// {"key", "point", "result", "version", "digest"}; a killed run finds what is there and computes
/// the rest, to the same bytes. Trials with equal points are run once. An experiment may call this
/// several times: rows of other points stay in the file, in front. Numbers that are not finite come
/// back as null. With Existing::fresh the first call of a run drops what is there. Damaged rows are
/// dropped, said through hooks.warn. Throws Error for rows of another numerics version (unless
/// Existing::keep_old), and when another process is writing to it.
///
/// A shard of the run runs the trials whose number is its index modulo its count and stores them in
/// trials.<i>.jsonl. Where others' are missing by then it throws OthersMissing; where none are, as
/// of an earlier call that all shards are through with, it goes on.
std::vector<Json> run_trials(const ExperimentRun& run, const std::vector<Trial>& trials);

/// Runs a trial on each OpenMP thread: for many trials that are short, whose loops inside
/// would wait for each other at every operator, worst on a busy machine. The trials must be safe to
/// run at once and must not depend on their order. Same file, byte for byte; progress names the
/// trial whose row comes next. After a failure the rows before it are there.
std::vector<Json> run_trials_at_once(const ExperimentRun& run, const std::vector<Trial>& trials);

/// A trial whose result has its fields declared (formats/storage/fields.hpp).
template <class Measured>
struct TypedTrial {
  Json point;
  std::string label;
  std::function<Measured()> run;
};

/// A trial for run_trials(), where trials of several types run together; measured() reads the
/// result.
template <class Measured>
Trial untyped(TypedTrial<Measured> typed) {
  return {std::move(typed.point), std::move(typed.label),
          [run = std::move(typed.run)] { return json_of(run()); }};
}

/// A result of run_trials() as it was measured.
template <class Measured>
Measured measured(const Json& result) {
  return read_fields<Measured>(result, "trials.jsonl");
}

/// A mean of numbers with its standard error.
struct MeanError {
  double mean = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("mean", self.mean);
    visit("error", self.error);
  }
};

/// Numbers as they come, of whose sums a mean is made.
class RunningMean {
 public:
  void add(double x);
  /// The variance is divided by n, less `less`.
  MeanError mean(std::int64_t less = 0) const;

 private:
  double sum_ = 0, squares_ = 0;
  std::int64_t n_ = 0;
};

/// run_trials(), or with `at_once` run_trials_at_once(), of results that are read back as they were
/// measured.
template <class Measured>
std::vector<Measured> run_typed(const ExperimentRun& run, std::vector<TypedTrial<Measured>> typed,
                                bool at_once = false) {
  std::vector<Trial> trials;
  for (TypedTrial<Measured>& one : typed) trials.push_back(untyped(std::move(one)));
  std::vector<Measured> results;
  for (const Json& json : at_once ? run_trials_at_once(run, trials) : run_trials(run, trials))
    results.push_back(measured<Measured>(json));
  return results;
}

/// A trial for each case: what `trial_of` makes of it.
template <class Measured, class Case, class TrialOf>
std::vector<Measured> run_cases(const ExperimentRun& run, const std::vector<Case>& cases,
                                const TrialOf& trial_of, bool at_once = false) {
  std::vector<TypedTrial<Measured>> trials;
  for (const Case& one : cases) trials.push_back(trial_of(one));
  return run_typed(run, std::move(trials), at_once);
}

}  // namespace numemu::experiments

// Trials: rows like those of a sweep, in a file of their own.
#include "experiments/engine/trials.hpp"

#include <set>

#include "experiments/engine/row_store.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {
namespace {

bool is_trial(const Json& row) {
  return row.contains("point") && row["point"].is_object() && row.contains("result");
}

/// Trials of other settings, or of an earlier call of the same experiment, stay where they are.
RowStore open_store(const ExperimentRun& run, const std::vector<std::string>& keys) {
  static const RowFile file{"trials.jsonl", "experiment", is_trial, "point (an object) and result"};
  const bool drop = run.existing == Existing::fresh && !*run.trials_dropped;
  *run.trials_dropped = true;
  const Existing rest = run.existing == Existing::keep_old ? Existing::keep_old : Existing::resume;
  return {file, run.out, keys, drop ? Existing::fresh : rest};
}

}  // namespace

std::vector<Json> run_trials(const ExperimentRun& run, const std::vector<Trial>& trials) {
  std::vector<std::string> keys, distinct;
  std::set<std::string> seen;
  for (const Trial& trial : trials) {
    keys.push_back(row_key(trial.point));
    if (seen.insert(keys.back()).second) distinct.push_back(keys.back());
  }
  RowStore store = open_store(run, distinct);
  for (const std::string& damage : store.damaged()) run.hooks.warn(damage);
  std::vector<Json> results;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::string& key = keys[i];
    if (run.hooks.on_trial) run.hooks.on_trial(i, store.kept(), trials.size(), trials[i].label);
    if (!store.has(key)) {
      const Json row = {{"key", key},
                        {"point", trials[i].point},
                        {"result", trials[i].run()},
                        {"version", kNumericsVersion}};
      store.append(key, row.dump());
    }
    // Read back, so that a result is the same whether it was computed now or found.
    results.push_back(Json::parse(store.line(key))["result"]);
  }
  if (run.hooks.on_trial) run.hooks.on_trial(trials.size(), store.kept(), trials.size(), "");
  return results;
}

}  // namespace numemu::experiments

// Trials: rows like those of a sweep, in a file of their own.
#include "experiments/engine/trials.hpp"

#include <omp.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "experiments/engine/row_store.hpp"
#include "experiments/engine/side_by_side.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {
namespace {

bool is_trial(const Json& row) {
  return row.contains("point") && row["point"].is_object() && row.contains("result");
}

/// Trials of other settings, or of an earlier call of the same experiment, stay where they are.
RowStore open_store(const ExperimentRun& run, const std::vector<std::string>& keys) {
  static const RowFile file{"trials", "experiment", is_trial, "point (an object) and result"};
  const bool drop = run.existing == Existing::fresh && !*run.trials_dropped;
  *run.trials_dropped = true;
  const Existing rest = run.existing == Existing::keep_old ? Existing::keep_old : Existing::resume;
  return {file, run.out, keys, drop ? Existing::fresh : rest, run.shard};
}

/// The store of a run's trials, and the results found in it so far.
class Results {
 public:
  Results(const ExperimentRun& run, const std::vector<Trial>& trials) : run_(run), trials_(trials) {
    std::vector<std::string> distinct;
    std::set<std::string> seen;
    for (const Trial& trial : trials) {
      keys_.push_back(row_key(trial.point));
      repeats_.push_back(!seen.insert(keys_.back()).second);
      if (repeats_.back()) continue;
      if (static_cast<int>(distinct.size() % run.shard.count) == run.shard.index)
        own_.push_back(keys_.size() - 1);
      distinct.push_back(keys_.back());
    }
    store_.emplace(open_store(run, distinct));
    for (const std::string& damage : store_->damaged()) run.hooks.warn(damage);
  }

  /// The trials of this run, in order: all, or those of its shard.
  std::vector<std::size_t> own() const {
    if (!run_.shard.whole()) return own_;
    std::vector<std::size_t> all(trials_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  /// Whether trial i has to be run: the first of its point, without a row.
  bool missing(std::size_t i) const { return !repeats_[i] && !store_->has(keys_[i]); }

  void announce(std::size_t i) const {
    if (!run_.hooks.on_trial) return;
    const bool over = i == trials_.size();
    run_.hooks.on_trial(i, store_->kept(), trials_.size(), over ? "" : trials_[i].label);
  }

  void append(std::size_t i, const Json& result) {
    const Json row = {{"key", keys_[i]},
                      {"point", trials_[i].point},
                      {"result", result},
                      {"version", kNumericsVersion}};
    store_->append(keys_[i], row.dump());
  }

  /// Read back, so that a result is the same whether it was computed now or found.
  std::vector<Json> all() {
    store_->finish();
    store_->look_again();
    std::vector<Json> results;
    for (const std::string& key : keys_) {
      if (!store_->has(key)) throw OthersMissing();
    }
    for (const std::string& key : keys_)
      results.push_back(Json::parse(store_->line(key))["result"]);
    return results;
  }

 private:
  const ExperimentRun& run_;
  const std::vector<Trial>& trials_;
  std::vector<std::string> keys_;
  std::vector<bool> repeats_;
  std::vector<std::size_t> own_;  ///< of a shard
  std::optional<RowStore> store_;
};

}  // namespace

void RunningMean::add(double x) {
  sum_ += x;
  squares_ += x * x;
  ++n_;
}

MeanError RunningMean::mean(std::int64_t less) const {
  const auto n = static_cast<double>(n_);
  const double mean = sum_ / n, variance = std::fmax(0, squares_ / n - mean * mean);
  return {mean, std::sqrt(variance / std::fmax(1, n - static_cast<double>(less)))};
}

std::vector<Json> run_trials(const ExperimentRun& run, const std::vector<Trial>& trials) {
  Results results(run, trials);
  for (const std::size_t i : results.own()) {
    results.announce(i);
    if (results.missing(i)) results.append(i, trials[i].run());
  }
  results.announce(trials.size());
  return results.all();
}

std::vector<Json> run_trials_at_once(const ExperimentRun& run, const std::vector<Trial>& trials) {
  Results results(run, trials);
  const std::vector<std::size_t> own = results.own();
  std::vector<char> missing(own.size());
  for (std::size_t k = 0; k < own.size(); ++k) missing[k] = results.missing(own[k]) ? 1 : 0;
  side_by_side(
      own.size(), omp_get_max_threads(),
      [&](std::size_t k) { return missing[k] != 0 ? trials[own[k]].run() : Json(); },
      [&](std::size_t k, const Json& result) {
        results.announce(own[k]);
        if (missing[k] != 0) results.append(own[k], result);
      });
  results.announce(trials.size());
  return results.all();
}

}  // namespace numemu::experiments

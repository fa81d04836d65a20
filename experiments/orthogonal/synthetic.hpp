// The energy of random neurons that are drawn, rounded and turned, beside its closed forms; rates of
// rules that turn them in training.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::orthogonal {

/// Ordinary training, then the rules; rates by name.
struct RatedRules {
  TrainTrial trial;
  std::vector<std::string> names;
  std::map<std::string, double> rates;

  /// `base` is the recipe without rules. The rule stands in the inner layers; the first layer,
  /// whose neurons are long, turns by `first`, the last is trained as usual.
  TrainTrial trial_of(std::size_t method, std::uint64_t seed, const Json& base,
                      const std::string& first, const net::Graph&) const;
};

/// The rate of the setting `rates` at which each method has the best top-1 in float32, by
/// `tuning_seeds` behind all seeds that are judged; adds a table. A single rate is not tried.
std::map<std::string, double> chosen_rates(const ExperimentRun&, const net::Dataset&, RatedRules,
                                           Conclusion&);

/// The mean energy (settings neurons, elements, power, draws, repeats, here and below).
void add_random(const ExperimentRun&, Conclusion&);
/// Mean squares of its change by steps that are rounded (settings formats, turns, angle).
void add_rounding(const ExperimentRun&, Conclusion&);
/// What a step of each way changes in float64 (setting series_angle).
void add_ways(const ExperimentRun&, Conclusion&);

/// Whether the rule, "orthogonal(WAY,...)", turns neurons exactly up to rounding.
bool keeps_energy(std::string_view rule);

}  // namespace numemu::experiments::orthogonal

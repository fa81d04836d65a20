#include "experiments/delayed_weights/stable_rate.hpp"

#include <cmath>

#include "emu/net/graph.hpp"
#include "emu/net/train/options.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::delayed_weights {
namespace {

bool stable(TrainTrial trial, const net::Dataset& data, double octaves) {
  trial.options.learning_rate = portable::exp2(octaves);
  double first = NAN;
  bool within = true;
  trial.on_loss = [&](double loss) {
    if (std::isnan(first)) first = loss;
    within = within && loss <= kDiverged * first;
  };
  run_train_trial(trial, data);
  return within;
}

}  // namespace

StableRate largest_stable_rate(TrainTrial trial, const net::Dataset& data, std::int64_t before) {
  TrainTrial first = trial;
  first.options.optimizer = "adam-l2";
  net::use_recommended_rates(first.options, trial.net);
  first.options.weight_decay = trial.options.weight_decay;
  first.options.schedule = "cosine";  // which ends at the minimum
  first.options.epochs = before;
  const net::Graph trained = trained_in_float32(first, data);
  for (const net::Parameter* parameter : trained.parameters())
    trial.start.push_back({parameter->name, parameter->value});
  double low = kLowestRate, high = kHighestRate;
  while (high - low > kRateResolution) {
    const double middle = (low + high) / 2;
    (stable(trial, data, middle) ? low : high) = middle;
  }
  const bool found = low > kLowestRate && high < kHighestRate;
  return {found ? (low + high) / 2 : NAN};
}

}  // namespace numemu::experiments::delayed_weights

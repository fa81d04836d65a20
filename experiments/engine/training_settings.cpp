#include "experiments/engine/training_settings.hpp"

#include "emu/net/train/options.hpp"

namespace numemu::experiments {

TrainTrial training_of(const Settings& settings, const std::string& net,
                       const TrainingNeeds& needs) {
  TrainTrial trial;
  const auto whole = [&](const char* key, std::int64_t least, std::int64_t most) {
    return settings.integer(needs.prefix + key, least, most);
  };
  trial.net = net;
  trial.options.optimizer = !needs.optimizer.empty() ? needs.optimizer
                            : settings.values().contains("optimizer")
                                ? settings.text("optimizer")
                                : net::recommended_optimizer(net);
  net::use_recommended_rates(trial.options, net);
  if (settings.values().contains(needs.prefix + "lr")) {
    trial.options.learning_rate = settings.number(needs.prefix + "lr", 1e-9, 1e3);
    trial.options.warmup = whole("warmup", 0, 1'000'000'000);
  }
  trial.options.epochs = whole("epochs", 1, 10'000);
  trial.options.batch = whole("batch", needs.least_batch, 100'000);
  trial.train_samples = whole("train_samples", 0, 1'000'000'000);
  trial.eval_samples = whole("eval_samples", 0, 1'000'000'000);
  return trial;
}

std::vector<std::uint64_t> seeds_of(const ExperimentRun& run, const std::string& key) {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(run.settings.integer(key, 1, 1000)));
  for (std::size_t s = 0; s < seeds.size(); ++s) seeds[s] = run.seed + s;
  return seeds;
}

}  // namespace numemu::experiments

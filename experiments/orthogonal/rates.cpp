#include "experiments/orthogonal/rates.hpp"

#include <fmt/format.h>

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/study.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::orthogonal {
namespace {

constexpr const char* kOrdinary = "none";
constexpr std::uint64_t kTuningSeeds = 1000;  // behind the run's, beyond all that are judged

Json recipe_of(const Json& base, const std::string& rule, const std::string& first,
               const net::Graph& graph) {
  Json recipe = base;
  if (rule == kOrdinary) return recipe;
  const std::vector<std::string> names = net::gemm_layer_names(graph);
  recipe["update"]["rule"] = rule;
  recipe["layers"].push_back({{"match", names.front()}, {"update", {{"rule", first}}}});
  recipe["layers"].push_back({{"match", names.back()}, {"update", {{"rule", kOrdinary}}}});
  return recipe;
}

}  // namespace

TrainTrial RatedRules::trial_of(std::size_t method, std::uint64_t seed, const Json& base,
                                const std::string& first, const net::Graph& graph) const {
  TrainTrial one = trial;
  one.recipe = recipe_of(base, method == 0 ? kOrdinary : names[method], first, graph);
  one.options.learning_rate = rates.at(names[method]);
  one.seed = seed;
  return one;
}

std::map<std::string, double> chosen_rates(const ExperimentRun& run, const net::Dataset& data,
                                           RatedRules compared, Conclusion& conclusion) {
  const std::vector<double> rates = run.settings.numbers("rates");
  std::map<std::string, double> chosen;
  for (const std::string& name : compared.names) chosen[name] = rates.front();
  if (rates.size() == 1) return chosen;
  std::vector<std::uint64_t> seeds = seeds_of(run, "tuning_seeds");
  for (std::uint64_t& seed : seeds) seed += kTuningSeeds;
  const net::Graph graph = initial_network(compared.trial, data);
  std::vector<StudyColumn> columns = {name_column("rule", compared.names)};
  std::vector<double> best(compared.names.size(), -HUGE_VAL);
  for (const double rate : rates) {
    for (const std::string& name : compared.names) compared.rates[name] = rate;
    const StudyPlan plan{compared.names, seeds, true, fmt::format("rate {}: ", rate)};
    const auto study = run_study<TrainOutcome>(
        run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<TrainOutcome> {
          const TrainTrial one =
              compared.trial_of(m, seed, Json::object(), run.settings.text("first"), graph);
          return {point_of(one, data), [one, &data] { return run_train_trial(one, data); }};
        });
    const SeedFigures top1 = study.figures(&TrainOutcome::top1);
    columns.push_back(mean_column(fmt::format("top-1 at {}, %", rate), top1));
    for (std::size_t m = 0; m < best.size(); ++m) {
      const double mean = stats::paired_interval(top1[m]).mean;
      if (!(mean > best[m])) continue;
      best[m] = mean;
      chosen[compared.names[m]] = rate;
    }
  }
  columns.push_back(
      {"chosen", [&](std::size_t m) { return fmt::format("{}", chosen.at(compared.names[m])); }});
  conclusion.tables.push_back(
      study_table(fmt::format("Learning rates of {} on {}, float32, {} that are not judged",
                              compared.trial.net, data.name(), counted(std::ssize(seeds), "seed")),
                  best.size(), columns));
  return chosen;
}

}  // namespace numemu::experiments::orthogonal

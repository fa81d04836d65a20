#include "experiments/methods/compared.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "experiments/engine/recipe_files.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/update_json.hpp"

namespace numemu::experiments {
namespace {

constexpr const char* kFloat32 = "float32";

TrainTrial trial_of(const Comparison& c, const ComparedMethod& method, const Json& recipe,
                    std::uint64_t seed) {
  TrainTrial trial = c.trial;
  trial.recipe = recipe;
  trial.seed = seed;
  method.choose(trial);
  if (!trial.recipe.empty()) trial.recipe["update"]["optimizer"] = trial.options.optimizer;
  return trial;
}

ComparedRun measure(TrainTrial trial, const net::Dataset& data, const Comparison& c) {
  ComparedRun run;
  const std::int64_t samples = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  if (c.after) {
    trial.on_step = [&](const net::Graph& graph, std::int64_t number) {
      if (number + 1 == steps) run.after = c.after(trial, graph);
    };
  }
  run.outcome = run_train_trial(trial, data);
  const policies::Recipe recipe = parsed_recipe(trial);
  net::TrainOptions options = trial.options;
  policies::use_objectives(recipe, "recipe of a training trial", options);
  const net::Graph graph = initial_network(trial, data);
  run.state_bytes = policies::parameter_bytes({recipe, graph}, options).state;
  return run;
}

void show(const Comparison& c, const ComparedUnder& under, const std::string& data,
          Conclusion& conclusion) {
  const Study<ComparedRun>& study = under.study;
  const bool accuracy = under.accuracy();
  const std::string title = fmt::format("{} on {}, {}, {}, paired by seed", c.trial.net, data,
                                        under.recipe, counted(study.seeds(), "seed"));
  const SeedFigures metrics = study.figures([](const ComparedRun& run) {
    return run.outcome.accuracy ? run.outcome.top1() : run.outcome.metric;
  });
  const int digits = accuracy ? 2 : 4;
  conclusion.tables.push_back(study_table(
      title, study.size(),
      {name_column("method", study.methods),
       mean_column(accuracy ? "top-1, %" : "bits per character", metrics, digits),
       difference_column(accuracy ? "gain, points" : "gain, bits", under.better, digits),
       interval_column(under.better, digits),
       mean_column("state, bytes per parameter", study.figures(&ComparedRun::state_bytes))}));
  conclusion.charts.push_back(gain_chart(
      fmt::format("Gain on '{}': {}", study.methods[0], title),
      "Mean difference over the seeds, with its 95 % interval by Student's t law paired by seed; "
      "above 0 is better.",
      accuracy ? "gain, points" : "gain, bits per character", study.methods, under.better));
}

}  // namespace

Json recipe_named(const ExperimentRun& run, const std::string& name) {
  return name == kFloat32 ? Json::object() : read_recipe(name, run.folders.data, "--set: recipes");
}

void require_trainable(const ExperimentRun& run, const net::Dataset& data, const Comparison& c) {
  for (const std::string& name : c.recipes) {
    const Json recipe = recipe_named(run, name);
    const std::string where = fmt::format("--set: recipes: {} on {}: ", name, c.trial.net);
    for (const ComparedMethod& method : c.methods) {
      const TrainTrial trial = trial_of(c, method, recipe, run.seed);
      const net::Graph graph = initial_network(trial, data);
      try {
        policies::RecipeNumerics(parsed_recipe(trial), graph).require_trainable("training");
      } catch (const Error& error) {
        throw usage_error(where + error.what());
      }
    }
  }
}

std::vector<ComparedUnder> compare_methods(const ExperimentRun& run, const net::Dataset& data,
                                           const Comparison& c, Conclusion& conclusion) {
  std::vector<Json> recipes;  // all of them are read before any work
  for (const std::string& name : c.recipes) recipes.push_back(recipe_named(run, name));
  std::vector<ComparedUnder> all;
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    StudyPlan plan{
        {}, seeds_of(run), c.at_once, fmt::format("{}, {}: ", c.trial.net, c.recipes[r])};
    for (const ComparedMethod& method : c.methods) plan.methods.push_back(method.name);
    ComparedUnder under{c.recipes[r], {}, {}};
    under.study = run_study<ComparedRun>(
        run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<ComparedRun> {
          TrainTrial trial = trial_of(c, c.methods[m], recipes[r], seed);
          Json point = point_of(trial, data);
          if (!c.figured.empty()) point["figured"] = c.figured;
          return {std::move(point), [&c, &data, trial] { return measure(trial, data, c); }};
        });
    under.better = under.study.figures(&ComparedRun::better);
    say_diverged(under.study, plan.seeds, plan.prefix, conclusion);
    show(c, under, data.name(), conclusion);
    all.push_back(std::move(under));
  }
  return all;
}

}  // namespace numemu::experiments

// Layers whose neurons only turn: the hyperspherical energy that this keeps, what each published
// way and each format loses of it, and the accuracy of training (Liu et al., Orthogonal
// Over-Parameterized Training, CVPR 2021, arXiv 2004.04690).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/orthogonal/energy.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments {
namespace orthogonal {
namespace {

constexpr double kPower = 1;      // of the distances of trained neurons
constexpr double kErrorsOff = 4;  // standard deviations

/// A training, the energy of its layers, and the law of what float32 rounds in its updates.
struct Trained {
  TrainOutcome outcome;
  std::int64_t steps = 0;
  double change = 0;  ///< of the energy, relative, mean over the layers that turn
  double most = 0;    ///< of all layers, over the deviation that rounding predicts

  double top1() const { return outcome.top1(); }
  double per_cent() const { return outcome.diverged ? NAN : 100 * change; }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("steps", self.steps);
    visit("change", self.change);
    visit("most", self.most);
  }
};

/// The layers between the first and the last, which every rule turns in its own way.
std::vector<std::string> inner_layers(const net::Graph& graph) {
  std::vector<std::string> names = net::gemm_layer_names(graph);
  if (names.size() < 3)
    throw usage_error("--set: net: expected at least three layers, not " + graph.name);
  return {names.begin() + 1, names.end() - 1};
}

std::vector<policies::Matrix> neurons_of(const net::Graph& graph) {
  std::vector<policies::Matrix> all;
  for (const std::string& name : inner_layers(graph)) {
    const net::Tensor& w = net::weight_of(graph, name);
    policies::Matrix neurons(w.dim(0), w.size() / w.dim(0));
    std::copy(w.data.begin(), w.data.end(), neurons.data.begin());
    all.push_back(std::move(neurons));
  }
  return all;
}

Trained train(TrainTrial trial, const net::Dataset& data) {
  Trained trained;
  const std::vector<policies::Matrix> before = neurons_of(initial_network(trial, data));
  std::vector<policies::Matrix> after = before;
  trial.on_loss = [&](double) { ++trained.steps; };
  trial.on_step = [&](const net::Graph& graph, std::int64_t) { after = neurons_of(graph); };
  trained.outcome = run_train_trial(trial, data);
  const auto layers = static_cast<double>(before.size());
  for (std::size_t l = 0; l < before.size(); ++l) {
    const EnergyChange law = rounding_change(before[l], find_format("float32"), kPower);
    const auto steps = static_cast<double>(trained.steps);
    const double first = energy(before[l], kPower), off = energy(after[l], kPower) - first;
    trained.change += off / first / layers;
    // An update rounds the increment, which is smaller, and the sum.
    const double deviation = steps * std::fabs(law.mean) + std::sqrt(steps * law.variance);
    trained.most = std::max(trained.most, std::fabs(off) / deviation);
  }
  return trained;
}

void add_recipe(const ExperimentRun& run, const net::Dataset& data, const std::string& name,
                const RatedRules& all, std::vector<PairedGain>& gains, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const bool float32 = name == "float32";
  const std::vector<std::string> rules = settings.list(float32 ? "rules" : "recipe_rules");
  StudyPlan plan{{all.names.front()}, seeds_of(run), true, name + ": "};
  plan.methods.insert(plan.methods.end(), rules.begin(), rules.end());
  const RatedRules compared{all.trial, plan.methods, all.rates};
  Json base = Json::object();
  if (!float32) {
    base = read_recipe(name, run.folders.data, "--set: recipes");
    base["update"]["optimizer"] = all.trial.options.optimizer;
  }
  const net::Graph graph = initial_network(all.trial, data);
  const auto study =
      run_study<Trained>(run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<Trained> {
        const TrainTrial one = compared.trial_of(m, seed, base, settings.text("first"), graph);
        return {point_of(one, data), [one, &data] { return train(one, data); }};
      });
  const SeedFigures top1 = study.figures(&Trained::top1),
                    energies = study.figures(&Trained::per_cent);
  say_diverged(study, plan.seeds, name + ", ", conclusion);
  for (std::size_t m = 1; m < study.size(); ++m) {
    const std::string& rule = rules[m - 1];
    gains.push_back({fmt::format("{}: points of top-1 gained by {}", name, rule), gain(top1, m),
                     published_in(name, "accuracy")});
    if (keeps_energy(rule)) {
      const std::vector<double> most = study.figures(m, &Trained::most);
      const double largest = *std::ranges::max_element(most);
      conclusion.add(
          exact_finding(fmt::format("{}: change of energy under {} over the deviation by rounding",
                                    name, rule),
                        kErrorsOff, largest, largest <= kErrorsOff, at_most(kErrorsOff)),
          "kept");
    }
  }
  conclusion.add(interval_finding(name + ": change of energy in ordinary training, %", 0,
                                  stats::paired_interval(energies[0]), at_least(0)),
                 "ordinary");
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {}, {}, paired by seed", all.trial.net, data.name(), name,
                  counted(study.seeds(), "seed")),
      study.size(),
      {name_column("rule", study.methods),
       {"rate", [&](std::size_t m) { return fmt::format("{}", all.rates.at(study.methods[m])); }},
       mean_column("top-1, %", top1),
       difference_column("difference, points", top1),
       interval_column(top1),
       {"change of energy, %", [&](std::size_t m) {
          return fmt::format("{:+.2e}", stats::paired_interval(energies[m]).mean);
        }}}));
  conclusion.charts.push_back(
      gain_chart(fmt::format("Top-1 gained by turning neurons, {}", name),
                 fmt::format("Mean difference to ordinary training of {} over {}, paired by seed.",
                             all.trial.net, counted(study.seeds(), "seed")),
                 "gain, points", study.methods, top1));
}

Conclusion run_orthogonal(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("synthetic neurons");
  add_random(run, conclusion);
  add_rounding(run, conclusion);
  add_ways(run, conclusion);
  const net::Dataset data = load_data(run);
  RatedRules compared{training_of(run.settings, run.settings.text("net")), {"ordinary"}, {}};
  for (const char* key : {"rules", "recipe_rules"}) {
    for (const std::string& rule : run.settings.list(key)) {
      if (std::ranges::find(compared.names, rule) == compared.names.end())
        compared.names.push_back(rule);
    }
  }
  compared.rates = chosen_rates(run, data, compared, conclusion);
  std::vector<PairedGain> gains;
  for (const std::string& recipe : run.settings.list("recipes"))
    add_recipe(run, data, recipe, compared, gains, conclusion);
  conclusion.add(judge_gains(gains));
  return conclusion;
}

}  // namespace
}  // namespace orthogonal

extern const Experiment experiment_orthogonal;
const Experiment experiment_orthogonal = {
    "orthogonal",
    "does training that only turns a layer's neurons keep their hyperspherical energy, what do its "
    "ways and formats lose of it, and is it more accurate",
    "Liu et al. (CVPR 2021, arXiv 2004.04690) claim that neurons that keep their random directions "
    "relative to each other, turned by one trained rotation per layer, have nearly the least "
    "hyperspherical energy and generalise better.",
    {{"random",
      "The energy of random neurons has the closed mean of uniform directions (derived here)."},
     {"rounding",
      "Rounding to a format changes the energy as independent errors of its spacing do, in one "
      "step and summed over many (derived here)."},
     {"exact",
      "Gram-Schmidt, Householder reflections and the Cayley parametrisation (published) and the "
      "exact Cayley step (derived here) keep the energy, in float64 up to its rounding."},
     {"series",
      "Descent by fixed-point iterations and Loewdin's by Newton-Schulz change the energy by the "
      "leading term of their series, within 10 % (derived here)."},
     {"kept",
      "In training the exact ways change the energy by no more than 4 deviations of what float32 "
      "rounds in all updates (derived here)."},
     {"ordinary", "Ordinary training raises the energy of hidden layers (a contrast).", "seeds"},
     {"accuracy", "Turning neurons gains top-1 over ordinary training (published).", "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"neurons", "16", "16", "16", "random neurons whose energy is measured", wholes(2, 256)},
     {"elements", "8", "8,16", "8,16", "of each", wholes(6, 256)},
     {"power", "1", "1", "1", "of the distance in their energy", real(0.01, 2)},
     {"formats", "float16,float8_e4m3fn", "float32,bfloat16,float16,float8_e4m3fn,float8_e5m2",
      "float32,bfloat16,float16,float8_e4m3fn,float8_e5m2", "to which they are rounded", list_of()},
     {"turns", "1,8", "1,8", "1,8", "steps, each rounded", wholes(1, 10'000)},
     {"angle", "2", "2", "2", "norm of A of such a step", real(0, 100)},
     {"series_angle", "0.2", "0.1,0.2,0.4", "0.1,0.2,0.4", "norm of A of steps in float64",
      reals(1e-3, 1)},
     {"draws", "50", "50", "50", "matrices of each repeat", whole(1, 1'000'000)},
     {"repeats", "8", "20", "20", "repeats", whole(2, 1000)},
     {"net", "mlp-deep", "mlp-deep", "mlp-deep", "network, of three layers or more",
      takes_network()},
     data_setting("of images"),
     {"optimizer", "sgd", "sgd", "sgd", "optimizer", takes_optimizer()},
     {"rates", "0.05", "0.05,0.1,0.2,0.4,0.8", "0.05,0.1,0.2,0.4,0.8",
      "its rates, of which each rule has the best", reals(1e-9, 1e3)},
     {"tuning_seeds", "1", "2", "2", "seeds that rates are chosen by", whole(1, 1000)},
     {"rules",
      "orthogonal,orthogonal(parametrised),orthogonal(descent),orthogonal(gram-schmidt),"
      "orthogonal(householder),orthogonal(loewdin),orthogonal(penalty),"
      "orthogonal(cayley,64)",
      "orthogonal,orthogonal(parametrised),orthogonal(descent),orthogonal(gram-schmidt),"
      "orthogonal(householder),orthogonal(loewdin),orthogonal(penalty),orthogonal(cayley,64)",
      "orthogonal,orthogonal(parametrised),orthogonal(descent),orthogonal(gram-schmidt),"
      "orthogonal(householder),orthogonal(loewdin),orthogonal(penalty),orthogonal(cayley,64)",
      "update rules of the inner layers"},
     {"first", "orthogonal(cayley,128)", "orthogonal(cayley,128)", "orthogonal(cayley,128)",
      "update rule of the first layer with each of them"},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes", list_of()},
     {"recipe_rules", "orthogonal", "orthogonal", "orthogonal,orthogonal(cayley,64)",
      "update rules under recipes other than float32"},
     training_settings({"1", "10", "10"}, "128", {"512", "4096", "4096"}, {"500", "4000", "4000"}),
     seeds_setting({"1", "5", "10"})},
    orthogonal::run_orthogonal};

}  // namespace numemu::experiments

// NovoGrad: gradients over the norm of their layer, whatever a power of two makes of them, and its
// accuracy and state beside Adam and SGD in few bits (Ginsburg et al., Stochastic Gradient Methods
// with Layer-wise Adaptive Moments, 2019, arXiv 1905.11286).
#include <fmt/format.h>

#include <cmath>

#include "emu/net/train/optimizer.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/novograd/scaling.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace novograd {
namespace {

constexpr double kMargin = 0.5;         // points of top-1
constexpr double kMarginOfBits = 0.01;  // of the bits per character of a text
const std::vector<std::string> kOptimizers = {"novograd", "adam", "sgd"};

/// The state of every trained parameter: a momentum for each element and a number for each tensor.
double state_bytes(const net::Graph& graph) {
  double elements = 0, tensors = 0;
  for (const net::Parameter* parameter : graph.parameters()) {
    if (!parameter->trained) continue;
    elements += static_cast<double>(parameter->value.size());
    ++tensors;
  }
  return 4 * (elements + tensors) / elements;
}

Comparison comparison_of(const ExperimentRun& run, const std::string& net) {
  Comparison comparison{.trial = training_of(run.settings, net, {.optimizer = kOptimizers[0]}),
                        .recipes = run.settings.list("recipes")};
  for (const std::string& name : kOptimizers) {
    comparison.methods.push_back({.name = name, .change = [name, net](TrainTrial& trial) {
                                    trial.options.optimizer = name;
                                    net::use_recommended_rates(trial.options, net);
                                  }});
  }
  return comparison;
}

void add_accuracy(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
                  PairedClaims& claims, Conclusion& conclusion) {
  const Comparison comparison = comparison_of(run, net);
  const std::vector<ComparedUnder> all = compare_methods(run, data, comparison, conclusion);
  const ComparedUnder& first = all.front();
  for (const ComparedUnder& under : all) {
    for (std::size_t m = 1; m < kOptimizers.size(); ++m) {
      const stats::PairedInterval gained = gain(under.better, 0, m);
      const double margin =
          under.accuracy()
              ? kMargin
              : kMarginOfBits * std::fabs(stats::paired_interval(first.better[m]).mean);
      claims.add(fmt::format("{}, {}: {} gained on {} by novograd, at least -{:.3g}", net,
                             under.recipe, under.unit(), kOptimizers[m], margin),
                 gained, -margin, published_in(under.recipe, "accuracy"));
      if (&under == &first) continue;
      // What the recipe costs NovoGrad, less what it costs the other, seed by seed.
      std::vector<double> own, other;
      for (std::size_t s = 0; s < under.study.seeds(); ++s) {
        own.push_back(under.better[0][s] - first.better[0][s]);
        other.push_back(under.better[m][s] - first.better[m][s]);
      }
      claims.add(fmt::format("{}: {} that {} costs {} more than novograd, at least -{:.3g}", net,
                             under.unit(), under.recipe, kOptimizers[m], margin),
                 stats::paired_interval(own, other), -margin, "few bits");
    }
  }
  const double predicted = state_bytes(initial_network(comparison.trial, data));
  for (const ComparedUnder& under : all) {
    if (under.recipe != "float32") continue;
    const double measured = under.study.mean(0, &ComparedRun::state_bytes);
    conclusion.add(exact_finding(net + ": bytes of state for each parameter", predicted, measured,
                                 std::fabs(predicted - measured) < 1e-9),
                   "state");
    const double adam = under.study.mean(1, &ComparedRun::state_bytes);
    conclusion.sentences.push_back(
        fmt::format("{}: novograd keeps {:.4f} bytes of state for each parameter, adam {:.2f}, sgd "
                    "{:.2f}.",
                    net, measured, adam, under.study.mean(2, &ComparedRun::state_bytes)));
  }
}

Conclusion run_novograd(const ExperimentRun& run) {
  Conclusion conclusion;
  const std::vector<std::string> recipes = run.settings.list("recipes");
  if (recipes.front() != "float32")
    throw usage_error("--set: recipes: expected float32 first, not " + recipes.front());
  const net::Dataset data = load_data(run);
  check_steps(run.settings, data);
  for (const std::string& net : run.settings.list("nets"))
    require_trainable(run, data, comparison_of(run, net));
  PairedClaims claims;
  for (const std::string& net : run.settings.list("nets")) {
    add_scaling(run, net, data, conclusion);
    add_accuracy(run, net, data, claims, conclusion);
  }
  conclusion.add(claims.judged());
  return conclusion;
}

}  // namespace
}  // namespace novograd

extern const Experiment experiment_novograd;
const Experiment experiment_novograd = {
    "novograd",
    "does one second moment per layer make training blind to powers of two on its gradients, and "
    "what does it cost in accuracy and state",
    "Ginsburg et al. (2019, arXiv 1905.11286) claim that NovoGrad trains as well as SGD or better "
    "than Adam, with half of Adam's memory, and that it is robust to learning rate and "
    "initialisation.",
    {{"scaling",
      "Without epsilon, gradients times any power of two give updates of the same bits, as long as "
      "none under- or overflows (derived here)."},
     {"epsilon",
      "With an epsilon the largest power that changes a bit is the one where epsilon reaches half "
      "an ulp of the smallest norm of a float32 run (derived here)."},
     {"others", "Every factor but 1 changes updates of Adam and of SGD (a contrast)."},
     {"state",
      "One number per element and one per tensor are kept, half of Adam's state (published)."},
     {"accuracy",
      "NovoGrad loses at most 0.5 points of top-1, or 1 % of the bits per character, to Adam and "
      "to SGD in float32 (published; the margin is ours).",
      "seeds"},
     {"few bits",
      "Under recipes of few bits the same holds, and they cost NovoGrad at most so much more than "
      "they cost Adam and SGD (a contrast).",
      "seeds"}},
    {{"nets", "mlp", "mlp", "mlp", "networks to train", takes_networks()},
     data_setting("of images"),
     {"scales", "20", "20", "20", "largest k, and of -k, of the factors 2^k on all gradients",
      whole(1, 60)},
     {"epsilons", "1e-8,1e-5", "1e-8,1e-6,1e-4", "1e-10,1e-8,1e-6,1e-4",
      "epsilons that are added to norms", reals(1e-30, 1)},
     {"steps", "4", "16", "16", "updates of the trainings with factors", whole(1, 10'000)},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes, float32 first", list_of()},
     training_settings({"1", "4", "4"}, "64", {"1024", "4096", "4096"}, {"500", "4000", "4000"}),
     seeds_setting({"1", "5", "10"})},
    novograd::run_novograd};

}  // namespace numemu::experiments

// Stochastic pruning of gradients: predicted against measured sparsity, and what it costs training.
#include <charconv>

#include "experiments/engine/experiment.hpp"
#include "experiments/stochastic_pruning/parts.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace stochastic_pruning {

std::vector<double> shares_of(const Settings& settings, const std::string& key) {
  std::vector<double> shares;
  for (const std::string& text : settings.list(key)) {
    double share = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, share);
    if (error != std::errc() || stop != end || !(share > 0 && share < 1))
      throw Error("--set: " + key + ": expected numbers between 0 and 1, not '" + text + "'");
    shares.push_back(share);
  }
  if (shares.empty()) throw Error("--set: " + key + ": expected at least one number");
  return shares;
}

}  // namespace stochastic_pruning

namespace {

Conclusion run_stochastic_pruning(const ExperimentRun& run) {
  const std::string& law = run.settings.text("plan_law");
  if (law != "normal" && law != "lognormal")
    throw Error("--set: plan_law: expected normal or lognormal, not '" + law + "'");
  Conclusion conclusion;
  using namespace stochastic_pruning;
  run.say("samples of known laws");
  add_synthetic(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  for (const std::string& net : run.settings.list("nets")) {
    run.say(net + ": gradients in training");
    const std::vector<ObservedLayer> layers = add_gradients(run, net, data, conclusion);
    run.say(net + ": accuracy against sparsity");
    add_accuracy(run, net, data, layers, conclusion);
  }
  return conclusion;
}

}  // namespace

extern const Experiment experiment_stochastic_pruning;
const Experiment experiment_stochastic_pruning = {
    "stochastic-pruning",
    "how many elements of a gradient does unbiased pruning below a threshold set to zero, and how "
    "much accuracy does training lose",
    "Ye et al. claim that pruning small gradients stochastically, which leaves no bias, reaches "
    "the "
    "zeros that a normal law predicts and costs training little; Chmiel et al. (ICLR 2021) claim "
    "that gradients follow a lognormal law and that layers should share zeros unequally.",
    {{"laws",
      "On numbers of its own law, a threshold's zeros, added variance and cosine equal their "
      "closed forms."},
     {"other laws",
      "The threshold and closed forms of the normal law hold for other laws too (a contrast)."},
     {"elements",
      "Given its elements, a gradient's zeros and added variance follow from the draws "
      "alone."},
     {"gradients", "A fitted law predicts a gradient's zeros and cosine within 0.02."},
     {"accuracy",
      "A network trained with gradients pruned without bias loses less than 0.5 points against "
      "dense."},
     {"bias", "Unbiased pruning is more accurate than hard pruning at the same threshold."},
     {"sharing",
      "Plans that distribute zeros unequally over the layers are more accurate than equal shares."},
     {"plans", "Plans reach their share of zeros within 0.05, with laws fitted once."}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks"},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images"},
     {"shares", "0.9", "0.5,0.7,0.9,0.95,0.99", "0.5,0.7,0.8,0.9,0.95,0.99,0.995",
      "p: share of the non-zero elements below the threshold"},
     {"share", "0.9", "0.9", "0.9", "p of the gradients looked at layer by layer"},
     {"plan_share", "0.7", "0.7", "0.7", "p whose zeros the plans distribute over the layers"},
     {"plan_law", "lognormal", "lognormal", "lognormal", "law that plans are made under"},
     {"history", "4", "4", "4", "thresholds whose mean is the next one"},
     {"observations", "3", "8", "16", "steps whose gradients are analysed"},
     {"samples", "200000", "2000000", "4000000", "numbers of each known law"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "1", "3", "6", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "2048", "8192", "0", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run_stochastic_pruning};

}  // namespace numemu::experiments

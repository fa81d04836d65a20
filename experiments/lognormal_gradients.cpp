// Gradients of near-lognormal law: the split of a float's bits and the scale that the law chooses,
// and what they are worth in training (Chmiel et al., ICLR 2021, arXiv 2006.08173).
#include "experiments/engine/experiment.hpp"
#include "experiments/lognormal_gradients/parts.hpp"

namespace numemu::experiments {
namespace lognormal_gradients {

std::vector<int> widths_of(const Settings& settings, const std::string& key) {
  std::vector<int> widths;
  for (const std::int64_t bits : settings.whole_numbers(key, 3, 8))
    widths.push_back(static_cast<int>(bits));
  return widths;
}

}  // namespace lognormal_gradients

namespace {

Conclusion run_lognormal_gradients(const ExperimentRun& run) {
  using namespace lognormal_gradients;
  Conclusion conclusion;
  run.say("lognormal numbers");
  add_draws(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  const std::string& trained = run.settings.text("net");
  const std::vector<EpochFit> fits = add_gradients(run, trained, data, conclusion);
  for (const std::string& net : run.settings.list("nets")) {
    if (net != trained) add_gradients(run, net, data, conclusion);
  }
  add_training(run, data, fits, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_lognormal_gradients;
const Experiment experiment_lognormal_gradients = {
    "lognormal-gradients",
    "are gradients near-lognormal, and does the split of few bits into exponent and mantissa that "
    "the law chooses serve training best",
    "Chmiel et al. (ICLR 2021, arXiv 2006.08173) claim that gradients of each layer follow a "
    "lognormal law, that its deviation gives the split of a float's bits with the least relative "
    "error, and that gradients of 6 bits then cost no accuracy; their program scales gradients to "
    "a mean of 2^-3.",
    {{"grid",
      "Under a lognormal law the relative error of a format is its closed form, cell by cell."},
     {"idealised",
      "The published form of the error describes the idealised format within 2 % from two "
      "mantissa bits on."},
     {"few mantissa bits", "The same with one mantissa bit or none."},
     {"switches",
      "The best split changes at the deviations of the authors' program, within 0.4 or 8 %."},
     {"published margin",
      "A margin of 3 binades makes the relative error no larger than a margin of 0."},
     {"lognormal", "Gradients are closer to a lognormal law than to a normal or Laplace's law."},
     {"gradients", "The fitted law predicts the relative error of gradients within 10 %."},
     {"split", "The split that the law chooses has a relative error within 5 % of the least."},
     {"accuracy",
      "With the split and margin chosen by layer, 6 bits and more lose at most 0.5 points of "
      "top-1."},
     {"choice", "The chosen split trains more accurately than a split taken at random."},
     {"margin", "The margin of least relative error trains more accurately than the published."},
     {"following", "Choosing the split anew in each epoch trains more accurately than once."},
     {"order", "Points lost rise with the predicted relative error over splits and widths."}},
    {{"samples", "100000", "1000000", "1000000", "numbers drawn for each setting"},
     {"draw_widths", "4", "4,8", "3,4,5,6,7,8", "bits of the formats that numbers are drawn for"},
     {"sigmas", "1,3", "1,3", "1,2,3,5", "deviations of log2|x| of the drawn numbers"},
     {"means", "-3,1", "-3,1", "-3,-1,0,1,3", "means of log2|x| of the drawn numbers"},
     {"widths", "4,6", "4,5,6,7,8", "3,4,5,6,7,8", "bits whose splits are compared"},
     {"net", "mlp", "mlp", "mlp", "network to train with gradients of few bits"},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks whose gradients are looked at"},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images"},
     {"looks", "2", "2", "4", "looks at the gradients in an epoch"},
     {"train_widths", "4", "4,6,8", "4,5,6,7,8", "bits of gradients in training"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "1", "4", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "2048", "4096", "8192", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run_lognormal_gradients};

}  // namespace numemu::experiments

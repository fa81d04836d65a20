// Networks of signs and of few bits (Hubara et al., NeurIPS 2016, arXiv 1602.02830; JMLR 2018,
// arXiv 1609.07061): what is exact about them, what shifts cost, and what training loses.
#include "experiments/binarized/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_binarized(const ExperimentRun& run) {
  Conclusion conclusion;
  binarized::add_xnor(run, conclusion);
  binarized::add_shifts(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  binarized::add_network(run, data, conclusion);
  binarized::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_binarized;
const Experiment experiment_binarized = {
    "binarized",
    "what do networks of signs and of few bits compute exactly, and what do signs, shifts and "
    "rounded gradients cost in training",
    "Hubara et al. (NeurIPS 2016, arXiv 1602.02830; JMLR 2018, arXiv 1609.07061) claim that "
    "networks "
    "trained with signs for weights and activations are nearly as accurate as in float32, also "
    "with "
    "a normalisation and an AdaMax of shifts, and that their products are XNOR and popcount.",
    {{"xnor", "A dot product of n signs is 2 popcount(XNOR) - n, exactly."},
     {"bit planes", "A first layer of 8-bit inputs is a sum of 8 products of signs, exactly."},
     {"thresholds",
      "Normalisation and sign of a trained layer are one compare of its integer sum, exactly."},
     {"powers of two",
      "On normal numbers the shift-based variance and rounding to powers of two have the gains of "
      "the closed forms."},
     {"sums",
      "On the sums of a trained network the shift-based variance has the gain of normal numbers "
      "within 2 %."},
     {"signs", "A network of signs loses at most 1 point of top-1 to float32."},
     {"shift", "The shift-based normalisation loses at most 1 point to the usual one."},
     {"adamax", "The shift-based AdaMax loses at most 1 point to Adam."},
     {"few bits",
      "4-bit weights and activations with gradients of 6-bit powers of two lose at most 1 point."}},
    {{"lengths", "1,16,63,64,65,784", "1,16,63,64,65,784,4096", "1,16,63,64,65,784,4096,65536",
      "signs of a dot product"},
     {"deviations", "1,3", "1,1.25,1.6,3", "1,1.1,1.25,1.4,1.6,1.8,2,3",
      "of the normal numbers that are rounded to powers of two"},
     {"samples", "400000", "4000000", "64000000", "numbers of each deviation"},
     {"net", "mlp-signs", "mlp-signs", "mlp-signs", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"learning_rate", "0.002", "0.002", "0.002", "of every method, at its start"},
     {"epochs", "1", "4", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "1024", "8192", "16384", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that methods are paired by"}},
    run_binarized};

}  // namespace numemu::experiments

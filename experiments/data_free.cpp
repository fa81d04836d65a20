// Samples made from a trained network's own batch-norm statistics in place of data: what
// calibration loses (The Knowledge Within, Haroush et al., CVPR 2020, arXiv 1912.01274).
#include "experiments/data_free/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_data_free(const ExperimentRun& run) {
  Conclusion conclusion;
  data_free::add_floor(run, conclusion);
  data_free::add_sources(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_data_free;
const Experiment experiment_data_free = {
    "data-free",
    "can samples made from a network's batch-norm statistics replace the data that quantization is "
    "calibrated on",
    "Haroush et al. (CVPR 2020, arXiv 1912.01274) claim that samples whose batch statistics match "
    "those a network stores serve calibration nearly as well as real data, and noise does not.",
    {{"floor", "The divergence of independent data of the right law is the closed form's."},
     {"similarity", "Samples made from the statistics have at most a tenth of noise's divergence."},
     {"ranges",
      "With ranges from samples made from the statistics top-1 is above that with noise and at "
      "most "
      "1 point below that with real data."},
     {"statistics",
      "The same where batch-norm statistics are estimated again on those samples, too."}},
    {{"channels", "3200", "32000", "320000", "channels of independent numbers"},
     {"net", "vgg-small", "vgg-small", "resnet20",
      "reference network, trained for the run, or a file"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"epochs", "1", "2", "12", "of its training"},
     {"batch", "32", "128", "128", "samples of a step of it"},
     {"train_samples", "2048", "8192", "0", "training samples; 0: all"},
     {"formats", "int4", "int8,int4", "int8,int6,int5,int4", "of weights and activations"},
     {"rule", "mse", "mse", "mse", "of calibration"},
     {"samples", "32", "64", "256", "samples of each source"},
     {"samples_of_batch", "32", "64", "64", "samples whose statistics are matched together"},
     {"steps", "30", "150", "500", "of Adam"},
     {"rate", "0.1", "0.1", "0.1", "of Adam, falling with a cosine"},
     {"class_weight", "0.02", "0.02", "0.02", "of the cross-entropy of class-conditional samples"},
     {"smooth", "images", "images", "images",
      "none, images or gradient: what is averaged over 3 x 3 pixels"},
     {"images", "256", "2000", "10000", "test samples"},
     {"seeds", "1", "3", "5", "networks and sets of samples"}},
    run_data_free};

}  // namespace numemu::experiments

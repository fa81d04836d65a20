// Ranges in the place of variances, and everything in 8 bits: what the constants estimate, how far
// codes turn a vector, what training loses.
#include "experiments/engine/experiment.hpp"
#include "experiments/range_bn/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_range_bn(const ExperimentRun& run) {
  Conclusion conclusion;
  range_bn::add_statistics(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  range_bn::add_angles(run, data, conclusion);
  range_bn::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_range_bn;
const Experiment experiment_range_bn = {
    "range-bn",
    "does the range of a batch replace its variance in normalisation, and do networks train with "
    "it when weights, activations and gradients have 8 bits",
    "Banner et al. (NeurIPS 2018, arXiv 1805.11046) claim that C(n) times the range of a batch, "
    "C(n) = 1 / sqrt(2 ln n), serves as its standard deviation, that 8 bits preserve the direction "
    "of a tensor, and that networks train in 8 bits when the gradient of the update has 16.",
    {{"range", "Each constant times the range has the mean C(n) d2(n)."},
     {"exact", "1 / d2(n) times the range estimates the deviation within 1 %."},
     {"published", "1 / sqrt(2 ln n) times the range estimates the deviation within 1 %."},
     {"repository", "The constant of the published code estimates it within 1 %."},
     {"bounds", "The mean range lies between the published bounds."},
     {"angle",
      "With 3 bits and more the angle between a tensor and its min-max codes is that of uniform "
      "errors within 2 %."},
     {"angle, few bits", "So it is with 1 and 2 bits."},
     {"angle, normal law",
      "Angles of normal numbers are those of the cells of their law within "
      "2 %."},
     {"angle, bound", "No angle exceeds the published bound."},
     {"angle, signs", "Signs of normal numbers are 37.07 degrees away, within 2 %."},
     {"accuracy", "Range normalisation loses at most 0.5 points of top-1 to batch normalisation."},
     {"wrong backward",
      "The backward pass of the variance on ranges loses accuracy with the published constant."},
     {"wrong backward, other constants", "So it does with the other two."},
     {"8 bits", "Everything in 8 bits, the gradient of the update in 16, loses at most 1 point."},
     {"bifurcation", "The gradient of the update in as few bits as the other one loses accuracy."}},
    {{"sizes", "4,256", "4,8,16,64,256,1024,4096,65536", "4,8,16,64,256,1024,4096,65536",
      "numbers that a range is of"},
     {"samples", "40000", "8000000", "64000000", "numbers of each size"},
     {"numbers", "1000", "1000,100000", "1000,100000", "normal numbers that are quantized"},
     {"repeats", "3", "20", "100", "draws of these numbers"},
     {"bits", "2,4,8", "1,2,3,4,6,8", "1,2,3,4,5,6,7,8", "of the codes"},
     {"net", "mlp-bn", "mlp-bn", "mlp-bn", "network with batch normalisation"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"gradient_train", "256", "2048", "8192", "samples before its weights are quantized, once"},
     {"epochs", "1", "4", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "512", "8192", "8192", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that methods are paired by"}},
    run_range_bn};

}  // namespace numemu::experiments

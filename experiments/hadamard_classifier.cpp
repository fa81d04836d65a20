// A classifier of fixed signs (Hoffer et al., Fix your classifier, ICLR 2018, arXiv 1801.04540):
// what is exact about it, what bounds its logits, and what training loses.
#include "experiments/hadamard_classifier/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_hadamard_classifier(const ExperimentRun& run) {
  Conclusion conclusion;
  hadamard::add_matrices(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  hadamard::add_networks(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_hadamard_classifier;
const Experiment experiment_hadamard_classifier = {
    "hadamard-classifier",
    "does a last layer of fixed Hadamard rows classify as well as a trained one, in any format, "
    "and "
    "what bounds its logits",
    "Hoffer et al. (ICLR 2018, arXiv 1801.04540) claim that the last layer of a classifier may be "
    "fixed, up to one learned scale, with little or no loss of accuracy, and that rows of a "
    "Hadamard "
    "matrix serve, which need neither storage nor multiplications.",
    {{"orthogonal",
      "Rows of the whole matrix are orthogonal, and its fast transform is its product, "
      "exactly."},
     {"cosines", "Cut to the features of a network, rows have the cosines of a count of signs."},
     {"formats", "Logits have the bits of float32 whatever format holds the classifier."},
     {"scale",
      "The learned scale times the root of the number of features, which bounds products, stays "
      "within the 30 of FP8 1-4-3."},
     {"saturation", "No logit of a test image is beyond 30."},
     {"accuracy", "The fixed classifier loses at most 0.5 points of top-1 to a trained one."}},
    {{"sizes", "2,16,128", "2,16,128,1024", "2,16,128,1024,4096", "rows of whole matrices"},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"formats", "sign1,float8_e4m3fn,mxfp4",
      "sign1,int2,float4_e2m1fn,float6_e3m2fn,float8_e4m3fn,hfp8_e4m3,bfloat16,mxfp4,mxint8,nvfp4",
      "sign1,int2,float4_e2m1fn,float6_e3m2fn,float8_e4m3fn,hfp8_e4m3,bfloat16,mxfp4,mxint8,nvfp4",
      "of the classifier's weights"},
     {"epochs", "1", "8", "12", "epochs of training"},
     {"batch", "64", "64", "64", "images of a step"},
     {"train_samples", "1024", "16384", "16384", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that classifiers are paired by"}},
    run_hadamard_classifier};

}  // namespace numemu::experiments

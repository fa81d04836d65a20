// Tensors kept for backward as stochastic codes of few bits: is the noise of the gradients what the
// closed forms say, where does it come from, which bits are best, what does training lose?
#include "experiments/actnn/parts.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_actnn(const ExperimentRun& run) {
  Conclusion conclusion;
  actnn::add_allocation(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  actnn::add_variance(run, data, conclusion);
  actnn::add_layers(run, data, conclusion);
  actnn::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_actnn;
const Experiment experiment_actnn = {
    "actnn",
    "what stochastic codes of few bits in place of the tensors kept for backward do to gradients, "
    "to memory and to training",
    "Chen et al. (ICML 2021, arXiv 2104.14129) claim that contexts in 2 bits on average, "
    "stochastic "
    "and without bias, add a variance to gradients that is the sum of what the layers add, keep 12 "
    "times fewer bytes and lose less than 0.5 points of top-1.",
    {{"variance",
      "The squared error of a weight gradient is the sum over the elements of its context of their "
      "rounding variance times the squared output gradients that meet them."},
     {"unbiased", "Gradients of layers whose own context is compressed have no bias."},
     {"layers add",
      "The variance of a gradient is the sum of what each context adds to it, given the gradient "
      "that reaches that context, within 5 %."},
     {"layers alone", "So is it where each context is compressed alone, within 5 %."},
     {"greedy", "With equal sizes the greedy algorithm finds the least loss."},
     {"greedy, layers", "So it does with unequal sizes."},
     {"greedy, near",
      "With unequal sizes its mean loss over 64 items is at most 1 % above the least."},
     {"bytes", "Bytes kept are those of codes, scales, minima, signs and statistics, within 1 %."},
     {"memory", "Level L3 keeps at least 12 times fewer bytes than float32."},
     {"accuracy", "With 2 bits or more training loses at most 0.5 points of top-1."},
     {"bias", "At 1 bit stochastic rounding ends above rounding to nearest."}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks whose weight gradients are measured"},
     {"net", "mlp-bn", "mlp-bn", "mlp-bn", "network whose contexts add up, and that is trained"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"bits", "2", "1,2,4,8", "1,2,3,4,5,6,8", "of the codes"},
     {"group", "256", "256", "256", "elements that share a scale"},
     {"gradient_train", "256", "2048", "8192",
      "samples that these networks were trained with, once"},
     {"gradient_batch", "16", "64", "64", "samples that gradients come from"},
     {"draws", "40", "200", "400", "of the codes of a context"},
     {"passes", "4", "50", "200", "pairs of draws for each context that adds up"},
     {"instances", "2", "50", "200", "of the allocation of bits"},
     {"epochs", "1", "4", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "512", "8192", "8192", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that methods are paired by"}},
    run_actnn};

}  // namespace numemu::experiments

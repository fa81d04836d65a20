// Optimizer state in blocks of 8 bits and master weights in bfloat16: what they save, what they
// lose, and what it costs training.
#include "experiments/engine/experiment.hpp"
#include "experiments/optimizer_state/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_optimizer_state(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  for (const std::string& net : run.settings.list("nets"))
    optimizer_state::add_net(run, net, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_optimizer_state;
const Experiment experiment_optimizer_state = {
    "optimizer-state",
    "how few bits do Adam's moments and the master weights need, and can what they lose be "
    "predicted from a float32 run",
    "Dettmers et al. (ICLR 2022, arXiv 2110.02861) claim that moments in blocks of 8 bits train as "
    "well as float32 ones; Zamirai et al. (2020, arXiv 2010.06192) claim the same of bfloat16 "
    "weights with stochastic rounding, which to nearest lose most updates.",
    {{"zeros",
      "The share of second moments that 8-bit blocks round to 0 is the one that float32 moments "
      "predict, within 0.01, after four steps."},
     {"lost",
      "The share of updates that bfloat16 masters lose is the one that float32 weights and updates "
      "predict, within 0.05."},
     {"harmless",
      "With stochastic rounding and floating second moments training loses at most 0.5 points of "
      "top-1."},
     {"harmful",
      "Second moments in integers, which become 0, and masters in bfloat16 rounded to nearest lose "
      "more than 0.5 points."}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images"},
     {"block", "256", "256", "256", "elements of a block"},
     {"epochs", "1", "4", "6", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "512", "4096", "4096", "training images; 0: all"},
     {"eval_samples", "500", "0", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that methods are paired by"}},
    run_optimizer_state};

}  // namespace numemu::experiments

// Precision that rises during training: what it saves and what it costs (FracTrain, Fu et al.,
// NeurIPS 2020, arXiv 2012.13113).
#include "experiments/engine/experiment.hpp"
#include "experiments/fractrain/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_fractrain(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  fractrain::add_progressive(run, data, conclusion);
  fractrain::add_dynamic(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_fractrain;
const Experiment experiment_fractrain = {
    "fractrain",
    "does training keep its accuracy when it begins with few bits and gets more at plateaus of its "
    "loss, and what does that save",
    "Fu et al. (NeurIPS 2020, arXiv 2012.13113) claim that progressive precision in the forward "
    "and the backward pass saves more than half of the bit operations of training without loss of "
    "accuracy.",
    {{"cost",
      "The products' bit operations, as counted, are the published cost within 3 points: three "
      "equal products for every layer."},
     {"progressive",
      "Training that begins with few bits and ends with the last stage's loses at most 0.5 points "
      "of top-1 to the last stage's precision from the start."},
     {"static", "The first stage's precision throughout loses more than 0.5 points."},
     {"tested",
      "Trained at the first stage's precision throughout and tested at the last stage's, a network "
      "loses more than 0.5 points."},
     {"shorter",
      "Progressive precision gains on the last stage's precision for fewer epochs at the same "
      "cost."},
     {"target",
      "Gates bring the mean cost of a block to within 0.25 percentage points of 32 x 32 bits of "
      "its target."},
     {"gates",
      "Two layers whose gates choose the precision of each sample lose at most 0.5 points to the "
      "largest choice for all."}},
    {{"net", "mlp", "mlp", "lenet", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"stages", "3/6,8/8", "3/6,4/6,6/8,8/8", "3/6,4/6,6/8,8/8",
      "forward/backward bits of the stages"},
     {"static", "3/6", "6/8,4/6,3/6,2/4", "6/8,4/6,3/6,2/4",
      "forward/backward bits that stay, beside those of the last stage"},
     {"eps", "0.5", "0.15", "0.15",
      "of the indicator: relative change of the loss at the first turning point"},
     {"alpha", "0.4", "0.4", "0.4", "its factor after the first and the second"},
     {"targets", "2.5", "2,2.5,3", "2,2.5,3", "of gates: mean cost, % of 32 x 32 bits"},
     {"staged_targets", "2,3", "2,2.33,2.67,3", "2,2.33,2.67,3", "of gates, by stage"},
     {"beta", "0.001", "0.001", "0.001", "of gates: weight of the cost in the loss"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "6", "20", "20", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "512", "2048", "2048", "training images; 0: all"},
     {"eval_samples", "500", "0", "0", "test images; 0: all"},
     {"seeds", "1", "5", "5", "seeds that methods are paired by"}},
    run_fractrain};

}  // namespace numemu::experiments

// Unbiased pruning of gradients: is its noise what the closed forms say, does it average out, and
// does that help training?
#include "experiments/engine/experiment.hpp"
#include "experiments/mvue/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run(const ExperimentRun& run) {
  Conclusion conclusion;
  mvue::add_laws(run, conclusion);
  mvue::add_averaging(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  if (data.kind() == net::DataKind::images) {
    mvue::add_gradients(run, data, conclusion);
    mvue::add_propagation(run, data, conclusion);
  }
  mvue::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mvue;
const Experiment experiment_mvue = {
    "mvue",
    "N:M pruning of gradients without bias: variance, averaging and training against closed forms",
    {{"net", "mlp", "mlp", "lenet", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"samples", "16000", "200000", "2000000", "numbers of each law"},
     {"draws", "16", "64", "256", "times that each tensor is pruned"},
     {"batches", "4", "64", "256", "batches that dW is averaged over"},
     {"repeats", "16", "32", "64", "repeats of the average"},
     {"gradient_nets", "lenet", "lenet,resnet20", "lenet,resnet20",
      "networks whose gradients are pruned (image data)"},
     {"propagation_net", "mlp", "lenet", "vgg-small",
      "network whose gradients are pruned on their way down (image data)"},
     {"gradient_train", "256", "1024", "8192", "samples they were trained with, once"},
     {"gradient_batch", "64", "64", "128", "samples behind those gradients"},
     {"passes", "12", "40", "100", "backward passes of each rule"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "2", "4", "12", "epochs of training"},
     {"batch", "64", "128", "128", "samples of a step"},
     {"train_samples", "1536", "8192", "0", "training samples; 0: all"},
     {"eval_samples", "500", "4000", "0", "test samples; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run};

}  // namespace numemu::experiments

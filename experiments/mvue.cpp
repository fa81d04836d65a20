// Unbiased pruning of gradients: is its noise what the closed forms say, does it average out, and
// does that help training?
#include "experiments/engine/experiment.hpp"
#include "experiments/mvue/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_mvue(const ExperimentRun& run) {
  Conclusion conclusion;
  mvue::add_laws(run, conclusion);
  conclusion.about("laws");
  mvue::add_averaging(run, conclusion);
  conclusion.about("averaging");
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  if (data.kind() == net::DataKind::images) {
    mvue::add_gradients(run, data, conclusion);
    conclusion.about("gradients");
    mvue::add_propagation(run, data, conclusion);
    conclusion.about("propagation");
  }
  mvue::add_training(run, data, conclusion);
  conclusion.about("training");
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mvue;
const Experiment experiment_mvue = {
    "mvue",
    "does unbiased N:M pruning of gradients follow its closed forms, average out over batches, and "
    "leave training unaffected",
    "Chmiel et al. (ICLR 2023, arXiv 2203.10991) claim that N:M pruning of gradients without bias "
    "and of minimum variance (MVUE) averages out over batches and steps, so that training ends as "
    "accurate as dense, while the bias of greedy pruning stays.",
    {{"laws",
      "On numbers of known laws the noise and the bias of N:M pruning equal their closed forms."},
     {"averaging",
      "Averaged over batches, the error of dW falls as variance over batches plus "
      "bias squared: to zero under MVUE, not under greedy pruning."},
     {"gradients",
      "On gradients of networks MVUE has no bias and the variance of its closed "
      "form."},
     {"propagation",
      "If every dgrad is pruned without bias, the projection of a gradient on the dense one stays "
      "1."},
     {"training",
      "A network trained with MVUE gradients loses at most 1 point of top-1, or 0.02 bits per "
      "character."}},
    {{"net", "mlp", "mlp", "lenet", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"samples", "16000", "200000", "2000000", "numbers of each law"},
     {"draws", "16", "64", "256", "times that each tensor is pruned"},
     {"batches", "4", "64", "256", "batches that dW is averaged over"},
     {"repeats", "16", "32", "64", "repeats of the average"},
     {"gradient_nets", "lenet", "lenet,resnet20", "lenet,resnet20",
      "networks whose gradients are pruned (image data)"},
     {"propagation_net", "mlp", "lenet", "vgg-small",
      "network whose gradients are pruned during backpropagation (image data)"},
     {"gradient_train", "256", "1024", "8192", "samples they were trained with, once"},
     {"gradient_batch", "64", "64", "128", "samples that these gradients come from"},
     {"passes", "12", "40", "100", "backward passes of each rule"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "2", "4", "12", "epochs of training"},
     {"batch", "64", "128", "128", "samples of a step"},
     {"train_samples", "1536", "8192", "0", "training samples; 0: all"},
     {"eval_samples", "500", "4000", "0", "test samples; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run_mvue};

}  // namespace numemu::experiments

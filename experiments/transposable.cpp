// Transposable N:M masks: what they cost beside other patterns of the same density, in magnitude,
// layer outputs and accuracy, and what repairs them (Hubara et al., NeurIPS 2021,
// arXiv 2102.08124).
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/transposable/patterns.hpp"

namespace numemu::experiments {
namespace {

/// Throws Error for names that are none, before any long work.
void require_names(const ExperimentRun& run, const net::Dataset& data) {
  variants(run.settings.list("patterns"));
  for (const std::string& name : run.settings.list("nets"))
    even_layers(load_trained_net(name, data, run.folders).graph);
}

Conclusion run_transposable(const ExperimentRun& run) {
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  require_one_class(data, "experiment transposable");
  require_names(run, data);
  Conclusion conclusion;
  add_losses(run, conclusion);
  add_networks(run, data, conclusion);
  add_conversion(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_transposable;
const Experiment experiment_transposable = {
    "transposable",
    "how much do transposable N:M masks lose compared with other patterns of density 50 %, and "
    "what repairs the loss",
    "Hubara et al. (NeurIPS 2021, arXiv 2102.08124) claim that N:M masks of rows and columns at "
    "once "
    "cost little more than N:M masks of rows, and that AdaPrune, a few calibration images and no "
    "training, brings a network that was pruned once back to its accuracy.",
    {{"magnitude", "The share of normal magnitudes that each pattern prunes is known."},
     {"order",
      "Unstructured, 4:8, 2:4, 4:8-T, 1:2, 2:4-T, 1:2-T: each prunes more magnitude than "
      "the one before it."},
     {"greedy", "Greedy transposable masks stay within their proven bounds."},
     {"placement",
      "Groups with independently placed zeros break N:M as often as the binomial law predicts."},
     {"layers",
      "Trained layers with permuted channels break N:M as often as the binomial law predicts."},
     {"outputs", "AdaPrune divides the squared error of a layer's outputs by 2 or more."},
     {"accuracy", "After AdaPrune top-1 is within 1 point of the unpruned network."}},
    {{"nets", "lenet", "mlp,lenet", "mlp,lenet", "trained networks or files to prune",
      takes_networks()},
     {"data", "glyphs", "glyphs", "glyphs", "data set", takes_data_set()},
     {"blocks", "10000", "200000", "2000000", "normal blocks of 8 x 8", whole(2, 1'000'000'000)},
     {"placed", "100000", "1000000", "10000000", "groups with zeros placed at random",
      whole(2, 1'000'000'000)},
     {"patterns", "unstructured,4:8,2:4,4:8-T,2:4-T", "unstructured,4:8,2:4,4:8-T,1:2,2:4-T,1:2-T",
      "unstructured,4:8,2:4,4:8-T,1:2,2:4-T,1:2-T", "patterns that networks are pruned to",
      list_of()},
     {"images", "500", "10000", "10000", "test samples", whole(1, 100'000'000)},
     {"trained", "0", "0", "5",
      "networks of each kind trained from scratch, besides the shipped one", whole(0, 1000)},
     {"epochs", "1", "4", "12", "of training those", whole(1, 10'000)}},
    run_transposable};

}  // namespace numemu::experiments

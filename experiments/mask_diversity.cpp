// Mask diversity: how many masks a pattern admits, which of them magnitudes give, and whether
// accuracy follows (Hubara et al., NeurIPS 2021, arXiv 2102.08124).
#include <list>

#include "experiments/mask_diversity/pieces.hpp"
#include "experiments/report/judged_evaluation.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_mask_diversity(const ExperimentRun& run) {
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  require_one_class(data, "experiment mask-diversity");
  std::list<TrainedNet> trained;
  std::vector<LabelledNet> nets;
  for (const std::string& name : run.settings.list("nets")) {
    trained.push_back(load_trained_net(name, data, run.folders));
    nets.push_back({name, &trained.back().graph});
  }
  training_under_masks(run, data);  // refused before the long work, not after it
  Conclusion conclusion;
  run.say("counting masks");
  add_counts(nets, conclusion);
  add_censuses(run, nets, conclusion);
  add_training(run, data, conclusion);
  add_one_shot(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mask_diversity;
const Experiment experiment_mask_diversity = {
    "mask-diversity",
    "how many masks does a sparsity pattern allow, which of them occur, and does accuracy rise "
    "with their number",
    "Hubara et al. (NeurIPS 2021, arXiv 2102.08124) claim that at equal density accuracy rises "
    "with "
    "mask diversity, the number of masks that a pattern admits.",
    {{"accuracy",
      "One-shot accuracy rises with mask diversity: their rank correlation is above 0."},
     {"groups",
      "Of normal weights, all masks of a group are equally likely: entropy = log2 of their "
      "number."},
     {"tiles", "Of normal weights, all transposable masks are equally likely (an open question)."},
     {"kinds", "Transposable masks that permutations map to each other are equally likely."},
     {"weights", "All masks of a group of trained weights are equally likely."}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "trained networks or files to prune",
      takes_networks()},
     {"data", "glyphs", "glyphs", "glyphs", "data set", takes_data_set()},
     {"blocks", "100000", "1000000", "10000000", "normal pieces of up to 64 elements per pattern",
      whole(100, 1'000'000'000)},
     {"tiles", "1000", "100000", "1000000", "normal tiles of 16 x 16", whole(100, 1'000'000'000)},
     {"images", "500", "2000", "10000", "test samples", whole(1, 100'000'000)},
     {"resamples", "999", "9999", "9999", "of the bootstrap", whole(39, 1'000'000)},
     {"trained", "0", "0", "5",
      "networks of each kind trained from scratch, besides the shipped one", whole(0, 1000)},
     {"train_net", "mlp", "lenet", "lenet", "network trained under masks", takes_network()},
     {"train_samples", "2000", "10000", "0", "training samples, 0: all", whole(0, 1'000'000'000)},
     {"epochs", "1", "4", "12", "of training", whole(1, 10'000)},
     {"refresh", "2", "10", "40", "training steps per mask", whole(1, 1'000'000)}},
    run_mask_diversity};

}  // namespace numemu::experiments

// AdaComp: what it sends of noise alone beside the published rates, and networks that four workers
// train with it (Chen et al., AAAI 2018, arXiv 1712.02679).
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "experiments/adacomp/noise.hpp"
#include "experiments/adacomp/questions.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "experiments/workers/wire_rules.hpp"

namespace numemu::experiments {
namespace adacomp {
namespace {

using workers::Group;
using workers::TrainedNetwork;

void judge_rates(const TrainedNetwork& trained, std::size_t method, Conclusion& conclusion) {
  const auto judge = [&](const char* of, std::int64_t least, std::int64_t most, const Bin& bin) {
    const stats::PairedInterval rates = trained.rates(method, least, most);
    if (std::isnan(rates.mean)) return;  // the network has none
    const auto what = [&](const char* than) {
      return fmt::format("{}: compression of {}, at least {}", trained.name, of, than);
    };
    conclusion.add(
        interval_finding(what("as published"), bin.published, rates, at_least(bin.published)),
        "published");
    conclusion.add(
        interval_finding(what("that of noise"), bin.simulated, rates, at_least(bin.simulated)),
        "above noise");
  };
  judge("convolutions", 3, 8, kConvolution);
  judge("matrices", 2, 2, kMatrix);
}

void add_networks(const ExperimentRun& run, Conclusion& conclusion) {
  std::vector<workers::Method> methods = {
      workers::dense(),
      workers::exchanged({{"rule", "adacomp"}, {"bin", kConvolution.bin}, {"matrix", kMatrix.bin}}),
      workers::exchanged("adacomp(50)"),
      workers::exchanged("topk(0.01)", ""),
      workers::exchanged("randomk(0.01)", ""),
  };
  methods[1].name = "adacomp, published bins";
  for (const Group group : {Group::images, Group::fine_tuning, Group::text}) {
    for (const TrainedNetwork& trained : workers::add_training(run, group, methods, conclusion))
      judge_rates(trained, 1, conclusion);
  }
}

Conclusion run_adacomp(const ExperimentRun& run) {
  Conclusion conclusion;
  add_noise(run, conclusion);
  add_networks(run, conclusion);
  const auto elements = static_cast<std::int64_t>(link_setup(run.settings).elements);
  add_exchange_figure(
      {wire::adacomp(kConvolution.bin, elements), wire::adacomp(kMatrix.bin, elements)},
      run.settings, conclusion);
  return conclusion;
}

}  // namespace
}  // namespace adacomp

extern const Experiment experiment_adacomp;
const Experiment experiment_adacomp = {
    "adacomp",
    "how far does AdaComp compress gradients that are noise, how far those of networks, and what "
    "does training lose",
    "Chen et al. (AAAI 2018, arXiv 1712.02679) claim that gradients of convolutions are compressed "
    "about 40 times and those of fully connected and recurrent layers about 200 times without "
    "noticeable loss, with SGD and Adam.",
    {{"first",
      "The first step on noise sends what the law of a bin's largest element says (derived here)."},
     {"noise",
      "Noise alone is compressed 40.2 times in bins of 50 and 169.8 times in bins of 500, within 2 "
      "% (derived here)."},
     {"mean field",
      "A mean field of independent elements predicts compression and residual of noise within "
      "10 % (derived here)."},
     {"headline", "The published 40 and 200 are what noise alone gives, within 10 % (a contrast)."},
     {"published",
      "Networks reach 40 in convolutions and 200 in fully connected and recurrent layers "
      "(published)."},
     {"above noise",
      "Gradients of networks, whose scales differ, are compressed further than noise (a "
      "contrast)."},
     {"accuracy",
      "Training loses at most 0.5 points of top-1, or 1 % of the bits per character, to the dense "
      "mean (published; the margin is ours)."}},
    with_links(workers::with_training(
        {{"bins", "50,500", "10,50,200,500", "10,20,50,100,200,500,1000", "elements of a bin",
          wholes(2, 16384)},
         {"elements", "20000", "100000", "200000", "of the gradients that are noise",
          whole(16384, 100'000'000)},
         {"warm", "300", "500", "1000", "steps before what is sent counts", whole(1, 1'000'000)},
         {"steps", "50", "100", "500", "steps that count", whole(1, 1'000'000)},
         {"repeats", "2", "5", "10", "draws of the noise", whole(1, 1000)}},
        {workers::Group::images, workers::Group::fine_tuning, workers::Group::text},
        {"sgd", "sgd,adam"})),
    adacomp::run_adacomp,
    workers::check_training};

}  // namespace numemu::experiments

// The multiply-adds that a network saves when zeros of its ReLUs are predicted, and the loss of
// accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/engine/experiment.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/zap/zap_findings.hpp"
#include "experiments/zap/zap_trial.hpp"
#include "formats/error.hpp"
#include "policies/zap/position_mask.hpp"
#include "policies/zap/sites.hpp"

namespace numemu::experiments {
namespace {

std::vector<int> masks_of(const Settings& settings) {
  std::vector<int> masks;
  for (const std::int64_t mask :
       settings.whole_numbers("masks", policies::kLeastMaskType, policies::kLargestMaskType)) {
    if (std::find(masks.begin(), masks.end(), mask) != masks.end())
      throw Error("--set: masks: expected whole numbers, each once");
    masks.push_back(static_cast<int>(mask));
  }
  return masks;
}

std::vector<std::string> layers_of(const Settings& settings) {
  const std::vector<std::string> layers = settings.list("layers");
  for (const std::string& which : layers) {
    if (which != "inner" && which != "all")
      throw Error("--set: layers: expected inner, all or both, not '" + which + "'");
  }
  if (layers.empty() || (layers.size() > 1 && layers[0] == layers[1]) || layers.size() > 2)
    throw Error("--set: layers: expected inner, all or both, each once");
  return layers;
}

/// The settings as a trial without mask, layers and seed.
ZapTrial plan_of(const Settings& settings, const net::Dataset& data) {
  constexpr std::int64_t kMost = 100'000'000;
  ZapTrial plan;
  plan.train_samples = std::min(settings.integer("train_images", 2, kMost), data.train_count());
  plan.epochs = settings.integer("epochs", 1, 1000);
  plan.images = std::min(settings.integer("images", 1, kMost), data.test_count());
  plan.thresholds = settings.numbers("thresholds", -10, 10);
  plan.budgets = settings.numbers("budgets", 1e-6, 100);
  plan.finetune_epochs = settings.integer("finetune", 0, 1000);
  return plan;
}

/// The point of the sweep nearest to the paper's threshold of 0.
std::size_t nearest_to_zero(const std::vector<double>& thresholds) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < thresholds.size(); ++i)
    if (std::fabs(thresholds[i]) < std::fabs(thresholds[nearest])) nearest = i;
  return nearest;
}

std::string best_sentence(const std::vector<ZapResults>& results, ZapCare care) {
  const ZapBest best = best_of(results, care);
  if (best.of == nullptr) {
    return fmt::format("With {} no threshold of any mask loses less than {} points of top-1.",
                       to_string(care), 100 * kZapLoss);
  }
  if (best.of->seeds.size() < 2) {
    return fmt::format(
        "With {} up to {:.1f} % of the convolutions' multiply-adds are saved for less than {} "
        "points; one seed does not tell which mask and thresholds save most.",
        to_string(care), 100 * best.at.saving, 100 * kZapLoss);
  }
  std::string thresholds;
  for (const double threshold : best.at.thresholds)
    thresholds += fmt::format("{}{:.2f}", thresholds.empty() ? "" : ", ", threshold);
  return fmt::format(
      "With {} the largest saving for less than {} points of top-1 is {:.1f} % of the "
      "convolutions' "
      "multiply-adds ({:.1f} to {:.1f} % over seeds; {:.1f} % less the predictors' own): {}, "
      "threshold {}; {} points.",
      to_string(care), 100 * kZapLoss, 100 * best.at.saving, 100 * best.at.least_saving,
      100 * best.at.largest_saving, 100 * best.at.net_saving, name_of(*best.of), thresholds,
      change_text(best.change));
}

/// What is lost of each layer's sum beside what random predictors lose that skip as many.
std::string random_sentence(const ZapResults& results) {
  std::string text;
  for (const Json& layer : results.seeds.front()["layers"]) {
    const auto& random = layer["random"];
    text += fmt::format("{}{} {:.2f} % ({:.2f} %)", text.empty() ? "" : ", ",
                        layer["layer"].get<std::string>(),
                        100 * random["trained"]["value"].get<double>(),
                        100 * random["measured"]["value"].get<double>());
  }
  return fmt::format(
      "{}, threshold 0, first seed: of the activations' sum the trained predictors lose, and in "
      "brackets random ones that skip as many: {}.",
      name_of(results), text);
}

Conclusion run_zap(const ExperimentRun& run) {
  const std::vector<int> masks = masks_of(run.settings);
  const std::vector<std::string> layers = layers_of(run.settings);
  const std::int64_t seeds = run.settings.integer("seeds", 1, 1000);
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  require_one_class(data, "experiment zap");
  const ZapTrial plan = plan_of(run.settings, data);
  TrainedNet trained = load_trained_net(run.settings.text("net"), data, run.folders);
  for (const std::string& which : layers) {
    if (policies::zap_sites(trained.graph, which == "all").empty()) {
      throw Error("network " + trained.graph.name + ", layers " + which +
                  ": expected a ReLU behind a convolution (layers=all counts the first too)");
    }
  }
  run.say(fmt::format("{} on {}: float32 baseline", trained.graph.name, data.name()));
  net::Numerics float32;
  const net::Evaluation baseline =
      net::evaluate(trained.graph, data, net::Split::test, plan.images, float32);

  std::vector<Trial> trials;
  std::vector<ZapResults> results;
  for (const std::string& which : layers) {
    for (const int mask : masks) {
      results.push_back({mask, which, plan.images, {}});
      for (std::int64_t s = 0; s < seeds; ++s) {
        ZapTrial trial = plan;
        trial.first = which == "all";
        trial.mask = mask;
        trial.seed = run.seed + static_cast<std::uint64_t>(s);
        trial.predictors =
            fmt::format("{}/zap-{}-mask{}-seed{}.safetensors", run.out, which, mask, trial.seed);
        trials.push_back({point_of(trial, trained, data),
                          fmt::format("{} layers, mask {}, seed {}", which, mask, trial.seed),
                          [&, trial] { return run_zap_trial(trial, trained, data, baseline); }});
      }
    }
  }
  const std::vector<Json> rows = run_trials(run, trials);
  for (std::size_t i = 0; i < rows.size(); ++i)
    results[i / static_cast<std::size_t>(seeds)].seeds.push_back(rows[i]);

  const std::size_t zero = nearest_to_zero(plan.thresholds);
  Conclusion conclusion;
  for (const ZapCare care : cares_of(results))
    conclusion.sentences.push_back(best_sentence(results, care));
  for (const ZapResults& of_mask : results)
    conclusion.sentences.push_back(random_sentence(of_mask));
  conclusion.tables = {sweep_table(results), miss_table(results, zero), budget_table(results)};
  conclusion.findings = zap_findings(results);
  conclusion.charts = zap_charts(results, zero);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_zap;
const Experiment experiment_zap = {
    "zap",
    "how many multiply-adds does a network save if the zeros behind its ReLUs are predicted, and "
    "how much accuracy does it lose",
    "Shomron et al. (ECCV 2020, arXiv 1909.07636) claim that light predictors of which activations "
    "a "
    "ReLU makes zero save a large part of a convolution's multiply-adds at little accuracy.",
    {{"saving",
      "At some mask, threshold or budget 25 % of the convolutions' multiply-adds are saved "
      "for less than 0.5 points of top-1."},
     {"shares",
      "Validation images and fitted curves predict shares of zeros and errors on test images "
      "within 0.01."},
     {"curves", "Error over threshold is a logistic curve, to 0.02 (RMS)."}},
    {{"net", "lenet", "lenet", "lenet", "network or file"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"masks", "5", "4,5,6", "3,4,5,6,7,8", "types of position masks, 3 to 10"},
     {"layers", "inner", "inner,all", "inner,all",
      "inner, all (behind the first convolution too), or both"},
     {"thresholds", "-0.2,0,0.2,0.4", "-0.5,-0.4,-0.3,-0.2,-0.1,0,0.1,0.2,0.3,0.4,0.5",
      "-1,-0.8,-0.6,-0.5,-0.4,-0.3,-0.2,-0.1,0,0.1,0.2,0.3,0.4,0.5,0.6,0.8,1",
      "predictions above are computed"},
     {"budgets", "0.05", "0.02,0.05,0.1", "0.01,0.02,0.05,0.1,0.2",
      "of error summed over the layers"},
     {"seeds", "1", "3", "5", "predictors trained per mask"},
     {"train_images", "2048", "16384", "54000", "training images the predictors see"},
     {"epochs", "2", "5", "5", "of predictors"},
     {"finetune", "0", "1", "1", "epochs of the network with its predictors, at each budget"},
     {"images", "1000", "10000", "10000", "test samples"}},
    run_zap};

}  // namespace numemu::experiments

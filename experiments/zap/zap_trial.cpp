// The steps of one trial.
#include "experiments/zap/zap_trial.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emu/net/model/weights.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/zap/thresholds.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/zap/zap_numerics.hpp"

namespace numemu::experiments {
namespace {

using policies::ZapTally;

// Maps of one layer that are held at a time: 256 MiB.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
constexpr std::int64_t kValidationImages = 1024;
// Images that statistics of batch normalisation are estimated from.
constexpr std::int64_t kStatisticsImages = 2048, kStatisticsBatch = 128;

std::vector<std::int64_t> ids_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

ZapCounts counts_of(const ZapTally& t) {
  return {t.computed,    t.predicted,  t.zeros_skipped, t.losses,
          t.values_kept, t.zeros_kept, t.saving(),      t.error()};
}

/// Everything that the steps share.
class Bench {
 public:
  Bench(const ZapTrial& trial, TrainedNet& trained, const net::Dataset& data,
        const net::Evaluation& baseline)
      : trial_(trial),
        graph_(trained.graph),
        data_(data),
        baseline_(baseline),
        before_(net::parameters_of(trained.graph)),
        path_(trained.path),
        zap_(policies::make_zap_network(policies::zap_sites(trained.graph, trial.first), trial.mask,
                                        trial.seed)) {}
  ~Bench() { restore(); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  ZapMeasured run() {
    const auto losses = train();
    ZapMeasured result{.conv_macs = policies::convolution_macs(graph_)};
    measure_curves(result.layers);
    std::vector<ThresholdChoice> choices;
    for (const double budget : trial_.budgets)
      choices.push_back(choose_thresholds(curves_, budget));
    if (!trial_.predictors.empty()) {
      if (!choices.empty()) set(choices.front().thresholds);
      policies::save_zap_network(trial_.predictors, zap_);
    }
    measure_on_test(choices, result.layers);
    for (std::size_t l = 0; l < losses.size(); ++l) result.layers[l].losses = losses[l];
    for (const double threshold : trial_.thresholds)
      result.points.push_back(measure_point(std::vector<double>(zap_.layers.size(), threshold)));
    for (std::size_t i = 0; i < choices.size(); ++i)
      result.chosen.push_back(measure_choice(trial_.budgets[i], choices[i]));
    return result;
  }

 private:
  /// As many images as fit where the largest map's are held.
  std::int64_t at_most(std::int64_t images) const {
    std::int64_t largest = 1;
    for (const policies::ZapLayer& layer : zap_.layers)
      largest = std::max(largest, layer.site.activations());
    return std::clamp<std::int64_t>(images, 1, std::max<std::int64_t>(1, kMostElements / largest));
  }

  std::vector<std::vector<double>> train() {
    const std::int64_t samples = at_most(std::min(trial_.train_samples, data_.train_count()));
    const auto images = [&](std::int64_t first, std::int64_t count) {
      net::Targets targets;
      return data_.train_batch(ids_from(first, count), targets);
    };
    return policies::train_zap_network(zap_, graph_, samples, images,
                                       {.epochs = trial_.epochs, .seed = trial_.seed});
  }

  /// What may be known of each layer beforehand, on validation images: curves and the bound.
  void measure_curves(std::vector<ZapLayerResult>& layers) {
    net::Targets targets;
    policies::for_each_map(
        zap_, graph_, at_most(std::min(kValidationImages, data_.validation_count())),
        [&](std::int64_t first, std::int64_t count) {
          return data_.validation_batch(first, count, targets);
        },
        [&](std::size_t l, net::Tensor maps) {
          layers.push_back(
              measure_curve(zap_.layers[l].site, {zap_.layers[l].predictor, std::move(maps)}));
        });
  }

  ZapLayerResult measure_curve(const policies::ZapSite& site, const PredictedMaps& maps) {
    ZapLayerResult result{
        .layer = site.layer, .macs = site.macs(), .activations = site.activations()};
    std::vector<ZapTally> tallies;
    for (const float threshold : measured_thresholds()) {
      tallies.push_back(maps.tally(threshold));
      result.curve.push_back({threshold, tallies.back().saving(), tallies.back().error()});
    }
    curves_.push_back(threshold_curves(tallies, static_cast<double>(site.macs())));
    result.error_fit = curves_.back().error;
    result.saving_fit = curves_.back().saving;
    result.bound_seen = maps.bound();
    return result;
  }

  /// Adds the float32 maps of test images.
  void measure_on_test(const std::vector<ThresholdChoice>& choices,
                       std::vector<ZapLayerResult>& layers) {
    net::Targets targets;
    policies::for_each_map(
        zap_, graph_, at_most(trial_.images),
        [&](std::int64_t first, std::int64_t count) {
          return data_.test_batch(first, count, targets);
        },
        [&](std::size_t l, net::Tensor maps) {
          add_test(l, {zap_.layers[l].predictor, std::move(maps)}, choices, layers[l]);
        });
  }

  void add_test(std::size_t l, const PredictedMaps& maps,
                const std::vector<ThresholdChoice>& choices, ZapLayerResult& layer) const {
    const ZapTally at_zero = maps.tally(0), none = maps.tally(-HUGE_VALF),
                   all = maps.tally(HUGE_VALF);
    const double rate =
        static_cast<double>(at_zero.skipped()) / static_cast<double>(at_zero.predicted);
    layer.bound = maps.bound();
    layer.random = {rate, maps.random_error(rate, trial_.seed), maps.error(0)};
    layer.limits = {none.error(), all.error(), all.error_limit()};
    for (const ThresholdChoice& choice : choices) {
      const double threshold = choice.thresholds[l];
      layer.chosen_errors.push_back(
          {threshold, curves_[l].error.at(threshold), maps.error(static_cast<float>(threshold))});
    }
  }

  ZapAccuracy accuracy(net::Numerics& numerics) {
    const net::Evaluation now =
        net::evaluate(graph_, data_, net::Split::test, baseline_.samples, numerics);
    const stats::PairedAnswers answers = paired_answers(now, baseline_);
    return {now.correct, answers.only2, answers.only1};
  }

  void set(const std::vector<double>& thresholds) {
    for (std::size_t l = 0; l < zap_.layers.size(); ++l)
      zap_.layers[l].threshold = static_cast<float>(thresholds[l]);
  }

  /// Accuracy and tallies at these thresholds, and the accuracy after recalibration.
  ZapPoint measure_point(const std::vector<double>& thresholds) {
    set(thresholds);
    net::Numerics float32;
    policies::ZapNumerics numerics(zap_, float32);
    numerics.count(true);
    ZapPoint point{.thresholds = thresholds, .zap = accuracy(numerics)};
    for (const ZapTally& tally : numerics.tallies()) point.layers.push_back(counts_of(tally));
    numerics.count(false);
    if (recalibrate(numerics)) point.recalibrated = accuracy(numerics);
    restore();
    return point;
  }

  bool recalibrate(net::Numerics& numerics) {
    const auto is_norm = [](const net::Node& node) { return node.op->kind() == "batch_norm"; };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_norm)) return false;
    std::vector<std::vector<net::Tensor>> batches;
    net::Targets targets;
    const std::int64_t images = std::min(kStatisticsImages, data_.train_count());
    for (std::int64_t first = 0; first < images; first += kStatisticsBatch) {
      const std::int64_t count = std::min(kStatisticsBatch, images - first);
      batches.emplace_back().push_back(data_.train_batch(ids_from(first, count), targets));
    }
    return policies::reestimate_batch_norm(graph_, batches, numerics) > 0;
  }

  ZapChosen measure_choice(double budget, const ThresholdChoice& choice) {
    ZapChosen chosen{measure_point(choice.thresholds), budget, choice.error, choice.remaining};
    if (trial_.finetune_epochs > 0) chosen.finetuned = finetuned(choice.thresholds);
    return chosen;
  }

  /// The network trained on with its predictors as they are, by the rates of the paper.
  ZapAccuracy finetuned(const std::vector<double>& thresholds) {
    set(thresholds);
    net::TrainOptions options;
    options.optimizer = "sgd";
    options.schedule = "constant";
    options.learning_rate = 1e-4;
    options.weight_decay = 5e-4;
    options.momentum = 0.9;
    options.epochs = trial_.finetune_epochs;
    options.seed = trial_.seed;
    net::Numerics float32;
    policies::ZapNumerics numerics(zap_, float32);
    const std::int64_t samples = std::min(trial_.train_samples, data_.train_count());
    net::train(graph_, restricted(data_, samples, false), options, numerics);
    const ZapAccuracy result = accuracy(numerics);
    restore();
    return result;
  }

  void restore() { net::load_parameters(graph_, before_, path_); }

  const ZapTrial& trial_;
  net::Graph& graph_;
  const net::Dataset& data_;
  const net::Evaluation& baseline_;
  const net::Checkpoint before_;
  const std::string path_;
  policies::ZapNetwork zap_;
  std::vector<ThresholdCurves> curves_;
};

}  // namespace

Json point_of(const ZapTrial& t, const TrainedNet& net, const net::Dataset& data) {
  Json point = {{"experiment", "zap"},
                {"data", data.name()},
                {"data_digest", data.digest()},
                {"mask", t.mask},
                {"seed", t.seed},
                {"first", t.first},
                {"train_samples", t.train_samples},
                {"epochs", t.epochs},
                {"images", t.images},
                {"thresholds", t.thresholds},
                {"budgets", t.budgets},
                {"finetune_epochs", t.finetune_epochs}};
  identify(point, net);
  return point;
}

ZapMeasured run_zap_trial(const ZapTrial& trial, TrainedNet& trained, const net::Dataset& data,
                          const net::Evaluation& baseline) {
  return Bench(trial, trained, data, baseline).run();
}

}  // namespace numemu::experiments

// The steps of one trial.
#include "experiments/zap/zap_trial.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/workbench.hpp"
#include "experiments/zap/thresholds.hpp"
#include "policies/calibrate/batch_norm.hpp"
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

Json to_json(const ZapTally& t) {
  return {{"computed", t.computed},
          {"predicted", t.predicted},
          {"zeros_skipped", t.zeros_skipped},
          {"losses", t.losses},
          {"values_kept", t.values_kept},
          {"zeros_kept", t.zeros_kept},
          {"saving", t.saving()},
          {"error", t.error()}};
}

Json to_json(const LogisticCurve& c) {
  return {{"a", c.a}, {"b", c.b}, {"c", c.c}, {"d", c.d}, {"rms", c.rms}};
}

Json to_json(const RatioEstimate& r) { return {{"value", r.value}, {"error", r.error}}; }

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

  Json run() {
    const auto losses = train();
    Json result = {{"conv_macs", policies::convolution_macs(graph_)}, {"layers", Json::array()}};
    std::vector<Json> layers = measure_curves();
    std::vector<ThresholdChoice> choices;
    for (const double budget : trial_.budgets)
      choices.push_back(choose_thresholds(curves_, budget));
    if (!trial_.predictors.empty()) {
      if (!choices.empty()) set(choices.front().thresholds);
      policies::save_zap_network(trial_.predictors, zap_);
    }
    measure_on_test(choices, layers);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l]["losses"] = losses[l];
      result["layers"].push_back(std::move(layers[l]));
    }
    result["points"] = Json::array();
    for (const double threshold : trial_.thresholds)
      result["points"].push_back(measure_point(std::vector<double>(zap_.layers.size(), threshold)));
    result["chosen"] = Json::array();
    for (std::size_t i = 0; i < choices.size(); ++i)
      result["chosen"].push_back(measure_choice(trial_.budgets[i], choices[i]));
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

  /// What may be known of each layer beforehand, on validation images.
  std::vector<Json> measure_curves() {
    std::vector<Json> layers;
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
    return layers;
  }

  /// Curves and the bound.
  Json measure_curve(const policies::ZapSite& site, const PredictedMaps& maps) {
    std::vector<ZapTally> tallies;
    Json curve = Json::array();
    for (const float threshold : measured_thresholds()) {
      tallies.push_back(maps.tally(threshold));
      curve.push_back({{"threshold", threshold},
                       {"saving", tallies.back().saving()},
                       {"error", tallies.back().error()}});
    }
    curves_.push_back(threshold_curves(tallies, static_cast<double>(site.macs())));
    return {{"layer", site.layer},
            {"macs", site.macs()},
            {"activations", site.activations()},
            {"curve", curve},
            {"error_fit", to_json(curves_.back().error)},
            {"saving_fit", to_json(curves_.back().saving)},
            {"bound_seen", to_json(maps.bound())}};
  }

  /// Adds the float32 maps of test images.
  void measure_on_test(const std::vector<ThresholdChoice>& choices, std::vector<Json>& layers) {
    net::Targets targets;
    policies::for_each_map(
        zap_, graph_, at_most(trial_.images),
        [&](std::int64_t first, std::int64_t count) {
          return data_.test_batch(first, count, targets);
        },
        [&](std::size_t l, net::Tensor maps) {
          layers[l].update(test_results(l, {zap_.layers[l].predictor, std::move(maps)}, choices));
        });
  }

  Json test_results(std::size_t l, const PredictedMaps& maps,
                    const std::vector<ThresholdChoice>& choices) const {
    const ZapTally at_zero = maps.tally(0), none = maps.tally(-HUGE_VALF),
                   all = maps.tally(HUGE_VALF);
    const double rate =
        static_cast<double>(at_zero.skipped()) / static_cast<double>(at_zero.predicted);
    Json errors = Json::array();
    for (const ThresholdChoice& choice : choices) {
      const double threshold = choice.thresholds[l];
      errors.push_back({{"threshold", threshold},
                        {"predicted", curves_[l].error.at(threshold)},
                        {"measured", to_json(maps.error(static_cast<float>(threshold)))}});
    }
    return {
        {"bound", to_json(maps.bound())},
        {"random",
         {{"rate", rate},
          {"measured", to_json(maps.random_error(rate, trial_.seed))},
          {"trained", to_json(maps.error(0))}}},
        {"limits", {{"none", none.error()}, {"all", all.error()}, {"expected", all.error_limit()}}},
        {"chosen_errors", errors}};
  }

  Json accuracy(net::Numerics& numerics) {
    const net::Evaluation now =
        net::evaluate(graph_, data_, net::Split::test, baseline_.samples, numerics);
    std::int64_t only_float = 0, only_zap = 0;
    for (std::size_t i = 0; i < now.right.size(); ++i) {
      only_float += baseline_.right[i] > now.right[i];
      only_zap += baseline_.right[i] < now.right[i];
    }
    return {{"correct", now.correct}, {"only_float", only_float}, {"only_zap", only_zap}};
  }

  void set(const std::vector<double>& thresholds) {
    for (std::size_t l = 0; l < zap_.layers.size(); ++l)
      zap_.layers[l].threshold = static_cast<float>(thresholds[l]);
  }

  /// Accuracy and tallies at these thresholds, and the accuracy after recalibration.
  Json measure_point(const std::vector<double>& thresholds) {
    set(thresholds);
    net::Numerics float32;
    policies::ZapNumerics numerics(zap_, float32);
    numerics.count(true);
    Json point = {
        {"thresholds", thresholds}, {"zap", accuracy(numerics)}, {"layers", Json::array()}};
    for (const ZapTally& tally : numerics.tallies()) point["layers"].push_back(to_json(tally));
    numerics.count(false);
    point["recalibrated"] = recalibrate(numerics) ? accuracy(numerics) : Json(nullptr);
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

  Json measure_choice(double budget, const ThresholdChoice& choice) {
    Json chosen = measure_point(choice.thresholds);
    chosen["budget"] = budget;
    chosen["expected_error"] = choice.error;
    chosen["expected_remaining"] = choice.remaining;
    chosen["finetuned"] = trial_.finetune_epochs > 0 ? finetuned(choice.thresholds) : Json(nullptr);
    return chosen;
  }

  /// The network trained on with its predictors as they are, by the rates of the paper.
  Json finetuned(const std::vector<double>& thresholds) {
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
    Json result = accuracy(numerics);
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

Json run_zap_trial(const ZapTrial& trial, TrainedNet& trained, const net::Dataset& data,
                   const net::Evaluation& baseline) {
  return Bench(trial, trained, data, baseline).run();
}

}  // namespace numemu::experiments

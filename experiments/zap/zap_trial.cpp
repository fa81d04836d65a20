// The steps of one trial.
#include "experiments/zap/zap_trial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/weights.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/random.hpp"
#include "policies/calibrate/least_squares.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::experiments {

namespace {

constexpr std::int64_t kParameters = 4;
using Vector = std::array<double, kParameters>;  // a, b, c, d

double share(const LogisticCurve& curve, double x) { return core::sigmoid(curve.b * x - curve.c); }

/// Half the gradient and the Gauss-Newton matrix of the sum of squared residuals.
struct Normal {
  double squares = 0;
  Vector gradient{};
  std::vector<double> matrix = std::vector<double>(kParameters * kParameters);
};

double squares_of(const LogisticCurve& curve, std::span<const double> x,
                  std::span<const double> y) {
  return pairwise_sum(static_cast<std::int64_t>(x.size()), [&](std::int64_t i) {
    const double residual = y[i] - curve.at(x[i]);
    return residual * residual;
  });
}

Normal normal_of(const LogisticCurve& curve, std::span<const double> x, std::span<const double> y) {
  Normal normal;
  normal.squares = squares_of(curve, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = share(curve, x[i]), slope = curve.a * s * (1 - s);
    const Vector by{s, slope * x[i], -slope, 1};
    for (std::int64_t p = 0; p < kParameters; ++p) {
      normal.gradient[p] += by[p] * (y[i] - curve.at(x[i]));
      for (std::int64_t q = 0; q < kParameters; ++q)
        normal.matrix[p * kParameters + q] += by[p] * by[q];
    }
  }
  return normal;
}

/// The start: between the extremes, half way up where the points first are, as steep as they rise
/// from a quarter to three quarters.
LogisticCurve start_of(std::span<const double> x, std::span<const double> y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  LogisticCurve curve;
  curve.d = *least;
  curve.a = *most - *least;
  const auto reaches = [&](double part) {
    const auto found =
        std::find_if(y.begin(), y.end(), [&](double v) { return v >= curve.d + part * curve.a; });
    return x[static_cast<std::size_t>(found - y.begin())];
  };
  const double range =
      *std::max_element(x.begin(), x.end()) - *std::min_element(x.begin(), x.end());
  const double rise = std::max(reaches(0.75) - reaches(0.25), range / 64);
  curve.b = 2.1972245773362196 / rise;  // 2 ln 3
  curve.c = curve.b * reaches(0.5);
  return curve;
}

}  // namespace

double LogisticCurve::at(double x) const { return d + a * share(*this, x); }

LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < static_cast<std::size_t>(kParameters))
    throw Error("logistic curve: expected at least 4 points with one value each");
  const auto finite = [](double v) { return std::isfinite(v); };
  if (!std::all_of(x.begin(), x.end(), finite) || !std::all_of(y.begin(), y.end(), finite))
    throw Error("logistic curve: expected finite points");
  const FloatGuard guard;
  const double count = static_cast<double>(x.size());
  LogisticCurve curve = start_of(x, y);
  if (curve.a == 0) return {0, 1, 0, curve.d, 0};
  // Levenberg-Marquardt: a step that helps divides the damping by ten, any other multiplies it. The
  // fit has converged when no damping helps.
  constexpr int kSteps = 500;
  constexpr double kLeastTrust = 1e12, kMostTrust = 1e-12;
  double damping = 1e-3;
  Normal normal = normal_of(curve, x, y);
  for (int step = 0; step < kSteps && damping < kLeastTrust; ++step) {
    std::vector<double> matrix = normal.matrix;
    for (std::int64_t p = 0; p < kParameters; ++p) {
      double& diagonal = matrix[p * kParameters + p];
      diagonal += damping * std::max(diagonal, kMostTrust);
    }
    Vector change = normal.gradient;
    LogisticCurve next = curve;
    try {
      policies::Cholesky(std::move(matrix), kParameters).solve(change.data());
    } catch (const Error&) {
      damping *= 10;
      continue;
    }
    next.a += change[0];
    next.b = std::max(0.0, next.b + change[1]);
    next.c += change[2];
    next.d += change[3];
    const double squares = squares_of(next, x, y);
    if (!(squares < normal.squares)) {
      damping *= 10;
      continue;
    }
    curve = next;
    normal = normal_of(curve, x, y);
    damping = std::max(damping / 10, kMostTrust);
  }
  curve.rms = std::sqrt(normal.squares / count);
  return curve;
}

// Sums by image over maps and predictions.

Estimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const double whole = pairwise_sum(n, [&](std::int64_t i) { return wholes[i]; });
  if (whole == 0) return {};
  Estimate ratio;
  ratio.value = pairwise_sum(n, [&](std::int64_t i) { return parts[i]; }) / whole;
  ratio.error = std::sqrt(pairwise_sum(n,
                                       [&](std::int64_t i) {
                                         const double residual = parts[i] - ratio.value * wholes[i];
                                         return residual * residual;
                                       })) /
                std::fabs(whole);
  return ratio;
}

PredictedMaps::PredictedMaps(const policies::ZapPredictor& predictor, net::Tensor maps)
    : predictor_(predictor), x_(std::move(maps)), z_(x_.shape) {
  // A few at a time: the predictor's own tensors are as large as the maps.
  constexpr std::int64_t kBatch = 128;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  for (std::int64_t first = 0; first < images; first += kBatch) {
    net::Shape shape = x_.shape;
    shape[0] = std::min(kBatch, images - first);
    net::Tensor part(shape);
    std::copy_n(x_.data.begin() + first * each, part.size(), part.data.begin());
    const net::Tensor z = predictor.predict(part);
    std::copy(z.data.begin(), z.data.end(), z_.data.begin() + first * each);
  }
}

policies::ZapTally PredictedMaps::tally(float threshold) const {
  return policies::tally_of(predictor_.mask(), x_, z_, threshold);
}

Estimate PredictedMaps::bound() const {
  const std::int64_t images = x_.dim(0), each = x_.size() / images, channels = x_.dim(3);
  const policies::PositionMask& mask = predictor_.mask();
  std::vector<double> zeros(static_cast<std::size_t>(images)),
      all(zeros.size(), static_cast<double>(each));
  for (std::int64_t n = 0; n < images; ++n) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < each; ++i) {
      const bool predicted = mask.computed[static_cast<std::size_t>(i / channels)] == 0;
      count += predicted && !(x_.data[n * each + i] > 0);
    }
    zeros[n] = static_cast<double>(count);
  }
  return ratio_of(zeros, all);
}

Estimate PredictedMaps::error_where(const std::function<bool(std::int64_t)>& skips) const {
  const FloatGuard guard;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  std::vector<double> lost, all;
  for (std::int64_t n = 0; n < images; ++n) {
    const auto value = [&](std::int64_t i) { return static_cast<double>(x_.data[i]); };
    all.push_back(pairwise_sum(each, value, n * each));
    lost.push_back(pairwise_sum(
        each, [&](std::int64_t i) { return skips(i) ? value(i) : 0; }, n * each));
  }
  return ratio_of(lost, all);
}

Estimate PredictedMaps::error(float threshold) const {
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, z_.data[i], threshold);
  });
}

Estimate PredictedMaps::random_error(double rate, std::uint64_t seed) const {
  const RandomSource random{seed, Stream::mask, tensor_word(predictor_.graph().name + ".random"),
                            0};
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, -HUGE_VALF, 0) &&
           random.uniform(static_cast<std::uint64_t>(i)) < rate;
  });
}

// Curves per layer, and a knapsack with one choice per layer.

namespace {

constexpr int kMeasured = static_cast<int>(2 * kLargestThreshold / kMeasuredStep + 1.5);
constexpr int kChoices = static_cast<int>(2 * kLargestThreshold / kChosenStep + 1.5);

double measured_at(int i) { return (i - kMeasured / 2) / (1 / kMeasuredStep); }
double choice_at(int i) { return (i - kChoices / 2) / (1 / kChosenStep); }

/// A fitted curve may leave what an error or a share can be.
double share_at(const LogisticCurve& curve, double threshold) {
  return std::clamp(curve.at(threshold), 0.0, 1.0);
}

double remaining_at(const ThresholdCurves& layer, double threshold) {
  return layer.macs * (1 - share_at(layer.saving, threshold));
}

/// The error of each threshold in parts of the budget, rounded up.
std::vector<std::int64_t> parts_of(const ThresholdCurves& layer, double budget) {
  constexpr double kMost = 1e15;  // no sum of these leaves the integers
  std::vector<std::int64_t> parts;
  for (int i = 0; i < kChoices; ++i) {
    const double part = std::ceil(share_at(layer.error, choice_at(i)) / budget * kBudgetParts);
    parts.push_back(static_cast<std::int64_t>(std::min(part, kMost)));
  }
  return parts;
}

}  // namespace

std::vector<float> measured_thresholds() {
  std::vector<float> thresholds;
  for (int i = 0; i < kMeasured; ++i) thresholds.push_back(static_cast<float>(measured_at(i)));
  return thresholds;
}

ThresholdCurves threshold_curves(std::span<const policies::ZapTally> tallies, double macs) {
  if (tallies.size() != static_cast<std::size_t>(kMeasured)) {
    throw Error("threshold curves: expected the tallies of " + std::to_string(kMeasured) +
                " thresholds, got " + std::to_string(tallies.size()));
  }
  std::vector<double> x, error, saving;
  for (int i = 0; i < kMeasured; ++i) {
    x.push_back(measured_at(i));
    error.push_back(tallies[i].error());
    saving.push_back(tallies[i].saving());
  }
  return {macs, fit_logistic(x, error), fit_logistic(x, saving)};
}

ThresholdChoice choose_thresholds(std::span<const ThresholdCurves> layers, double budget) {
  if (!(budget > 0 && std::isfinite(budget)))
    throw Error("thresholds: expected a budget of error above 0");
  const FloatGuard guard;
  // Every layer costs the error of its least threshold; the rest of the budget is distributed.
  std::vector<std::vector<std::int64_t>> prices;
  std::int64_t left = kBudgetParts;
  for (const ThresholdCurves& layer : layers) {
    const std::vector<std::int64_t> parts = parts_of(layer, budget);
    left -= parts[0];
    std::vector<std::int64_t>& price = prices.emplace_back();
    for (const std::int64_t part : parts)
      price.push_back(std::max<std::int64_t>(0, part - parts[0]));
  }
  left = std::max<std::int64_t>(0, left);
  // least[p]: multiply-adds of the layers so far for at most p parts; choices[layer][p] is the
  // layer's threshold there.
  std::vector<double> least(static_cast<std::size_t>(left) + 1, 0);
  std::vector<std::vector<int>> choices;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> next(least.size(), HUGE_VAL);
    std::vector<int>& choice = choices.emplace_back(least.size());
    for (int i = 0; i < kChoices; ++i) {
      const double macs = remaining_at(layers[l], choice_at(i));
      for (std::int64_t p = prices[l][i]; p <= left; ++p) {
        if (!(least[p - prices[l][i]] + macs < next[p])) continue;
        next[p] = least[p - prices[l][i]] + macs;
        choice[p] = i;
      }
    }
    least = std::move(next);
  }
  ThresholdChoice result;
  result.thresholds.resize(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) {
    const int chosen = choices[l][left];
    left -= prices[l][chosen];
    result.thresholds[l] = choice_at(chosen);
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    result.error += share_at(layers[l].error, result.thresholds[l]);
    result.remaining += remaining_at(layers[l], result.thresholds[l]);
  }
  return result;
}

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

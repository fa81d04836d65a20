// One set of predictors for one network: trained, swept over thresholds, which are chosen for a
// budget of error, recalibrated; and what the trials of several seeds say.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/net/train/evaluate.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "formats/storage/fields.hpp"
#include "formats/storage/json.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::experiments {

/// y = d + a / (1 + exp(-b x + c)).
struct LogisticCurve {
  double a = 0, b = 1, c = 0, d = 0;
  double rms = 0;  ///< root of the mean squared residual at the points it was fitted to

  double at(double x) const;
  static void fields(auto& self, const auto& visit) {
    visit("a", self.a);
    visit("b", self.b);
    visit("c", self.c);
    visit("d", self.d);
    visit("rms", self.rms);
  }
};

/// Least squares by Levenberg (1944) and Marquardt (1963) from a start that the points' range
/// gives; b >= 0. Same bits everywhere. Points of one height give a = 0. Throws Error for fewer
/// than 4 points, spans of different lengths, and values that are not finite.
LogisticCurve fit_logistic(std::span<const double> x, std::span<const double> y);

// One layer's predictor on float32 maps: its curve over thresholds, and what bounds it.

/// A ratio of sums over images, with its standard error by images (linearised).
Estimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes);

/// A predictor's maps of one set of images, predicted once.
class PredictedMaps {
 public:
  PredictedMaps(const policies::ZapPredictor&, net::Tensor maps);

  policies::ZapTally tally(float threshold) const;
  /// Share of all activations that are zero and may be skipped: no predictor saves more unharmed.
  Estimate bound() const;
  /// Error at a threshold.
  Estimate error(float threshold) const;
  /// Error where each predicted activation is skipped with that probability, whatever it is.
  Estimate random_error(double rate, std::uint64_t seed) const;

 private:
  /// Sum over the skipped, and over all, for each image.
  Estimate error_where(const std::function<bool(std::int64_t)>& skips) const;
  const policies::ZapPredictor& predictor_;
  net::Tensor x_, z_;
};

// Chooses the threshold of each layer for the least computation within a budget of error.

/// Thresholds are sought in [-kLargestThreshold, kLargestThreshold].
inline constexpr double kLargestThreshold = 1;
/// Between two thresholds that are measured, and between two that may be chosen.
inline constexpr double kMeasuredStep = 0.1, kChosenStep = 0.01;

/// -1, -0.9 .. 1.
std::vector<float> measured_thresholds();

/// A layer's error and the part of its multiply-adds that is saved as functions of its threshold.
struct ThresholdCurves {
  double macs = 0;  ///< of its convolutions, per sample
  LogisticCurve error, saving;
};

/// Curves through the tallies of measured_thresholds().
ThresholdCurves threshold_curves(std::span<const policies::ZapTally>, double macs);

struct ThresholdChoice {
  std::vector<double> thresholds;  ///< one per layer
  double error = 0;                ///< expected sum over the layers
  double remaining = 0;            ///< expected multiply-adds per sample of these layers
};

inline constexpr int kBudgetParts = 2000;

/// Minimises the sum of remaining multiply-adds subject to a sum of errors <= budget (Shomron et
/// al., ECCV 2020; their solver is SLSQP) over thresholds k kChosenStep. The curves are not convex,
/// so this is a dynamic program over the budget in kBudgetParts parts, errors rounded up: never
/// over the budget, and not worse than the best choice for budget (1 - layers / kBudgetParts). The
/// least threshold wins ties. Where even the least ones of all layers are over the budget the
/// result is thresholds that cost no part more, with their `error`. Throws Error for a budget that
/// is not positive and finite.
ThresholdChoice choose_thresholds(std::span<const ThresholdCurves>, double budget);

/// What one trial depends on, beside network and data.
struct ZapTrial {
  int mask = 5;
  std::uint64_t seed = 0;            ///< of the predictors' weights and the order of training
  bool first = false;                ///< predictors behind the first convolution too
  std::int64_t train_samples = 0;    ///< training images whose maps the predictors learn from
  std::int64_t epochs = 5;           ///< of that
  std::int64_t images = 0;           ///< of the test split
  std::vector<double> thresholds;    ///< swept, the same in every layer
  std::vector<double> budgets;       ///< of error, summed over the layers: thresholds are optimised
  std::int64_t finetune_epochs = 0;  ///< of the network, predictors at work, at each budget
  std::string predictors = {};  ///< file for them, thresholds as for the first budget; "": none
};

/// Point of the trial: its settings but for the file, and the identity of network and data.
Json point_of(const ZapTrial&, const TrainedNet&, const net::Dataset&);

/// Of the test images; how many only the float32 network or only this one gets right.
struct ZapAccuracy {
  std::int64_t correct = 0, only_float = 0, only_zap = 0;

  static void fields(auto& self, const auto& visit) {
    visit("correct", self.correct);
    visit("only_float", self.only_float);
    visit("only_zap", self.only_zap);
  }
};

/// The counts of a policies::ZapTally, and what follows from its sums.
struct ZapCounts {
  std::int64_t computed = 0, predicted = 0;
  std::int64_t zeros_skipped = 0, losses = 0, values_kept = 0, zeros_kept = 0;
  double saving = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("computed", self.computed);
    visit("predicted", self.predicted);
    visit("zeros_skipped", self.zeros_skipped);
    visit("losses", self.losses);
    visit("values_kept", self.values_kept);
    visit("zeros_kept", self.zeros_kept);
    visit("saving", self.saving);
    visit("error", self.error);
  }
};

/// The network with its predictors at some thresholds, one for each layer.
struct ZapPoint {
  std::vector<double> thresholds = {};
  ZapAccuracy zap = {};
  std::vector<ZapCounts> layers = {};
  Member<ZapAccuracy> recalibrated =
      Member<ZapAccuracy>::null();  ///< batch normalisation's statistics estimated anew

  static void fields(auto& self, const auto& visit) {
    visit("thresholds", self.thresholds);
    visit("zap", self.zap);
    visit("layers", self.layers);
    visit("recalibrated", self.recalibrated);
  }
};

/// At the thresholds that are best for a budget of error.
struct ZapChosen : ZapPoint {
  double budget = 0, expected_error = 0, expected_remaining = 0;
  Member<ZapAccuracy> finetuned = Member<ZapAccuracy>::null();

  static void fields(auto& self, const auto& visit) {
    ZapPoint::fields(self, visit);
    visit("budget", self.budget);
    visit("expected_error", self.expected_error);
    visit("expected_remaining", self.expected_remaining);
    visit("finetuned", self.finetuned);
  }
};

/// Saving and error on validation images.
struct ZapCurvePoint {
  double threshold = 0, saving = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("threshold", self.threshold);
    visit("saving", self.saving);
    visit("error", self.error);
  }
};

/// Threshold 0 beside a predictor that skips as many at random.
struct ZapRandom {
  double rate = 0;
  Estimate measured = {}, trained = {};

  static void fields(auto& self, const auto& visit) {
    visit("rate", self.rate);
    visit("measured", self.measured);
    visit("trained", self.trained);
  }
};

/// Errors where nothing and where everything predicted is skipped, and what the latter must be.
struct ZapLimits {
  double none = 0, all = 0, expected = 0;

  static void fields(auto& self, const auto& visit) {
    visit("none", self.none);
    visit("all", self.all);
    visit("expected", self.expected);
  }
};

struct ZapError {
  double threshold = 0, predicted = 0;
  Estimate measured = {};

  static void fields(auto& self, const auto& visit) {
    visit("threshold", self.threshold);
    visit("predicted", self.predicted);
    visit("measured", self.measured);
  }
};

/// A layer's predictor: its curve and bound on validation maps, then on float32 test maps; the
/// errors of the thresholds chosen for each budget; the losses of its training.
struct ZapLayerResult {
  std::string layer = {};
  std::int64_t macs = 0, activations = 0;
  std::vector<ZapCurvePoint> curve = {};
  LogisticCurve error_fit = {}, saving_fit = {};
  Estimate bound_seen = {}, bound = {};
  ZapRandom random = {};
  ZapLimits limits = {};
  std::vector<ZapError> chosen_errors = {};
  std::vector<double> losses = {};

  static void fields(auto& self, const auto& visit) {
    visit("layer", self.layer);
    visit("macs", self.macs);
    visit("activations", self.activations);
    visit("curve", self.curve);
    visit("error_fit", self.error_fit);
    visit("saving_fit", self.saving_fit);
    visit("bound_seen", self.bound_seen);
    visit("bound", self.bound);
    visit("random", self.random);
    visit("limits", self.limits);
    visit("chosen_errors", self.chosen_errors);
    visit("losses", self.losses);
  }
};

struct ZapMeasured {
  std::int64_t conv_macs = 0;
  std::vector<ZapLayerResult> layers = {};
  std::vector<ZapPoint> points = {};   ///< of the sweep
  std::vector<ZapChosen> chosen = {};  ///< of the budgets

  static void fields(auto& self, const auto& visit) {
    visit("conv_macs", self.conv_macs);
    visit("layers", self.layers);
    visit("points", self.points);
    visit("chosen", self.chosen);
  }
};

/// The network is left as it was.
ZapMeasured run_zap_trial(const ZapTrial&, TrainedNet&, const net::Dataset&,
                          const net::Evaluation& baseline);

// What trials say over seeds.

/// The trials of one mask type in the same layers, a seed each.
struct ZapResults {
  int mask = 5;
  std::string layers = "inner";  ///< as the setting: inner, all
  std::int64_t images = 0;
  std::vector<ZapMeasured> seeds = {};
};
/// "mask 5 (50 % computed), inner layers".
std::string name_of(const ZapResults&);

/// What is done to the network once predictors are at work.
enum class ZapCare : std::uint8_t { none, recalibrated, finetuned };
inline constexpr std::array kZapCares = {ZapCare::none, ZapCare::recalibrated, ZapCare::finetuned};
/// "the network as it is", "statistics estimated anew", "fine-tuning".
std::string to_string(ZapCare);

/// A change of top-1 against float32, as a share of the images. The mean over seeds; the interval
/// (95 %, paired by image) is that of one seed with the mean counts, as all seeds see the same
/// images.
struct AccuracyChange {
  stats::PairedInterval difference = {};
  stats::PairedAnswers answers = {};  ///< zap's alone, float32's alone: the mean counts
};

/// Which point of a trial: of the sweep, or of the budgets.
enum class ZapList : std::uint8_t { swept, chosen };

/// One point of the sweep, or one budget, over all seeds.
struct ZapSummary {
  std::vector<double> thresholds = {};  ///< of the layers, means over seeds
  double saving = 0;  ///< share of all convolutions' multiply-adds, mean over seeds
  double least_saving = 0, largest_saving = 0;  ///< over seeds
  double net_saving = 0;                        ///< less those of the predictors
  double error = 0;                             ///< summed over layers, mean over seeds
  std::array<std::optional<AccuracyChange>, kZapCares.size()> changes = {};  ///< by ZapCare

  const std::optional<AccuracyChange>& change(ZapCare care) const {
    return changes[static_cast<std::size_t>(care)];
  }
};
ZapSummary summarize(const ZapResults&, ZapList, std::size_t i);

/// Mean over seeds of the share that a count has of the layer's activations, at a point of the
/// sweep.
double share_of(const ZapResults&, std::size_t layer, std::size_t point,
                std::int64_t ZapCounts::*count);

/// A share is predicted well where it is this near.
inline constexpr double kZapShareHolds = 0.01;
/// Root of the mean squared residual of a logistic fit to an error curve.
inline constexpr double kZapFitHolds = 0.02;
/// What the method is to reach: so many multiply-adds saved for less than so many points of top-1.
/// The saving is ZapSummary::saving: the mean over seeds of the share that predictors leave out of
/// all convolutions' multiply-adds on the test images, their own multiply-adds not subtracted.
inline constexpr double kZapSaving = 0.25, kZapLoss = 0.005;

/// A point of a sweep, or a budget's.
struct ZapBest {
  const ZapResults* of = nullptr;
  ZapSummary at = {};
  AccuracyChange change = {};
};
/// The largest saving for a mean loss below kZapLoss among the points where that was done; `of` is
/// null where there is none.
ZapBest best_of(const std::vector<ZapResults>&, ZapCare);

/// Per layer and mask, of the first seed: the bound on savings, the error of a random predictor,
/// the fits, errors at optimised thresholds; over everything the identities; last the aim, for
/// in every case. Shares hold within kZapShareHolds, fail where Holm's procedure over all of
/// them rejects that they are so near, and are undecided else. The aim holds where Holm's procedure
/// over all points rejects that one that saves enough loses kZapLoss or more; its interval is the
/// span of the saving over seeds.
std::vector<Finding> zap_findings(const std::vector<ZapResults>&);

}  // namespace numemu::experiments

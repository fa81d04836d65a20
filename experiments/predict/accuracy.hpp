// Top-1, loss and changed answers of a recipe, predicted from the float32 network with noise of
// random phase.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/stats/interval.hpp"

namespace numemu::experiments {

class InjectedNetwork;

/// Test samples that accuracy is predicted on: all that are evaluated, or kMostPredicted of them;
/// fewer, at least kFewestPredicted, of networks of more than kAccuracyMacs for all.
inline constexpr std::int64_t kMostPredicted = 2048, kFewestPredicted = 64;
inline constexpr double kAccuracyMacs = 0x1p36;  // some seconds
std::int64_t predicted_samples(double macs_of_a_sample, std::int64_t evaluated);
/// Of one class per sample, without further scores, so many run first, and twice as many again
/// while the samples alone have a standard error of top-1, or of changed answers, above kFineError.
inline constexpr std::int64_t kFirstPredicted = 256;
inline constexpr double kFineError = 0.005;

/// The scores whose tables of the float32 network predictions read: the loss of every sample; of
/// one class per sample its margin, too, the largest logit less the next one. None without targets.
std::vector<net::OutputScore> float32_scores(const net::Dataset&);

/// The float32 network on all evaluated samples, which all points of a sweep share.
struct AccuracyReference {
  net::Dataset data;
  std::vector<net::OutputScore> scores;  ///< that of the loss is the last
  net::Evaluation float32;               ///< with tables of these scores
  std::int64_t most = 0;                 ///< samples that a point runs at most
  std::vector<double> margins;           ///< of one class per sample: of each, that of its answer
};
/// `baseline` has tables of the scores and of float32_scores(); those with a `reference` have no
/// prediction. Empty where targets are neither classes nor numbers, or no sample is evaluated.
std::optional<AccuracyReference> accuracy_reference(const net::Graph&, const net::Dataset&,
                                                    const std::vector<net::OutputScore>&,
                                                    const net::Evaluation& baseline);

/// A figure of the evaluated samples, and the standard error of the measured one about it.
struct Expected {
  double value = 0, error = 0;
  stats::Interval interval() const;  ///< 95 %
};

struct AccuracyPrediction {
  net::Evaluation noisy, float32;         ///< of the samples that ran, with the reference's scores
  std::optional<Expected> top1, changed;  ///< of classes; changed: answers other than float32's
  Expected loss;                          ///< as net::Evaluation has it
};

/// The weights' errors are one draw, which all samples share. Before any draw is seen, the standard
/// deviation of top-1 over draws is expected about this share of the answers that change from right
/// to wrong or back; about that of changed answers, as draws show it, where that is more. Measured
/// (docs/predictions.md).
inline constexpr double kWeightFloor = 0.06;
/// The same of other figures, as a share of their change against float32; of the loss at least
/// kWeightFloor of the magnitude of its changes, because some samples gain what others lose.
inline constexpr double kChangeFloor = 0.15;

/// Standard error of the predicted noise of outputs in decibels: layers are meant to be within
/// kLayerHolds in 95 of 100 cases. What a figure changes by grows with the noise.
inline constexpr double kModelError = 0.5;

/// Root of the expected variance of draws, given the means of some over samples whose own variance
/// of a mean is `within`: the posterior mean under a half-Cauchy prior of scale `prior` (Gelman
/// 2006). The prior itself of fewer than 4 draws.
double draws_deviation(const std::vector<double>& means, double within, double prior);

/// By how much intervals of a mean over n predicted samples, evenly chosen, are too short for its
/// distance from what is measured on `all`: the measured side has a draw of the noise, too, and
/// samples of its own.
double measured_too(std::int64_t n, std::int64_t all);

/// Evaluates the float32 network with noise of random phase; 32 samples share a draw. What a figure
/// changes by against float32 on the samples is added to float32's on all that are evaluated.
/// Samples are drawn by how likely noise changes their answer, `logit_noise` its root mean square
/// in the logits, and count inversely; evenly where that is 0. Units add the errors that they made
/// in predict_layers() of the same noise. Reads no quantized tensor.
AccuracyPrediction predict_accuracy(InjectedNetwork&, const AccuracyReference&,
                                    double logit_noise = 0);

}  // namespace numemu::experiments

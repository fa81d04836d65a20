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

/// Test samples that accuracy is predicted on: all that are evaluated, or kMostPredicted of them,
/// spread evenly; fewer, at least kFewestPredicted, of networks of more than kAccuracyMacs for all.
inline constexpr std::int64_t kMostPredicted = 2048, kFewestPredicted = 64;
inline constexpr double kAccuracyMacs = 0x1p36;  // some seconds
std::int64_t predicted_samples(double macs_of_a_sample, std::int64_t evaluated);

/// The float32 network on those samples, which all points of a sweep share.
struct AccuracyReference {
  net::Dataset samples;  ///< as its test split
  /// Of every evaluation's tables, the last one that of the loss.
  std::vector<net::OutputScore> scores;
  net::Evaluation float32;
};
/// With tables of these scores. Empty where targets are neither classes nor numbers, or no sample
/// is evaluated.
std::optional<AccuracyReference> accuracy_reference(const net::Graph&, const net::Dataset&,
                                                    std::vector<net::OutputScore>,
                                                    std::int64_t evaluated);

/// A figure of the evaluated samples, and the standard error of the measured one about it.
struct Expected {
  double value = 0, error = 0;
  stats::Interval interval() const;  ///< 95 %
};

struct AccuracyPrediction {
  net::Evaluation noisy;                  ///< of the reference's samples and scores
  std::optional<Expected> top1, changed;  ///< of classes; changed: answers other than float32's
  Expected loss;                          ///< as net::Evaluation has it
};

/// The weights' errors are one draw, which all samples share: the standard deviation of top-1 over
/// draws, as a share of the answers that change from right to wrong or back. Measured
/// (docs/predictions.md).
inline constexpr double kWeightFloor = 0.06;
/// The same of other figures, as a share of their change against float32.
inline constexpr double kChangeFloor = 0.15;

/// By how much intervals of a mean over n predicted samples are too short for its distance from
/// what is measured on `all`: the measured side has a draw of the noise, too, and samples of its
/// own.
double measured_too(std::int64_t n, std::int64_t all);

/// Evaluates the float32 network with noise of random phase; 32 samples share a draw. What a figure
/// changes by against float32 on the samples is added to float32's on all that are evaluated
/// (`baseline`). Units add the errors that they made in predict_layers() of the same noise. Reads
/// no quantized tensor.
AccuracyPrediction predict_accuracy(InjectedNetwork&, const AccuracyReference&,
                                    const net::Evaluation& baseline);

}  // namespace numemu::experiments

// The questions of lognormal-gradients; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::lognormal_gradients {

/// Lognormal numbers: closed forms against draws, the best split over sigma, the published margin
/// (settings samples, sigmas, means, draw_widths, widths).
void add_draws(const ExperimentRun&, Conclusion&);

/// The lognormal law of a layer's gradients in one epoch of float32 training, mean over the seeds,
/// to base 2.
struct EpochFit {
  std::string layer;
  std::int64_t epoch = 0;
  double mean = 0, sigma = 0;
};

/// Gradients of float32 training: fits of layers over training, distances of three laws, and
/// relative errors of every split, predicted by the fits and measured (settings looks, widths,
/// seeds). Returns the fits, layers in the order of forward, each with its epochs in order.
std::vector<EpochFit> add_gradients(const ExperimentRun&, const std::string& net,
                                    const net::Dataset&, Conclusion&);

/// Networks trained with gradients of few bits at every split, beside what the fits predict
/// (settings net, train_widths, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, const std::vector<EpochFit>&,
                  Conclusion&);

/// A list setting of widths in bits, 3 to 8.
std::vector<int> widths_of(const Settings&, const std::string& key);

}  // namespace numemu::experiments::lognormal_gradients

// The questions of kure; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::kure {

/// Writes the levels of M bits, for the format codebook(FILE), into the run's folder; returns FILE.
std::string codebook_file(const ExperimentRun&, int bits);

/// The error of uniform and normal numbers over steps against the closed forms, the optimal steps,
/// and both readings of the theorem (settings bits, factors, samples).
void add_curves(const ExperimentRun&, Conclusion&);

/// Networks trained with and without the penalty, their weights quantized at detuned steps, steps
/// rounded to powers of two and few bits (settings net, data, penalty, accuracy_bits, factors,
/// epochs, train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, Conclusion&);
/// The same on a data set that is loaded, in place of that of the setting.
void add_training_on(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::kure
